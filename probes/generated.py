"""Bodies that nobody wrote: hypothesis puts good, bad and strange values together."""

import json
from typing import Any

import httpx
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from probes.answer import NO_ANSWER, SECONDS, Answer
from probes.cases import CHAT, COMPLETIONS, JSON
from probes.counts import Counts
from probes.target import Target

EXPECTED = (200, 400, 404, 413, 422)
MAX_NUM_CHOICES = 2
FIELDS = (
    *("max_tokens", "max_completion_tokens", "min_tokens", "n", "best_of", "temperature", "top_p", "min_p", "top_k"),
    *("frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias", "logprobs", "top_logprobs", "echo"),
    *("loglikelihood", "ignore_eos", "stop", "stop_token_ids", "seed", "stream", "stream_options", "suffix", "user"),
    *("response_format", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "peft"),
    *("reasoning_effort", "chat_template_kwargs", "include_stop_str_in_output", "model", "prompt", "messages"),
)
texts = st.text(max_size=20) | st.sampled_from(
    ("", "\0", "\U0001f600", "demo", "<|end|>", "text", "auto", "json_object")
)
numbers = (
    st.integers() | st.floats() | st.integers(-2, 3) | st.sampled_from((2**31, 2**63, -(2**63) - 1, 10**400, 1e308))
)
anything = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
fields = st.dictionaries(st.sampled_from(FIELDS) | texts, anything, max_size=5)


def generated_bodies(target: Target) -> Counts:
    """Send as many as the target's examples, the same for the same seed."""
    counts = Counts()
    headers = {**JSON, **target.headers}
    with httpx.Client(base_url=target.url, headers=headers, timeout=SECONDS, trust_env=False) as client:

        @seed(target.seed)
        @settings(
            max_examples=target.examples,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
            database=None,
            deadline=None,
        )
        @given(path=st.sampled_from((COMPLETIONS, CHAT)), given_fields=fields, damage=st.none() | st.binary(max_size=4))
        def send(path: str, given_fields: dict[str, Any], damage: bytes | None) -> None:
            body = body_of(path, target.model, given_fields)
            if damage is not None:
                body = body[: len(body) // 2] + damage + body[len(body) // 2 :]
            judge(counts, client, path, body)

        send()
    return counts


def judge(counts: Counts, client: httpx.Client, path: str, body: bytes) -> None:
    try:
        answer = Answer.of(client.post(path, content=body))
    except httpx.HTTPError:
        answer = NO_ANSWER
    counts.judge(f"{path} {body[:300]!r}", answer, EXPECTED, sent=body)


def body_of(path: str, model: str, given_fields: dict[str, Any]) -> bytes:
    """Of a request that would be answered without these fields. It asks for few tokens and choices, to end soon."""
    prompt = {"prompt": "x"} if path == COMPLETIONS else {"messages": [{"role": "user", "content": "x"}]}
    data = {"model": model, **prompt, "max_tokens": 2, **given_fields}
    for name in ("n", "best_of"):
        if isinstance(data.get(name), int) and MAX_NUM_CHOICES < data[name] <= 128:
            data[name] = MAX_NUM_CHOICES
    return json.dumps(data, ensure_ascii=True).encode("utf-8", "surrogatepass")
