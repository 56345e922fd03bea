"""Token counts of an answer."""

from collections import Counter

from octavo.api.schemas.common import WireData
from octavo.core.output import TextEvent, Usage


class UsageCounter:
    """Counts the events of an answer with n choices for each prompt.

    The samples of a prompt find the first one's computation, so what they all found is what the prompt had cached.
    """

    def __init__(self, *, num_prompt_tokens: int, n: int) -> None:
        self._num_prompt_tokens = num_prompt_tokens
        self._n = n
        self._num_tokens = 0
        self._num_cached: Counter[int] = Counter()

    def push(self, event: TextEvent) -> None:
        self._num_tokens += event.num_tokens
        if event.num_cached:
            self._num_cached[event.index] += event.num_cached

    def flush(self) -> WireData:
        """The usage, once every choice has ended."""
        return _usage_data(Usage(self._num_prompt_tokens, self._num_tokens, self._cached_tokens()))

    def _cached_tokens(self) -> int:
        prompts = {index // self._n for index in self._num_cached}
        samples = [range(prompt * self._n, (prompt + 1) * self._n) for prompt in prompts]
        return sum(min(self._num_cached[index] for index in indexes) for indexes in samples)


def _usage_data(usage: Usage) -> WireData:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
