"""The best of several candidates for an answer."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from math import inf

from msgspec.structs import replace

from octavo.core.output import TextEvent


class BestOf:
    """Keeps the n best of each prompt's best_of candidates, which are all held until the last of them has ended.

    The best is the one with the highest mean log-probability of all its generated tokens, those included whose text is
    no part of its answer. One without tokens, which was ended before its first one came, is the worst. Of equals, the
    one with the lower sample index is better.
    """

    def __init__(self, *, n: int, best_of: int) -> None:
        self._n = n
        self._best_of = best_of
        self._candidates: dict[int, list[list[TextEvent]]] = {}

    def push(self, event: TextEvent) -> Sequence[TextEvent]:
        """The answers to a prompt when its last candidate ends, one event each, best first; nothing before that.

        event: its index is prompt_index * best_of + sample_index, that of the answers is prompt_index * n + rank.
        The tokens of the candidates that are left out are counted with the best one's, and as many prompt tokens were
        found computed as for the candidate for which the fewest were.
        """
        prompt_index, sample_index = divmod(event.index, self._best_of)
        candidates = self._candidates.setdefault(prompt_index, [[] for _ in range(self._best_of)])
        candidates[sample_index].append(event)
        if not all(map(_has_ended, candidates)):
            return ()
        return self._best(prompt_index * self._n, [*map(TextEvent.joined, self._candidates.pop(prompt_index))])

    def _best(self, first_index: int, candidates: Sequence[TextEvent]) -> Sequence[TextEvent]:
        ranked = sorted(candidates, key=_mean_logprob, reverse=True)
        kept, left_out = ranked[: self._n], ranked[self._n :]
        kept[0] = replace(kept[0], num_tokens=kept[0].num_tokens + sum(each.num_tokens for each in left_out))
        num_cached = min(candidate.num_cached for candidate in candidates)
        return [replace(each, index=index, num_cached=num_cached) for index, each in enumerate(kept, first_index)]


async def best_of_each_prompt(
    candidates: AsyncGenerator[TextEvent, None], *, n: int, best_of: int
) -> AsyncGenerator[TextEvent, None]:
    """What `BestOf` makes of the candidates' events. Closes them when it is closed."""
    best = BestOf(n=n, best_of=best_of)
    async with aclosing(candidates):
        async for event in candidates:
            for chosen in best.push(event):
                yield chosen


def _has_ended(events: Sequence[TextEvent]) -> bool:
    return bool(events) and events[-1].finish_reason is not None


def _mean_logprob(candidate: TextEvent) -> float:
    return candidate.logprob_sum / candidate.num_tokens if candidate.num_tokens else -inf
