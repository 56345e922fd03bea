"""Completion requests to jobs."""

from octavo.api.convert.grammars import format_recipe
from octavo.api.convert.job import Plan, Tokens, planned_job
from octavo.api.sampling import check_token_ids
from octavo.api.schemas.completions import CompletionRequest
from octavo.constraints import GrammarMaker
from octavo.core.caller import ANYONE, Caller
from octavo.core.channels import PLAIN
from octavo.core.request import LogprobParams
from octavo.errors import ContextLengthExceeded
from octavo.prompting import encode_infill, encode_text
from octavo.service import GenerationJob, ServedModel

DEFAULT_MAX_TOKENS = 16


async def completion_job(
    id: str, wire: CompletionRequest, model: ServedModel, grammars: GrammarMaker, *, caller: Caller = ANYONE
) -> GenerationJob:
    """Raises InvalidRequest, UnsupportedByModel and EngineUnavailable."""
    vocabulary = model.tokenizer.vocabulary
    given = wire.given_max_tokens
    n = wire.n or 1
    best_of = wire.best_of or n
    plan = Plan(
        prompts=[await _prompt_tokens(prompt, wire.suffix, model) for prompt in wire.prompt],
        max_tokens=DEFAULT_MAX_TOKENS if given is None else given,
        best_of=best_of,
        logprobs=LogprobParams(
            of_output=wire.shows_logprobs or best_of > n,  # candidates are ranked by them
            of_prompt=bool(wire.loglikelihood) or (bool(wire.echo) and wire.logprobs is not None),
            num_top=wire.logprobs or 0,
        ),
        grammar=await grammars.made(format_recipe(wire.response_format, PLAIN, vocabulary), vocabulary),
        caller=caller,
        echo=bool(wire.echo),
    )
    return planned_job(id, wire, model, plan)


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
