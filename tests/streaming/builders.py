"""Choices of invented tokens: one for each byte, and more that split characters, hold markers or have no text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from msgspec.structs import replace

from octavo.core.channels import PLAIN, Channel, ChannelFormat
from octavo.core.output import FinishReason, LogprobEntry, TextEvent, TokenChunk, TokenLogprob
from octavo.core.request import Choice, GenerationRequest, LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.core.vocabulary import SpecialToken, Vocabulary
from octavo.streaming import ChoiceStream, ContentFilter

END, BOS, THINK, CHANNEL, MESSAGE, CLOSE = range(256, 262)
CONTROLS = ("<|eot|>", "<s>", "<think>", "<|channel|>", "<|message|>", "<|end|>")
AB, JA_END, A_LEAD, B_LINE, THINKING, SPACED, MIXED = range(262, 269)
PIECES = (b"ab", "日本".encode()[1:], "a👩".encode()[:3], b"b\n", b"x</think>y", b" a", "c👩".encode()[2:])

VOCABULARY = Vocabulary(
    pieces=(*(bytes([value]) for value in range(256)), *(b"" for _ in CONTROLS), *PIECES),
    special_tokens=tuple(SpecialToken(256 + place, text, is_control=True) for place, text in enumerate(CONTROLS)),
    eog_tokens=frozenset({END}),
    bos_token=BOS,
    adds_bos=True,
    eos_token=END,
    adds_space_prefix=True,
)

THINK_FORMAT = ChannelFormat((("<think>", Channel.REASONING), ("</think>", Channel.ANSWER)))
HARMONY = ChannelFormat(
    (
        ("<|channel|>analysis<|message|>", Channel.REASONING),
        ("<|channel|>final<|message|>", Channel.ANSWER),
        ("<|end|>", Channel.HIDDEN),
    ),
    initial=Channel.HIDDEN,
)
FORMATS = (PLAIN, THINK_FORMAT, HARMONY, ChannelFormat(THINK_FORMAT.markers, Channel.REASONING))
ALL_LOGPROBS = LogprobParams(of_output=True, of_prompt=True, num_top=1)


def choice(
    *,
    prompt: Sequence[int] = (0,),
    stop: Sequence[str] = (),
    includes_stop: bool = False,
    echo: bool = False,
    channels: ChannelFormat = PLAIN,
    stop_tokens: Iterable[int] = (),
    min_tokens: int = 0,
    ignore_eos: bool = False,
    logprobs: LogprobParams = LogprobParams(),  # noqa: B008 -- frozen
) -> Choice:
    request = GenerationRequest(
        "r",
        tuple(prompt),
        max_tokens=1000,
        sampling=SamplingParams(),
        ignore_eos=ignore_eos,
        stop_tokens=frozenset(stop_tokens),
        min_tokens=min_tokens,
        logprobs=logprobs,
    )
    return Choice(3, request, tuple(stop), includes_stop, echo, channels)


def logprob_of(token: int, place: int) -> TokenLogprob:
    """Sums of these are exact, whatever the order."""
    return TokenLogprob(token, -(place % 64) / 16, ((token, -0.5),))


def byte_chunks(text: str, end: FinishReason) -> list[TokenChunk]:
    """One token a byte, each with its log-probability; an end token behind them where the answer ends by itself."""
    tokens = [*text.encode(), *([END] if end is FinishReason.STOP else [])]
    chunks = [TokenChunk((token,), logprobs=(logprob_of(token, place),)) for place, token in enumerate(tokens)]
    return [*chunks[:-1], replace(chunks[-1], finish_reason=end)]


def chunks_of(
    of: Choice, tokens: Sequence[int], cuts: Sequence[int] = (), reason: FinishReason | None = FinishReason.LENGTH
) -> list[TokenChunk]:
    """What an engine says: the prompt's log-probabilities, then the tokens, cut at places of both put together."""
    params, prompt = of.request.logprobs, of.request.prompt_tokens[1:]
    scores = [logprob_of(token, place) for place, token in enumerate(prompt)] if params.of_prompt else []
    borders = [0, *sorted(cuts), len(scores) + len(tokens)]
    return [
        _chunk(scores, tokens, span, params.of_output, reason if place == len(borders) - 2 else None, place)
        for place, span in enumerate(pairwise(borders))
    ]


def _chunk(
    scores: Sequence[TokenLogprob],
    tokens: Sequence[int],
    span: tuple[int, int],
    lists_output: bool,
    reason: FinishReason | None,
    place: int,
) -> TokenChunk:
    begin, end = (max(border - len(scores), 0) for border in span)
    logprobs = tuple(logprob_of(tokens[at], at) for at in range(begin, end)) if lists_output else ()
    cached = 7 if place == 0 else 0
    return TokenChunk(tuple(tokens[begin:end]), reason, logprobs, tuple(scores[span[0] : span[1]]), cached)


def events_of(
    of: Choice,
    tokens: Sequence[int],
    cuts: Sequence[int] | None = None,
    *,
    reason: FinishReason = FinishReason.LENGTH,
    content_filter: ContentFilter | None = None,
) -> list[TextEvent]:
    """The events of a choice; each token comes by itself unless cuts say otherwise."""
    stream = ChoiceStream(of, VOCABULARY, content_filter)
    chunks = chunks_of(of, tokens, range(num_places(of, tokens)) if cuts is None else cuts, reason)
    return [event for chunk in chunks if (event := stream.push(chunk)) is not None]


def num_places(of: Choice, tokens: Sequence[int]) -> int:
    """Of the prompt's log-probabilities and the tokens."""
    return len(tokens) + (len(of.request.prompt_tokens) - 1 if of.request.logprobs.of_prompt else 0)


@dataclass(frozen=True, slots=True)
class Answer:
    """The events of a choice, put together."""

    text: str
    reasoning: str
    entries: tuple[LogprobEntry, ...]
    finish_reason: FinishReason | None
    num_tokens: int
    num_cached: int
    logprob_sum: float

    @property
    def names(self) -> list[str]:
        return [entry.token for entry in self.entries]

    @property
    def bytes(self) -> list[bytes | None]:
        return [entry.bytes for entry in self.entries]


def folded(events: Sequence[TextEvent]) -> Answer:
    return Answer(
        "".join(event.text for event in events),
        "".join(event.reasoning for event in events),
        tuple(entry for event in events for entry in event.entries),
        events[-1].finish_reason,
        sum(event.num_tokens for event in events),
        sum(event.num_cached for event in events),
        sum(event.logprob_sum for event in events),
    )


def answer_to(of: Choice, tokens: Sequence[int], *, content_filter: ContentFilter | None = None) -> Answer:
    return folded(events_of(of, tokens, content_filter=content_filter))


def text_of(entries: Iterable[LogprobEntry]) -> str:
    return b"".join(entry.bytes or b"" for entry in entries).decode(errors="replace")
