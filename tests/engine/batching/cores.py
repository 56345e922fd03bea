"""A core over given logits, and the plain loop that it must equal."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from hypothesis import strategies as st

from engine.batching.fake_vision import fingerprints
from engine.builders import EOG_TOKEN, sequence
from octavo.core.adapters import Adapter
from octavo.core.output import FinishReason, TokenLogprob
from octavo.core.request import GenerationRequest, LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.engine.batching.composer import Composer, MixedSteps
from octavo.engine.batching.core import EngineCore, Output
from octavo.engine.batching.image_store import ImageStore
from octavo.engine.batching.runner import ForwardBatch, ImagePiece, RunnerLimits
from octavo.engine.batching.sampler import sample
from octavo.engine.runners.scripted import NextLogits, ScriptedRunner
from octavo.errors import EngineError


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """end: an error's message where it did not end well. Two are equal when their numbers are so to four places."""

    tokens: tuple[int, ...]
    end: FinishReason | str
    logprobs: tuple[TokenLogprob, ...] = ()
    prompt_logprobs: tuple[TokenLogprob, ...] = ()

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Answer)
        return (self.tokens, self.end) == (other.tokens, other.end) and are_close(
            (*self.logprobs, *self.prompt_logprobs), (*other.logprobs, *other.prompt_logprobs)
        )


def are_close(some: Sequence[TokenLogprob], others: Sequence[TokenLogprob]) -> bool:
    def ids(all: Sequence[TokenLogprob]) -> list[tuple[int, ...]]:
        return [(each.token, *(token for token, _ in each.top)) for each in all]

    def values(all: Sequence[TokenLogprob]) -> list[float]:
        return [value for each in all for value in (each.logprob, *(value for _, value in each.top))]

    return ids(some) == ids(others) and np.allclose(values(some), values(others), rtol=0, atol=1e-5)


def core(
    runner: ScriptedRunner, composer: Callable[[RunnerLimits], Composer] = MixedSteps, max_saved: int = 0
) -> EngineCore:
    return EngineCore(runner, composer(runner.limits), eog_tokens=frozenset({EOG_TOKEN}), max_saved=max_saved)


class SeeingCore(EngineCore):
    """Encodes an image as soon as nobody can go on without."""

    def __init__(self, runner: ScriptedRunner, composer: Composer, images: ImageStore, *, max_saved: int = 0) -> None:
        super().__init__(
            runner,
            composer,
            eog_tokens=frozenset({EOG_TOKEN}),
            max_saved=max_saved,
            embeddings_of=images.embeddings,
        )
        self._images = images

    def step(self) -> list[Output]:
        outputs = super().step()
        if (span := self.unseen_span) is not None:
            self._images.encode(span, lambda: True)
        return outputs


ADAPTERS = tuple(Adapter(key, f"/adapters/{key}.gguf", "") for key in ("a", "b", "c"))
_MARKS = {key: number << 20 for number, key in enumerate(("", *(each.key for each in ADAPTERS)))}


class AdaptedRunner(ScriptedRunner):
    """Another model with each of ADAPTERS: it remembers a token together with the adapter that it was computed with.

    It checks that it is shown what belongs in the places of stand-ins for images.
    """

    def forward(self, batch: ForwardBatch) -> np.ndarray:
        if batch.image is not None:
            _check_image(batch, batch.image)
        return super().forward(replace(batch, tokens=batch.tokens ^ np.int32(_MARKS[batch.adapter])))


def _check_image(batch: ForwardBatch, piece: ImagePiece) -> None:
    assert len(set(batch.slots.tolist())) == 1
    places = range(piece.start, piece.start + len(batch.tokens))
    # The very last token of a prompt that is only scored is never computed.
    assert not piece.embeddings.is_whole or len(places) >= len(piece.embeddings.values) - 1
    values = piece.embeddings.values[places.start : places.stop]
    assert values[:, 0].tolist() == fingerprints(batch.tokens).tolist()
    assert values[:, 1].tolist() == list(places)


def adapted(next_logits: NextLogits, adapter: str) -> NextLogits:
    """What an AdaptedRunner computes with an adapter."""
    return lambda tokens: next_logits(tuple(token ^ _MARKS[adapter] for token in tokens))


def alone(asked: GenerationRequest, next_logits: NextLogits, context_length: int = 64) -> Answer:
    """The plain loop: all tokens so far, the next one, and so on."""
    output: list[int] = []
    ending = asked.stop_tokens if asked.ignore_eos else asked.stop_tokens | {EOG_TOKEN}
    reason = FinishReason.LENGTH
    while len(output) < min(asked.max_tokens, max(context_length - len(asked.prompt_tokens), 1)):
        logits = next_logits((*asked.prompt_tokens, *output))
        if len(output) < asked.min_tokens:
            logits[list(ending)] = -np.inf
        so_far = sequence(asked.prompt_tokens, tuple(output), sampling=asked.sampling)
        output.append(int(sample(logits[np.newaxis].copy(), [so_far])[0]))
        if output[-1] in ending:
            reason = FinishReason.STOP
            break
    known, start = (*asked.prompt_tokens, *output), len(asked.prompt_tokens)
    wanted = asked.logprobs
    return Answer(
        tuple(output),
        reason,
        tuple(_logprobs(known, range(start, len(known)), next_logits, wanted)) if wanted.of_output else (),
        tuple(_logprobs(known, range(1, start), next_logits, wanted)) if wanted.of_prompt else (),
    )


def _logprobs(
    tokens: tuple[int, ...], places: Iterable[int], next_logits: NextLogits, wanted: LogprobParams
) -> Iterable[TokenLogprob]:
    for place in (place for place in places if tokens[place] >= 0):
        logits = next_logits(tokens[:place]).astype(np.float64)
        values = (logits - np.log(np.exp(logits).sum())).tolist()
        best = sorted(range(len(values)), key=lambda token: -logits[token])[: wanted.num_top]
        yield TokenLogprob(tokens[place], values[tokens[place]], tuple((token, values[token]) for token in best))


class Answers:
    """What came out of a core, by request."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[Output]] = {}

    def take(self, outputs: Iterable[Output]) -> None:
        for id, item in outputs:
            chunks = self._chunks.setdefault(id, [])
            assert not chunks or not _ends(chunks[-1]), "nothing comes after the end"
            chunks.append((id, item))

    def of(self, asked: GenerationRequest) -> Answer:
        """As far as it has come."""
        items = [item for _, item in self._chunks.get(asked.id, [])]
        chunks = [item for item in items if not isinstance(item, EngineError)]
        errors = [item.message for item in items if isinstance(item, EngineError)]
        reasons = [chunk.finish_reason for chunk in chunks if chunk.finish_reason is not None]
        return Answer(
            tuple(token for chunk in chunks for token in chunk.tokens),
            (errors or reasons or ["unfinished"])[0],
            tuple(each for chunk in chunks for each in chunk.logprobs),
            tuple(each for chunk in chunks for each in chunk.prompt_logprobs),
        )

    def num_cached(self, asked: GenerationRequest) -> int:
        return sum(item.num_cached for _, item in self._chunks[asked.id] if not isinstance(item, EngineError))


def _ends(output: Output) -> bool:
    return isinstance(output[1], EngineError) or output[1].finish_reason is not None


def run(under_test: EngineCore, *requests: GenerationRequest) -> Answers:
    answers = Answers()
    for each in requests:
        answers.take(under_test.submit(each))
    for _ in range(10_000):
        if not under_test.has_work:
            return answers
        answers.take(under_test.step())
    raise AssertionError("it does not end")


@dataclass
class Visit:
    asked: GenerationRequest
    arrival: int
    cancelled_at: int | None


samplings = st.builds(
    SamplingParams,
    temperature=st.sampled_from((0.0, 0.8, 1.5)),
    top_k=st.sampled_from((0, 5)),
    top_p=st.sampled_from((1.0, 0.9)),
    presence_penalty=st.sampled_from((0.0, 0.6)),
    repetition_penalty=st.sampled_from((1.0, 1.2)),
    seed=st.integers(0, 1000),
)


def visits_of(requests: st.SearchStrategy[GenerationRequest]) -> st.SearchStrategy[list[Visit]]:
    return st.lists(st.builds(Visit, requests, st.integers(0, 10), st.none() | st.integers(0, 20)), max_size=8)


def play(under_test: EngineCore, visits: list[Visit]) -> Answers:
    """Everybody comes and leaves in time; steps until nothing is left."""
    answers = Answers()
    for step in count():
        assert step < 3000
        for visit in visits:
            if visit.arrival == step:
                answers.take(under_test.submit(visit.asked))
            if visit.cancelled_at == step:
                under_test.cancel(visit.asked.id)
        if under_test.has_work:
            answers.take(under_test.step())
        elif step > 20:
            break
    return answers


def check_all(visits: list[Visit], answers: Answers, next_logits: NextLogits) -> None:
    for visit in visits:
        expected, given = alone(visit.asked, next_logits), answers.of(visit.asked)
        if visit.cancelled_at is None or visit.cancelled_at < visit.arrival:
            assert given == expected
        else:
            assert given.tokens == expected.tokens[: len(given.tokens)]
            assert are_close(given.prompt_logprobs, expected.prompt_logprobs[: len(given.prompt_logprobs)])
