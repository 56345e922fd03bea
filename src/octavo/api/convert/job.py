"""The choices of a request, each with its prompt and its seed."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

from octavo.api.sampling import sampling_params, stop_tokens
from octavo.api.schemas.generation import GenerationFields
from octavo.core.caller import Caller
from octavo.core.channels import PLAIN, ChannelFormat
from octavo.core.grammar import Grammar
from octavo.core.images import ImageSpan
from octavo.core.request import Choice, GenerationRequest, LogprobParams
from octavo.core.tools import NO_TOOLS, ToolUse
from octavo.service import GenerationJob, ServedModel, sample_seed

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What each endpoint says in its own way.

    max_tokens: whatever room a prompt leaves. best_of: candidates for each prompt, at least n.
    caller: who asks. spans: the places of images in the prompt, where there is but one.
    """

    prompts: Sequence[Tokens]
    max_tokens: int
    best_of: int
    logprobs: LogprobParams
    grammar: Grammar
    caller: Caller
    echo: bool = False
    channels: ChannelFormat = PLAIN
    tools: ToolUse = NO_TOOLS
    spans: tuple[ImageSpan, ...] = ()


def planned_job(id: str, wire: GenerationFields, model: ServedModel, plan: Plan) -> GenerationJob:
    """Raises InvalidRequest."""
    vocabulary = model.tokenizer.vocabulary
    sampling = sampling_params(wire, vocabulary)
    stop, ending = wire.stop or (), stop_tokens(wire, vocabulary)
    if plan.tools.is_forced:  # what must be calls is not cut within them
        stop, ending = (), frozenset()
    seed = secrets.randbits(64) if wire.seed is None else wire.seed
    # What `choice` keeps lives as long as the job; the wire request, with all its text, need not.
    ignores_eos, min_tokens, user = bool(wire.ignore_eos), wire.min_tokens or 0, wire.user
    includes_stop, context_length = bool(wire.include_stop_str_in_output), model.info.context_length

    def choice(index: int) -> Choice:
        prompt_index, sample_index = divmod(index, plan.best_of)
        prompt = plan.prompts[prompt_index]
        max_tokens = min(plan.max_tokens, context_length - len(prompt))
        request = GenerationRequest(
            id=f"{id}-{index}",
            prompt_tokens=prompt,
            max_tokens=max_tokens,
            sampling=replace(sampling, seed=sample_seed(seed, prompt_index, sample_index)),
            ignore_eos=ignores_eos,
            stop_tokens=ending,
            min_tokens=min(min_tokens, max_tokens),
            logprobs=plan.logprobs,
            grammar=plan.grammar,
            cache_key=model.cache_key(plan.caller.key_id, user, id),
            adapter=model.adapter_key,
            images=plan.spans,
            owner=(plan.caller.key_id, user or ""),
        )
        return Choice(index, request, stop, includes_stop, plan.echo, plan.channels, plan.tools)

    return GenerationJob(
        id,
        model,
        choices=_LazyChoices(choice, range(len(plan.prompts) * plan.best_of)),
        num_prompt_tokens=sum(map(len, plan.prompts)),
        n=wire.n or 1,
        best_of=plan.best_of,
        caller=plan.caller,
        user=user,
    )


class _LazyChoices(Sequence[Choice]):
    """Choices that are made when they are asked for: all of 256 prompts with 128 samples each take a third of a second,
    in which nobody else would be served."""

    def __init__(self, make: Callable[[int], Choice], indices: Sequence[int]) -> None:
        self._make = make
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[Choice]:
        return map(self._make, self._indices)

    @overload
    def __getitem__(self, place: int) -> Choice: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Choice]: ...
    def __getitem__(self, place: int | slice) -> Choice | Sequence[Choice]:
        found = self._indices[place]
        return self._make(found) if isinstance(found, int) else _LazyChoices(self._make, found)
