"""Entries and events as the layers below give them."""

from itertools import product
from typing import Any

import msgspec
from hypothesis import strategies as st

from octavo.core.output import Alternative, FinishReason, LogprobEntry, TextEvent
from octavo.core.tools import ToolCallDelta


def entry(
    token: str, logprob: float | None, *, top: tuple[Alternative, ...] = (), offset: int | None = None
) -> LogprobEntry:
    """A token that is its own text."""
    return LogprobEntry(token, token.encode(), logprob, top, offset)


def encoded(data: Any) -> str:
    return msgspec.json.encode(data).decode()


TOKENS = (("a", b"a"), ("\\xe6", b"\xe6"), ("é", "é".encode()), ("<|end|>", None), ("", b""))
TOPS = tuple(
    tuple(Alternative(*token, -0.5 * place) for place, token in enumerate(tokens))
    for tokens in ((), TOKENS[:1], TOKENS[:3], TOKENS[::-1], (TOKENS[0], TOKENS[0]))
)
ENTRIES = st.lists(
    st.sampled_from(
        [
            LogprobEntry(*token, logprob, top, offset)
            for token, logprob, top, offset in product(TOKENS, (None, -1e5, -1.25, 0.0), TOPS, (None, 0, 7))
        ]
    ),
    max_size=4,
)
"""Of any kind, in any order; not what one text would give."""

TEXTS = st.sampled_from(["", "", "a", "é漢", "\u2028\n"])


@st.composite
def answers(draw: st.DrawFn) -> list[TextEvent]:
    """The events of some choices, in some order of arrival."""
    waiting = [_events(draw, index) for index in range(draw(st.integers(1, 2)))]
    events = []
    while waiting:
        choice = draw(st.sampled_from(waiting))
        events.append(choice.pop(0))
        waiting = [choice for choice in waiting if choice]
    return events


def _events(draw: st.DrawFn, index: int) -> list[TextEvent]:
    reasons = [None] * draw(st.integers(0, 3)) + [draw(st.sampled_from(FinishReason))]
    calls = _call_deltas(draw)
    return [
        TextEvent(
            index,
            draw(TEXTS),
            num_tokens=draw(st.integers(0, 3)),
            finish_reason=reason,
            reasoning=draw(TEXTS),
            entries=tuple(draw(ENTRIES)),
            tool_calls=tuple(calls.pop(0) for _ in range(draw(st.integers(0, len(calls))))),
        )
        for reason in reasons
    ]


def _call_deltas(draw: st.DrawFn) -> list[ToolCallDelta]:
    """Of some calls; an answer may end before their end."""
    deltas = []
    for index in range(draw(st.integers(0, 2))):
        deltas.append(ToolCallDelta(index, f"call_{index}", draw(st.sampled_from("fg")), ""))
        deltas += [ToolCallDelta(index, "", "", part) for part in draw(st.sampled_from([[], ["{}"], ["{", '"é": 1}']]))]
    return deltas
