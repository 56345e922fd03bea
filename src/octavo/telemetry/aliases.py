"""Our numbers under the names that dashboards for vLLM and for llama-server know.

Only names are here whose meaning ours have. They are made when the page is rendered, so they cost requests nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import Metric

_OF_ALL: Mapping[str, str] = {}
_BY_MODEL = {"model": "model_name"}
_BY_REASON = {**_BY_MODEL, "finish_reason": "finished_reason"}
_REASONS = {
    "tool_calls": "stop",
    "function_call": "stop",
    "content_filter": "stop",
    "cancelled": "abort",
    "closed": "abort",
}


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of the family `source`; both without `_total`.

    labels: the other names of its labels. Over those that are not here it is summed. values: of labels, likewise.
    is_sum: a counter that is the sum of what a histogram has seen.
    """

    name: str
    source: str
    labels: Mapping[str, str] = field(default_factory=lambda: _BY_MODEL)
    values: Mapping[str, str] = field(default_factory=dict)
    is_sum: bool = False


def _llama(name: str, source: str, *, is_sum: bool = False) -> Alias:
    """llama-server has one model and names it nowhere."""
    return Alias(f"llamacpp:{name}", source, _OF_ALL, is_sum=is_sum)


ALIASES = (
    Alias("vllm:num_requests_running", "octavo_requests_running"),
    Alias("vllm:num_requests_waiting", "octavo_requests_waiting"),
    Alias("vllm:kv_cache_usage_perc", "octavo_kv_cache_usage_ratio"),
    Alias("vllm:gpu_cache_usage_perc", "octavo_kv_cache_usage_ratio"),
    Alias("vllm:prompt_tokens", "octavo_prompt_tokens"),
    Alias("vllm:generation_tokens", "octavo_generation_tokens"),
    Alias("vllm:prefix_cache_queries", "octavo_prompt_tokens"),
    Alias("vllm:prefix_cache_hits", "octavo_cached_prompt_tokens"),
    Alias("vllm:gpu_prefix_cache_queries", "octavo_prompt_tokens"),
    Alias("vllm:gpu_prefix_cache_hits", "octavo_cached_prompt_tokens"),
    Alias("vllm:time_to_first_token_seconds", "octavo_time_to_first_token_seconds"),
    Alias("vllm:time_per_output_token_seconds", "octavo_time_per_output_token_seconds"),
    Alias("vllm:request_time_per_output_token_seconds", "octavo_time_per_output_token_seconds"),
    Alias("vllm:e2e_request_latency_seconds", "octavo_choice_duration_seconds"),
    Alias("vllm:request_queue_time_seconds", "octavo_queue_time_seconds"),
    Alias("vllm:request_prefill_time_seconds", "octavo_prefill_time_seconds"),
    Alias("vllm:request_decode_time_seconds", "octavo_decode_time_seconds"),
    Alias("vllm:request_prompt_tokens", "octavo_choice_prompt_tokens"),
    Alias("vllm:request_generation_tokens", "octavo_choice_generation_tokens"),
    Alias("vllm:request_success", "octavo_choices", _BY_REASON, _REASONS),
    _llama("requests_processing", "octavo_requests_running"),
    _llama("requests_deferred", "octavo_requests_waiting"),
    _llama("kv_cache_usage_ratio", "octavo_kv_cache_usage_ratio"),
    _llama("kv_cache_tokens", "octavo_kv_cache_tokens"),
    _llama("prompt_tokens", "octavo_computed_prompt_tokens"),
    _llama("tokens_predicted", "octavo_generation_tokens"),
    _llama("prompt_seconds", "octavo_prefill_time_seconds", is_sum=True),
    _llama("tokens_predicted_seconds", "octavo_decode_time_seconds", is_sum=True),
)


def aliases_of(families: Iterable[Metric]) -> Iterator[Metric]:
    """Of those families that have other names."""
    by_name = {family.name: family for family in families}
    return (_renamed(by_name[alias.source], alias) for alias in ALIASES if alias.source in by_name)


def _renamed(family: Metric, alias: Alias) -> Metric:
    sums: defaultdict[tuple[str, tuple[tuple[str, str], ...]], float] = defaultdict(float)
    for sample in family.samples:
        suffix = _suffix(sample.name.removeprefix(family.name), alias)
        if suffix is not None:
            sums[suffix, _labels(sample.labels, alias)] += sample.value
    renamed = Metric(alias.name, f"The same as {alias.source}.", "counter" if alias.is_sum else family.type)
    for (suffix, labels), value in sums.items():
        renamed.add_sample(f"{alias.name}{suffix}", dict(labels), value)
    return renamed


def _suffix(suffix: str, alias: Alias) -> str | None:
    """None for a sample that has no other name."""
    if alias.is_sum:
        return "_total" if suffix == "_sum" else None
    return None if suffix == "_created" else suffix


def _labels(labels: Mapping[str, str], alias: Alias) -> tuple[tuple[str, str], ...]:
    names = {**alias.labels, "le": "le"}  # a histogram's buckets
    return tuple((names[name], alias.values.get(value, value)) for name, value in labels.items() if name in names)
