"""Chat requests to jobs."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from octavo.api.convert.conversation import NO_IMAGES, Images, conversation, image_links
from octavo.api.convert.grammars import chat_recipe, constraining
from octavo.api.convert.job import Plan, planned_job
from octavo.api.convert.tools import shown_tools, tool_use
from octavo.api.schemas.chat import ChatCompletionRequest
from octavo.constraints import GrammarMaker
from octavo.core.caller import ANYONE, Caller
from octavo.core.channels import ChannelFormat
from octavo.core.messages import Message
from octavo.core.request import LogprobParams
from octavo.errors import VisionUnsupported
from octavo.prompting import encode_chat
from octavo.service import GenerationJob, ImageLink, ServedModel

_FEW_PARTS = 500
"""Messages and their parts that become a conversation in a millisecond."""
_THINKING_SWITCHES = ("enable_thinking", "thinking")
"""What model families' chat templates call it."""


async def chat_job(
    id: str,
    wire: ChatCompletionRequest,
    model: ServedModel,
    grammars: GrammarMaker,
    *,
    caller: Caller = ANYONE,
    images: Images = NO_IMAGES,
) -> GenerationJob:
    """images: one for each link of chat_images; the engine should hold them already.

    Raises InvalidRequest, UnsupportedByModel and EngineUnavailable.
    """
    context_length = model.info.context_length
    prompt = await encode_chat(
        model.tokenizer,
        model.chat_template,
        await _messages(wire, images),
        context_length=context_length,
        tools=shown_tools(wire),
        variables=_template_variables(wire),
    )
    use = tool_use(wire, model)
    vocabulary = model.tokenizer.vocabulary
    recipe = chat_recipe(wire, use, prompt.channels, vocabulary)
    given = wire.given_max_tokens
    plan = Plan(
        prompts=[prompt.tokens],
        max_tokens=context_length if given is None else given,
        best_of=wire.n or 1,
        logprobs=LogprobParams(
            of_output=wire.shows_logprobs, of_prompt=bool(wire.loglikelihood), num_top=wire.top_logprobs or 0
        ),
        grammar=await grammars.made(recipe, vocabulary),
        caller=caller,
        channels=_followed(prompt.channels, is_constrained=constraining(wire.response_format) is not None),
        tools=use,
        spans=prompt.images,
    )
    return planned_job(id, wire, model, plan)


async def _messages(wire: ChatCompletionRequest, images: Images) -> Sequence[Message]:
    """In a thread where there are many, or parts of them, because that takes milliseconds."""
    if len(wire.messages) + sum(len(message.parts) for message in wire.messages) <= _FEW_PARTS:
        return conversation(wire.messages, images)
    return await asyncio.to_thread(conversation, wire.messages, images)


def chat_images(wire: ChatCompletionRequest, model: ServedModel) -> list[ImageLink]:
    """Where the images of a request are. Raises VisionUnsupported where there are some and the model sees none."""
    links = image_links(wire.messages)
    if links and not model.info.has_vision:
        message = f"The model {model.id} sees no images; send text, or ask one that does."
        raise VisionUnsupported(message, param="messages")
    return links


def _followed(channels: ChannelFormat, *, is_constrained: bool) -> ChannelFormat:
    """In an answer that a grammar makes, no text is a marker."""
    return replace(channels, ends_in_answer=channels.ends_in_answer or is_constrained)


def _template_variables(wire: ChatCompletionRequest) -> Mapping[str, object]:
    """The client's own win over what the effort says."""
    effort: dict[str, object] = {}
    if wire.reasoning_effort is not None:
        effort["reasoning_effort"] = wire.reasoning_effort
    if wire.reasoning_effort == "none":
        effort |= dict.fromkeys(_THINKING_SWITCHES, False)
    return {**effort, **(wire.chat_template_kwargs or {})}
