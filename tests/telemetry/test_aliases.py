"""Our numbers under others' names."""

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from octavo.telemetry.aliases import ALIASES
from octavo.telemetry.choice_metrics import ChoicePhases, EndedChoice
from octavo.telemetry.metrics import Metrics


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    families = text_string_to_metric_families(metrics.render().decode())
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return next((sample.value for sample in samples if sample.labels == labels), None)


def test_every_name_is_that_of_something_and_there_once(metrics: Metrics) -> None:
    families = [family.name for family in text_string_to_metric_families(metrics.render().decode())]
    assert all(families.count(alias.name) == 1 for alias in ALIASES)
    assert len(families) == len(set(families))


def test_a_model_is_called_by_another_label(metrics: Metrics) -> None:
    metrics.count_prompt_tokens("a", 7)
    metrics.count_prompt_tokens("b", 8)
    assert value(metrics, "vllm:prompt_tokens_total", model_name="a") == 7
    assert value(metrics, "vllm:prompt_tokens_total", model_name="b") == 8


def test_what_has_no_label_there_is_a_sum(metrics: Metrics) -> None:
    metrics.count_generation_tokens("a", 7)
    metrics.count_generation_tokens("b", 8)
    assert value(metrics, "llamacpp:tokens_predicted_total") == 15


def test_reasons_that_are_one_there_are_summed(metrics: Metrics) -> None:
    for reason in ("stop", "tool_calls", "content_filter", "length", "cancelled", "closed", "error"):
        metrics.observe_choice("a", EndedChoice(reason, num_prompt_tokens=1, num_tokens=1, seconds=1.0))
    counts = {
        reason: value(metrics, "vllm:request_success_total", model_name="a", finished_reason=reason)
        for reason in ("stop", "length", "abort", "error", "closed")
    }
    assert counts == {"stop": 3, "length": 1, "abort": 2, "error": 1, "closed": None}


def test_a_histogram_has_its_buckets_and_may_be_told_by_its_sum(metrics: Metrics) -> None:
    for model, prefill in (("a", 0.5), ("b", 0.25)):
        metrics.observe_phases(model, ChoicePhases(queue=0.0, prefill=prefill, decode=2.0))
    assert value(metrics, "vllm:request_prefill_time_seconds_bucket", model_name="a", le="0.25") == 0
    assert value(metrics, "vllm:request_prefill_time_seconds_bucket", model_name="a", le="0.5") == 1
    assert value(metrics, "vllm:request_prefill_time_seconds_count", model_name="b") == 1
    assert value(metrics, "vllm:request_prefill_time_seconds_sum", model_name="b") == 0.25
    assert value(metrics, "llamacpp:prompt_seconds_total") == 0.75
    assert value(metrics, "llamacpp:tokens_predicted_seconds_total") == 4
