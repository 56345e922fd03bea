"""The workloads of `make bench-peers`, by letter. End-of-generation tokens are ignored: all do the same work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.load import Endpoint, LoadConfig
from benchmarks.load_result import LoadResult
from benchmarks.scenarios import Conversations, LongPromptBeside, Samples, Scenario, SteadyStreams
from benchmarks.schemas import PEOPLE, response_format
from benchmarks.texts import repetitive_prompts

URL = "http://127.0.0.1"
"""The port is that of the server that was started for a measurement."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What of a result is compared."""

    name: str
    value: Callable[[LoadResult], float | None]
    is_higher_better: bool = True


OUTPUT_RATE = Figure("output tokens/s", lambda load: load.output_tokens_per_second)
FIRST_TOKEN = Figure(
    "time to first token, median ms",
    lambda load: load.time_to_first_token_ms.median if load.time_to_first_token_ms else None,
    is_higher_better=False,
)
LARGEST_GAP = Figure("largest gap, ms", lambda load: load.largest_gap_ms, is_higher_better=False)
JOINT_RATE = Figure("output tokens/s while every stream is answered", lambda load: load.joint_tokens_per_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """context_length: tokens that each sequence needs room for.

    is_repetitive: its answers repeat their prompts, so servers are compared that look back in the text.
    is_raw: it is set against computation alone.
    """

    title: str
    scenario: Scenario
    stream_counts: tuple[int, ...]
    context_length: int
    figure: Figure = OUTPUT_RATE
    is_repetitive: bool = False
    is_raw: bool = False


def request(
    *,
    endpoint: Endpoint = Endpoint.COMPLETIONS,
    prompt_tokens: int = 104,
    shared_prefix_tokens: int = 0,
    max_tokens: int = 64,
    temperature: float = 0.8,
    texts: tuple[str, ...] = (),
    extra: dict[str, object] | None = None,
) -> LoadConfig:
    return LoadConfig(
        url=URL,
        endpoint=endpoint,
        prompt_tokens=prompt_tokens,
        shared_prefix_tokens=shared_prefix_tokens,
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=0.95,
        ignore_eos=True,
        texts=texts,
        extra=extra or {},
    )


WORKLOADS: dict[str, Workload] = {
    "a": Workload(
        title="streams of prompts of 104 tokens, 64 new tokens, temperature 0.8, top_p 0.95",
        scenario=SteadyStreams(request()),
        stream_counts=(1, 8, 32, 64),
        context_length=512,
    ),
    "b": Workload(
        title="a prefix of 600 tokens that all prompts share, 104 tokens of their own, 64 new tokens",
        scenario=SteadyStreams(request(shared_prefix_tokens=600)),
        stream_counts=(16, 32),
        context_length=1024,
    ),
    "c": Workload(
        title="chat with a growing history: 6 turns, a system message of 200 tokens for all, 40 tokens a question, "
        "64 an answer; all users speak at the same time; compared at turn 6",
        scenario=Conversations(request(endpoint=Endpoint.CHAT, prompt_tokens=40), num_turns=6, system_tokens=200),
        stream_counts=(8,),
        context_length=1536,
        figure=FIRST_TOKEN,
    ),
    "d": Workload(
        title="n = streams choices of one prompt of 600 tokens, 64 new tokens each",
        scenario=Samples(request(prompt_tokens=600)),
        stream_counts=(8,),
        context_length=1024,
    ),
    "e": Workload(
        title="a prompt of 4,000 tokens that comes when all short streams (104 tokens, 64 new ones) are being answered",
        scenario=LongPromptBeside(request(), long_prompt_tokens=4000),
        stream_counts=(8,),
        context_length=4352,
        figure=LARGEST_GAP,
    ),
    "f": Workload(
        title="repetitive text: a file with one name changed, and quotations of an article, in turn; 256 new tokens, "
        "temperature 0",
        scenario=SteadyStreams(
            request(prompt_tokens=380, max_tokens=256, temperature=0.0, texts=repetitive_prompts()),
            requests_per_stream=4,
        ),
        stream_counts=(1, 4),
        context_length=1024,
        is_repetitive=True,
    ),
    "h-schema": Workload(
        title="as (a), to a chat, under a JSON schema that allows nothing shorter",
        scenario=SteadyStreams(request(endpoint=Endpoint.CHAT, extra=response_format(PEOPLE))),
        stream_counts=(8, 32),
        context_length=512,
    ),
    "h-logprobs": Workload(
        title="as (a), with the log-probabilities of the 5 most probable tokens",
        scenario=SteadyStreams(request(extra={"logprobs": 5})),
        stream_counts=(8, 32),
        context_length=512,
    ),
    "raw": Workload(
        title="as (a), with 192 new tokens, one request a stream, from all first tokens to the first end",
        scenario=SteadyStreams(request(max_tokens=192), requests_per_stream=1),
        stream_counts=(32,),
        context_length=512,
        figure=JOINT_RATE,
        is_raw=True,
    ),
}
"""(g), 500 streams of the scripted engine, is `python -m benchmarks.api_layer`: it has no peer."""
