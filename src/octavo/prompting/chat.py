"""Conversations as tokens."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from types import MappingProxyType

from octavo.core.channels import ChannelFormat
from octavo.core.images import Image, ImageSpan
from octavo.core.messages import Message
from octavo.core.tools import Tool
from octavo.core.vocabulary import Vocabulary
from octavo.errors import TemplateError
from octavo.prompting.chat_template import ChatTemplate
from octavo.prompting.guard import RenderingTooSlow
from octavo.prompting.image_marks import ImageMarks
from octavo.prompting.markers import SENTINELS, Fragment, markers_of
from octavo.prompting.protection import Protection, choose_sentinel, client_texts
from octavo.prompting.reasoning import Family, channel_format, family_of
from octavo.prompting.tokenization import MAX_SHORT, TextEncoder, check_can_fit, check_fits, with_bos
from octavo.prompting.tool_history import uses_tools

_FEW_MESSAGES = 20
SOON = 0.003
"""Seconds in which nobody else is served."""

_Segment = list[Fragment] | Image
"""What is encoded at a time: the text between two images, or an image."""
_Rendered = tuple[list[_Segment], ChannelFormat]


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """channels: how the model will mark its reasoning, and the channel in which its answer begins.

    images: those among the tokens, in order.
    """

    tokens: tuple[int, ...]
    channels: ChannelFormat
    images: tuple[ImageSpan, ...] = ()


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
    Raises TemplateError, ContextLengthExceeded, what the encoder raises for images, and InvalidRequest where the client
    uses up all characters that could stand for something else.
    """
    vocabulary = encoder.vocabulary
    rendering = partial(_rendered, vocabulary, template, messages, variables, tools)
    is_short = not (variables or tools) and _are_short(messages)
    segments, channels = await (_rendered_soon(template, rendering) if is_short else asyncio.to_thread(rendering))
    texts = [segment for segment in segments if not isinstance(segment, Image)]
    check_can_fit(list(chain.from_iterable(texts)), vocabulary, context_length, param="messages")
    encoded, images = await _encoded(encoder, segments)
    tokens = with_bos(encoded, vocabulary)
    if not tokens:
        raise TemplateError("the model's chat template makes no text of the messages", param="messages")
    check_fits(tokens, context_length, param="messages")
    return ChatPrompt(tokens, channels, _moved(images, len(tokens) - len(encoded)))


def _are_short(messages: Sequence[Message]) -> bool:
    """Whether usual templates render them in some tenths of a millisecond. With tools it takes longer: the texts are
    many, and in what shape a template takes them is found by trials."""
    if len(messages) > _FEW_MESSAGES or any(map(uses_tools, messages)):
        return False
    return sum(map(len, client_texts(messages, {}))) <= MAX_SHORT


async def _rendered_soon(template: ChatTemplate, rendering: Callable[..., _Rendered]) -> _Rendered:
    """At once where the template was quick with the last short conversation; a thread would have to wait where the
    processors are busy. Where it was not, as with the first one, in a thread."""
    if template.is_quick:
        try:
            return rendering(deadline=SOON)
        except RenderingTooSlow:
            template.is_quick = False

    def timed() -> _Rendered:
        start = time.thread_time()
        rendered = rendering()
        template.is_quick = time.thread_time() - start < SOON
        return rendered

    return await asyncio.to_thread(timed)


def _rendered(
    vocabulary: Vocabulary,
    template: ChatTemplate,
    messages: Sequence[Message],
    variables: Mapping[str, object],
    tools: Sequence[Tool],
    deadline: float = math.inf,
) -> _Rendered:
    markers = markers_of(vocabulary, template.source)
    sentinel = choose_sentinel(messages, variables, tools)
    protection = Protection(markers, sentinel, _harmless(family_of(template), vocabulary))
    marks = ImageMarks(messages, chain([template.source], client_texts(messages, variables, tools)))
    rendered = template.render(
        protection.messages(marks.messages(messages)),
        bos_token=_text_of(vocabulary.bos_token, vocabulary),
        eos_token=_text_of(vocabulary.eos_token, vocabulary),
        variables=protection.variables(variables),
        tools=protection.tools(tools),
        deadline=deadline,
    )
    prompt = marks.unescaped(protection.marked(rendered))
    parts = marks.split(prompt)
    if parts and isinstance(parts[-1], Image):
        raise TemplateError("the model's chat template ends the prompt with an image", param="messages")
    segments: list[_Segment] = [part if isinstance(part, Image) else markers.split(part, sentinel) for part in parts]
    return segments, channel_format(template, prompt)


async def _encoded(encoder: TextEncoder, segments: Sequence[_Segment]) -> tuple[tuple[int, ...], tuple[ImageSpan, ...]]:
    """Tokens of texts and images, joined, and where the images are among them."""
    tokens: list[int] = []
    spans: list[ImageSpan] = []
    for segment in segments:
        if isinstance(segment, Image):
            image = await encoder.encode_image(segment)
            spans += _moved(image.spans, len(tokens))
            tokens += image.tokens
        else:
            tokens += await encoder.encode(segment)
    return tuple(tokens), tuple(spans)


def _moved(spans: Iterable[ImageSpan], distance: int) -> tuple[ImageSpan, ...]:
    return tuple(replace(span, start=span.start + distance) for span in spans)


def _harmless(family: Family, vocabulary: Vocabulary) -> list[str]:
    """The markers that are no part of a control token's text, nor hold one."""
    control, sentinel = markers_of(vocabulary), SENTINELS[0]
    return [text for text, _ in family.markers if control.protect(text, sentinel) == text]


def _text_of(token_id: int | None, vocabulary: Vocabulary) -> str:
    return next((token.text for token in vocabulary.special_tokens if token.id == token_id), "")
