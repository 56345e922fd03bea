"""Conversations as tokens."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from octavo.core.channels import ChannelFormat
from octavo.core.messages import Message
from octavo.core.tools import Tool
from octavo.core.vocabulary import Vocabulary
from octavo.errors import TemplateError
from octavo.prompting.chat_template import ChatTemplate
from octavo.prompting.markers import SENTINELS, Fragment, markers_of
from octavo.prompting.protection import Protection, choose_sentinel
from octavo.prompting.reasoning import Family, channel_format, family_of
from octavo.prompting.tokenization import TextEncoder, check_can_fit, check_fits, with_bos


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """channels: how the model will mark its reasoning, and the channel in which its answer begins."""

    tokens: tuple[int, ...]
    channels: ChannelFormat


async def encode_chat(
    encoder: TextEncoder,
    template: ChatTemplate,
    messages: Sequence[Message],
    *,
    context_length: int,
    variables: Mapping[str, object] = MappingProxyType({}),
    tools: Sequence[Tool] = (),
) -> ChatPrompt:
    """A conversation, ready for the assistant's answer. No text of the client becomes a control token.

    variables: what the client gives to the template, beside what ChatTemplate.render does; JSON values.
    tools: what may be called.
    Raises TemplateError, ContextLengthExceeded, and InvalidRequest where the client uses up all noncharacters.
    """
    vocabulary = encoder.vocabulary
    fragments, channels = await asyncio.to_thread(_rendered, vocabulary, template, messages, variables, tools)
    check_can_fit(fragments, vocabulary, context_length, param="messages")
    tokens = with_bos(await encoder.encode(fragments), vocabulary)
    if not tokens:
        raise TemplateError("the model's chat template makes no text of the messages", param="messages")
    return ChatPrompt(check_fits(tokens, context_length, param="messages"), channels)


def _rendered(
    vocabulary: Vocabulary,
    template: ChatTemplate,
    messages: Sequence[Message],
    variables: Mapping[str, object],
    tools: Sequence[Tool],
) -> tuple[list[Fragment], ChannelFormat]:
    markers = markers_of(vocabulary, template.source)
    sentinel = choose_sentinel(messages, variables, tools)
    protection = Protection(markers, sentinel, _harmless(family_of(template), vocabulary))
    rendered = template.render(
        protection.messages(messages),
        bos_token=_text_of(vocabulary.bos_token, vocabulary),
        eos_token=_text_of(vocabulary.eos_token, vocabulary),
        variables=protection.variables(variables),
        tools=protection.tools(tools),
    )
    prompt = protection.marked(rendered)
    return markers.split(prompt, sentinel), channel_format(template, prompt)


def _harmless(family: Family, vocabulary: Vocabulary) -> list[str]:
    """The markers that are no part of a control token's text, nor hold one."""
    control, sentinel = markers_of(vocabulary), SENTINELS[0]
    return [text for text, _ in family.markers if control.protect(text, sentinel) == text]


def _text_of(token_id: int | None, vocabulary: Vocabulary) -> str:
    return next((token.text for token in vocabulary.special_tokens if token.id == token_id), "")
