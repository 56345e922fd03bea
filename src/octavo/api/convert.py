"""Wire requests to jobs: every default chosen, every text tokenized, nothing optional left."""

import secrets
from collections.abc import Sequence
from dataclasses import replace

from octavo.api.schemas.chat import ChatCompletionRequest, ChatMessage, Content, ImagePart
from octavo.api.schemas.common import GenerationFields
from octavo.api.schemas.completions import CompletionRequest
from octavo.api.schemas.tokenize import TokenizeRequest
from octavo.api.shown import shown
from octavo.core.limits import Limits
from octavo.core.messages import Message, Role
from octavo.core.request import Choice, GenerationRequest
from octavo.core.sampling import BAN_BIAS, SamplingParams
from octavo.core.vocabulary import Vocabulary
from octavo.errors import ContextLengthExceeded, InvalidRequest, NotYetSupported
from octavo.prompting import encode_chat, encode_text, tokenize
from octavo.service import GenerationJob, ServedModel, sample_seed

DEFAULT_COMPLETION_TOKENS = 16

_NUMBERS = ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty")
"""Settings with the same name and meaning on the wire and inside."""

Tokens = tuple[int, ...]


def check_limits(wire: GenerationFields, limits: Limits) -> None:
    """Raises InvalidRequest for what the schema allows and this server does not."""
    _check_most("n", wire.n or 1, limits.max_n, "samples")
    stop = wire.stop or ()
    _check_most("stop", len(stop), limits.max_stop_strings, "strings")
    _check_most("stop", max(map(len, stop), default=0), limits.max_stop_length, "characters in a string")
    if isinstance(wire, CompletionRequest):
        _check_most("prompt", len(wire.prompt), limits.max_prompts, "prompts")


def _check_most(field: str, number: int, most: int, what: str) -> None:
    if number > most:
        raise InvalidRequest(f"{field}: Input should have at most {most} {what} (given {number}).", param=field)


async def completion_job(id: str, wire: CompletionRequest, model: ServedModel) -> GenerationJob:
    """Raises InvalidRequest, UnsupportedByModel and EngineUnavailable."""
    prompts = [await _prompt_tokens(prompt, model) for prompt in wire.prompt]
    given = wire.given_max_tokens
    return _job(id, wire, model, prompts, DEFAULT_COMPLETION_TOKENS if given is None else given)


async def chat_job(id: str, wire: ChatCompletionRequest, model: ServedModel) -> GenerationJob:
    """Raises InvalidRequest, UnsupportedByModel and EngineUnavailable."""
    messages = tuple(map(_message, wire.messages))
    context_length = model.info.context_length
    prompt = await encode_chat(model.tokenizer, model.chat_template, messages, context_length=context_length)
    given = wire.given_max_tokens
    return _job(id, wire, model, [prompt], context_length if given is None else given)


def _job(
    id: str, wire: GenerationFields, model: ServedModel, prompts: Sequence[Tokens], max_tokens: int
) -> GenerationJob:
    sampling = _sampling_params(wire, model.tokenizer.vocabulary)
    seed = secrets.randbits(64) if wire.seed is None else wire.seed
    n = wire.n or 1

    def choice(prompt_index: int, sample_index: int) -> Choice:
        index = prompt_index * n + sample_index
        prompt = prompts[prompt_index]
        request = GenerationRequest(
            id=f"{id}-{index}",
            prompt_tokens=prompt,
            max_tokens=min(max_tokens, model.info.context_length - len(prompt)),
            sampling=replace(sampling, seed=sample_seed(seed, prompt_index, sample_index)),
            ignore_eos=bool(wire.ignore_eos),
        )
        return Choice(index, request, wire.stop or ())

    choices = tuple(choice(prompt_index, i) for prompt_index in range(len(prompts)) for i in range(n))
    return GenerationJob(id, model, choices, num_prompt_tokens=sum(map(len, prompts)), user=wire.user)


async def _prompt_tokens(prompt: str | Tokens, model: ServedModel) -> Tokens:
    context_length = model.info.context_length
    if isinstance(prompt, str):
        return await encode_text(model.tokenizer, prompt, context_length=context_length)
    if len(prompt) > context_length:
        message = f"The prompt has {len(prompt)} tokens; the model's context is {context_length}."
        raise ContextLengthExceeded(message, param="prompt")
    check_token_ids("prompt", prompt, model.tokenizer.vocabulary)
    return prompt


def check_token_ids(field: str, tokens: Sequence[int], vocabulary: Vocabulary) -> None:
    """Raises InvalidRequest for the first id outside the vocabulary."""
    wrong = next((token for token in tokens if not 0 <= token < vocabulary.size), None)
    if wrong is not None:
        message = f"{field}: Input should be token ids from 0 to {vocabulary.size - 1} (given {shown(wrong)})."
        raise InvalidRequest(message, param=field)


def _sampling_params(wire: GenerationFields, vocabulary: Vocabulary) -> SamplingParams:
    """Without a seed, which belongs to each sample."""
    defaults = SamplingParams(top_k=max(wire.top_k or 0, 0), logit_bias=_logit_bias(wire, vocabulary))
    given = {name: getattr(wire, name) for name in _NUMBERS}
    return replace(defaults, **{name: value for name, value in given.items() if value is not None})


def _logit_bias(wire: GenerationFields, vocabulary: Vocabulary) -> tuple[tuple[int, float], ...]:
    biases = wire.logit_bias or ()
    check_token_ids("logit_bias", [token for token, _ in biases], vocabulary)
    if sum(bias <= BAN_BIAS for _, bias in biases) == vocabulary.size:
        raise InvalidRequest("logit_bias: Input should leave at least 1 token that is not banned.", param="logit_bias")
    return biases


def _message(wire: ChatMessage) -> Message:
    role = Role.SYSTEM if wire.role == "developer" else Role(wire.role)
    return Message(role, _text(wire.content), wire.name, wire.tool_call_id)


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
