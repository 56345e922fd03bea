"""Token counts of an answer."""

from typing import Any

from octavo.api.usage import UsageCounter
from octavo.core.output import TextEvent


def usage(*events: TextEvent, n: int = 1, num_prompt_tokens: int = 10) -> dict[str, Any]:
    counter = UsageCounter(num_prompt_tokens=num_prompt_tokens, n=n)
    for event in events:
        counter.push(event)
    return counter.flush()


def event(index: int, num_tokens: int = 1, num_cached: int = 0) -> TextEvent:
    return TextEvent(index, "x", num_tokens, num_cached=num_cached)


def test_the_tokens_of_all_choices_are_counted_and_the_prompt_once() -> None:
    assert usage(event(0, 3), event(1, 4), event(0, 2), n=2) == {
        "prompt_tokens": 10,
        "completion_tokens": 9,
        "total_tokens": 19,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def cached(*events: TextEvent, n: int) -> int:
    number = usage(*events, n=n)["prompt_tokens_details"]["cached_tokens"]
    assert isinstance(number, int)
    return number


def test_what_one_sample_finds_of_another_was_not_cached() -> None:
    assert cached(event(0, num_cached=0), event(1, num_cached=9), event(2, num_cached=9), n=3) == 0


def test_a_prompt_shared_by_samples_has_what_each_of_them_found() -> None:
    assert cached(event(1, num_cached=9), event(0, num_cached=4), event(2, num_cached=9), n=3) == 4


def test_the_cached_tokens_of_all_prompts_add_up() -> None:
    assert cached(event(0, num_cached=4), event(1, num_cached=2), event(2), event(3, num_cached=7), n=1) == 13
    assert cached(event(0, num_cached=4), event(1, num_cached=2), event(2), event(3, num_cached=7), n=2) == 2


def test_a_choice_says_once_what_it_found() -> None:
    assert cached(event(0, num_cached=4), event(0), event(0), n=1) == 4
