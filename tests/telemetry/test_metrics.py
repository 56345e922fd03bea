"""The numbers that are scraped."""

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from octavo.telemetry.metrics import Metrics


def samples_of(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        (sample.name, tuple(sample.labels.values())): sample.value for family in families for sample in family.samples
    }


def test_requests_are_counted_by_endpoint_and_status_and_timed_by_endpoint() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.observe_request("/v1/completions", 200, 0.5)
    metrics.observe_request("/v1/completions", 422, 0.25)
    samples = samples_of(metrics)
    assert samples["octavo_requests_total", ("/v1/completions", "200")] == 1
    assert samples["octavo_requests_total", ("/v1/completions", "422")] == 1
    assert samples["octavo_request_duration_seconds_count", ("/v1/completions",)] == 2
    assert samples["octavo_request_duration_seconds_sum", ("/v1/completions",)] == 0.75


def test_tokens_and_their_times_are_kept_for_each_model() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.count_prompt_tokens("a", 7)
    metrics.count_cached_prompt_tokens("a", 5)
    metrics.count_generation_tokens("a", 3)
    metrics.count_generation_tokens("b", 4)
    metrics.observe_time_to_first_token("a", 0.5)
    metrics.observe_time_per_output_token("a", 0.25)
    samples = samples_of(metrics)
    assert samples["octavo_prompt_tokens_total", ("a",)] == 7
    assert samples["octavo_cached_prompt_tokens_total", ("a",)] == 5
    assert samples["octavo_generation_tokens_total", ("a",)] == 3
    assert samples["octavo_generation_tokens_total", ("b",)] == 4
    assert samples["octavo_time_to_first_token_seconds_sum", ("a",)] == 0.5
    assert samples["octavo_time_per_output_token_seconds_sum", ("a",)] == 0.25


def test_an_engine_is_shown_as_it_was_last_observed() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.observe_engine("a", num_running=8, num_waiting=5, batch_size=8, num_restarts=0)
    metrics.observe_engine("a", num_running=2, num_waiting=0, batch_size=1, num_restarts=3)
    samples = samples_of(metrics)
    assert samples["octavo_requests_running", ("a",)] == 2
    assert samples["octavo_requests_waiting", ("a",)] == 0
    assert samples["octavo_batch_size", ("a",)] == 1
    assert samples["octavo_engine_restarts_total", ("a",)] == 3


def test_adapters_are_shown_as_they_were_last_observed_and_their_loads_are_counted() -> None:
    metrics = Metrics(CollectorRegistry())
    for number in (3, 1):
        metrics.observe_adapters("a", number)
    for is_loaded in (True, True, False):
        metrics.count_adapter_load("a", is_loaded=is_loaded)
    samples = samples_of(metrics)
    assert samples["octavo_adapters_loaded", ("a",)] == 1
    assert samples["octavo_adapter_loads_total", ("a", "loaded")] == 2
    assert samples["octavo_adapter_loads_total", ("a", "refused")] == 1


def test_what_is_forgotten_is_shown_no_more_and_may_be_unknown() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.count_prompt_tokens("a", 7)
    metrics.observe_time_to_first_token("a", 0.5)
    metrics.count_prompt_tokens("b", 8)
    for model in ("a", "a", "nobody"):
        metrics.forget_model(model)
    samples = samples_of(metrics)
    assert {labels for _, labels in samples if labels} >= {("b",)}
    assert not any("a" in labels for _, labels in samples)
    metrics.count_prompt_tokens("a", 1)
    assert samples_of(metrics)["octavo_prompt_tokens_total", ("a",)] == 1


def test_the_restart_counter_never_falls_and_counts_no_restart_twice() -> None:
    metrics = Metrics(CollectorRegistry())
    for total in (1, 1, 0, 2):
        metrics.observe_engine("a", num_running=0, num_waiting=0, batch_size=0, num_restarts=total)
    assert samples_of(metrics)["octavo_engine_restarts_total", ("a",)] == 2


def test_two_registries_do_not_share_numbers() -> None:
    first, second = Metrics(CollectorRegistry()), Metrics(CollectorRegistry())
    first.count_prompt_tokens("a", 1)
    assert ("octavo_prompt_tokens_total", ("a",)) not in samples_of(second)
