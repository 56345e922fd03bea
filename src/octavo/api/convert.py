"""Wire requests to jobs: every default chosen, every text tokenized, nothing optional left."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from octavo.api.sampling import check_token_ids, sampling_params, stop_tokens
from octavo.api.schemas.chat import ChatCompletionRequest, ChatMessage, Content, ImagePart
from octavo.api.schemas.common import GenerationFields
from octavo.api.schemas.completions import CompletionRequest
from octavo.api.schemas.tokenize import TokenizeRequest
from octavo.core.channels import PLAIN, ChannelFormat
from octavo.core.limits import Limits
from octavo.core.messages import Message, Role
from octavo.core.request import Choice, GenerationRequest, LogprobParams
from octavo.core.vocabulary import Vocabulary
from octavo.errors import ContextLengthExceeded, InvalidRequest, NotYetSupported
from octavo.prompting import encode_chat, encode_infill, encode_text, tokenize
from octavo.service import GenerationJob, ServedModel, sample_seed

DEFAULT_COMPLETION_TOKENS = 16

_THINKING_SWITCHES = ("enable_thinking", "thinking")
"""What model families' chat templates call it."""

Tokens = tuple[int, ...]


def check_limits(wire: GenerationFields, limits: Limits) -> None:
    """Raises InvalidRequest for what the schema allows and this server does not."""
    _check_most("n", wire.n or 1, limits.max_n, "samples")
    stop = wire.stop or ()
    _check_most("stop", len(stop), limits.max_stop_strings, "strings")
    _check_most("stop", max(map(len, stop), default=0), limits.max_stop_length, "characters in a string")
    _check_most("stop_token_ids", len(wire.stop_token_ids or ()), limits.max_stop_tokens, "token ids")
    if isinstance(wire, CompletionRequest):
        _check_most("prompt", len(wire.prompt), limits.max_prompts, "prompts")
        _check_most("logprobs", wire.logprobs or 0, limits.max_top_logprobs, "tokens in a place")
        _check_most("best_of", wire.best_of or 1, limits.max_n, "candidates")
    if isinstance(wire, ChatCompletionRequest):
        _check_most("top_logprobs", wire.top_logprobs or 0, limits.max_top_logprobs, "tokens in a place")


def _check_most(field: str, number: int, most: int, what: str) -> None:
    if number > most:
        raise InvalidRequest(f"{field}: Input should have at most {most} {what} (given {number}).", param=field)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What each endpoint says in its own way.

    max_tokens: whatever room a prompt leaves. best_of: candidates for each prompt, at least n.
    """

    prompts: Sequence[Tokens]
    max_tokens: int
    best_of: int
    logprobs: LogprobParams
    echo: bool = False
    channels: ChannelFormat = PLAIN


async def completion_job(id: str, wire: CompletionRequest, model: ServedModel) -> GenerationJob:
    """Raises InvalidRequest, UnsupportedByModel and EngineUnavailable."""
    given = wire.given_max_tokens
    n = wire.n or 1
    best_of = wire.best_of or n
    plan = _Plan(
        prompts=[await _prompt_tokens(prompt, wire.suffix, model) for prompt in wire.prompt],
        max_tokens=DEFAULT_COMPLETION_TOKENS if given is None else given,
        best_of=best_of,
        logprobs=LogprobParams(
            of_output=wire.shows_logprobs or best_of > n,  # candidates are ranked by them
            of_prompt=bool(wire.loglikelihood) or (bool(wire.echo) and wire.logprobs is not None),
            num_top=wire.logprobs or 0,
        ),
        echo=bool(wire.echo),
    )
    return _job(id, wire, model, plan)


async def chat_job(id: str, wire: ChatCompletionRequest, model: ServedModel) -> GenerationJob:
    """Raises InvalidRequest, UnsupportedByModel and EngineUnavailable."""
    messages = tuple(map(_message, wire.messages))
    context_length = model.info.context_length
    prompt = await encode_chat(
        model.tokenizer,
        model.chat_template,
        messages,
        context_length=context_length,
        variables=_template_variables(wire),
    )
    given = wire.given_max_tokens
    plan = _Plan(
        prompts=[prompt.tokens],
        max_tokens=context_length if given is None else given,
        best_of=wire.n or 1,
        logprobs=LogprobParams(
            of_output=wire.shows_logprobs, of_prompt=bool(wire.loglikelihood), num_top=wire.top_logprobs or 0
        ),
        channels=prompt.channels,
    )
    return _job(id, wire, model, plan)


def _job(id: str, wire: GenerationFields, model: ServedModel, plan: _Plan) -> GenerationJob:
    vocabulary = model.tokenizer.vocabulary
    sampling = sampling_params(wire, vocabulary)
    ending = stop_tokens(wire, vocabulary)
    seed = secrets.randbits(64) if wire.seed is None else wire.seed

    def choice(prompt_index: int, sample_index: int) -> Choice:
        index = prompt_index * plan.best_of + sample_index
        prompt = plan.prompts[prompt_index]
        max_tokens = min(plan.max_tokens, model.info.context_length - len(prompt))
        request = GenerationRequest(
            id=f"{id}-{index}",
            prompt_tokens=prompt,
            max_tokens=max_tokens,
            sampling=replace(sampling, seed=sample_seed(seed, prompt_index, sample_index)),
            ignore_eos=bool(wire.ignore_eos),
            stop_tokens=ending,
            min_tokens=min(wire.min_tokens or 0, max_tokens),
            logprobs=plan.logprobs,
        )
        includes_stop = bool(wire.include_stop_str_in_output)
        return Choice(index, request, wire.stop or (), includes_stop, plan.echo, plan.channels)

    return GenerationJob(
        id,
        model,
        choices=tuple(choice(prompt, sample) for prompt in range(len(plan.prompts)) for sample in range(plan.best_of)),
        num_prompt_tokens=sum(map(len, plan.prompts)),
        n=wire.n or 1,
        best_of=plan.best_of,
        user=wire.user,
    )


async def _prompt_tokens(prompt: str | Tokens, suffix: str | None, model: ServedModel) -> Tokens:
    context_length = model.info.context_length
    if not isinstance(prompt, str):
        _check_prompt_ids(prompt, model)
    if suffix is not None:
        return await encode_infill(model.tokenizer, prompt, suffix, context_length=context_length)
    if isinstance(prompt, str):
        return await encode_text(model.tokenizer, prompt, context_length=context_length)
    return prompt


def _check_prompt_ids(prompt: Tokens, model: ServedModel) -> None:
    if len(prompt) > model.info.context_length:
        message = f"The prompt has {len(prompt)} tokens; the model's context is {model.info.context_length}."
        raise ContextLengthExceeded(message, param="prompt")
    check_token_ids("prompt", prompt, model.tokenizer.vocabulary)


def _template_variables(wire: ChatCompletionRequest) -> Mapping[str, object]:
    """The client's own win over what the effort says."""
    effort: dict[str, object] = {}
    if wire.reasoning_effort is not None:
        effort["reasoning_effort"] = wire.reasoning_effort
    if wire.reasoning_effort == "none":
        effort |= dict.fromkeys(_THINKING_SWITCHES, False)
    return {**effort, **(wire.chat_template_kwargs or {})}


def _message(wire: ChatMessage) -> Message:
    role = Role.SYSTEM if wire.role == "developer" else Role(wire.role)
    return Message(role, _text(wire.content), wire.name, wire.tool_call_id, wire.given_reasoning)


def _text(content: Content | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if any(isinstance(part, ImagePart) for part in content):
        message = "messages: parts of type image_url are not yet supported; send text parts."
        raise NotYetSupported(message, param="messages")
    return "".join(part.text for part in content if not isinstance(part, ImagePart))


async def text_tokens(wire: TokenizeRequest, model: ServedModel) -> Tokens:
    return await tokenize(model.tokenizer, wire.text, add_special_tokens=wire.add_special_tokens is not False)


def detokenize(tokens: Sequence[int], vocabulary: Vocabulary) -> str:
    """The text of the tokens; bytes that are no UTF-8 become U+FFFD. Raises InvalidRequest for unknown ids."""
    check_token_ids("tokens", tokens, vocabulary)
    special = {token.id: token.text.encode() for token in vocabulary.special_tokens}
    return b"".join(special.get(token, vocabulary.pieces[token]) for token in tokens).decode(errors="replace")
