"""The numbers that are scraped."""

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from octavo.telemetry.choice_metrics import ChoicePhases, EndedChoice
from octavo.telemetry.metrics import Metrics
from octavo.telemetry.usage_metrics import MAX_SHOWN
from octavo.telemetry.user_hash import user_hash


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


def test_deaths_of_an_engine_are_counted_by_reason_and_what_caused_them() -> None:
    metrics = Metrics(CollectorRegistry())
    for deaths, num_quarantined in (({"SIGKILL": 1}, 0), ({"SIGKILL": 1, "hung_step": 2}, 1)):
        metrics.observe_deaths("a", deaths, num_quarantined=num_quarantined)
    samples = samples_of(metrics)
    assert samples["octavo_engine_deaths_total", ("a", "SIGKILL")] == 1
    assert samples["octavo_engine_deaths_total", ("a", "hung_step")] == 2
    assert samples["octavo_requests_quarantined_total", ("a",)] == 1


def test_rows_of_the_prompt_log_that_are_lost_are_seen_to_grow_from_nothing() -> None:
    metrics = Metrics(CollectorRegistry())
    assert samples_of(metrics)["octavo_prompt_log_rows_total", ("lost",)] == 0
    metrics.count_log_row("lost")
    assert samples_of(metrics)["octavo_prompt_log_rows_total", ("lost",)] == 1


def test_what_the_prompt_log_has_set_aside_is_told_by_files_and_bytes() -> None:
    metrics = Metrics(CollectorRegistry())
    for num_files, num_bytes in ((3, 1000), (2, 900)):
        metrics.observe_set_aside(num_files, num_bytes)
        samples = samples_of(metrics)
        assert samples["octavo_prompt_log_set_aside_files", ()] == num_files
        assert samples["octavo_prompt_log_set_aside_bytes", ()] == num_bytes


def test_the_end_of_a_choice_is_told_by_its_reason_and_what_it_took() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.observe_choice("a", EndedChoice("stop", num_prompt_tokens=7, num_tokens=30, seconds=2.5))
    metrics.observe_choice("a", EndedChoice("closed", num_prompt_tokens=9, num_tokens=0, seconds=0.5))
    metrics.observe_phases("a", ChoicePhases(queue=0.25, prefill=0.5, decode=1.5))
    samples = samples_of(metrics)
    assert samples["octavo_choices_total", ("closed", "a")] == 1
    assert samples["octavo_choice_prompt_tokens_sum", ("a",)] == 16
    assert samples["octavo_choice_generation_tokens_sum", ("a",)] == 30
    assert samples["octavo_choice_duration_seconds_sum", ("a",)] == 3
    assert samples["octavo_queue_time_seconds_sum", ("a",)] == 0.25
    assert samples["octavo_prefill_time_seconds_sum", ("a",)] == 0.5
    assert samples["octavo_decode_time_seconds_sum", ("a",)] == 1.5
    metrics.forget_model("a")
    assert not any("a" in labels for _, labels in samples_of(metrics))


def test_the_cache_is_shown_as_a_part_of_what_it_holds() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.observe_cache("a", num_tokens=25, max_tokens=100, num_saved_prefixes=3, num_saved_tokens=40)
    metrics.observe_cache("b", num_tokens=0, max_tokens=0, num_saved_prefixes=0, num_saved_tokens=0)
    samples = samples_of(metrics)
    assert samples["octavo_kv_cache_usage_ratio", ("a",)] == 0.25
    assert samples["octavo_kv_cache_tokens", ("a",)] == 25
    assert samples["octavo_saved_prefixes", ("a",)] == 3
    assert samples["octavo_saved_tokens", ("a",)] == 40
    assert samples["octavo_kv_cache_usage_ratio", ("b",)] == 0


def test_tokens_are_counted_for_keys_and_for_users_by_a_hash() -> None:
    metrics = Metrics(CollectorRegistry())
    for user, number in (("ann", 5), ("ann", 2), ("", 1)):
        metrics.count_usage("key-1", user, num_prompt_tokens=number, num_generation_tokens=10)
    metrics.count_usage("", "ann", num_prompt_tokens=100, num_generation_tokens=0)
    metrics.count_usage("", "", num_prompt_tokens=1000, num_generation_tokens=0)
    samples, ann = samples_of(metrics), user_hash("ann")
    assert samples["octavo_key_requests_total", ("key-1",)] == 3
    assert samples["octavo_key_tokens_total", ("key-1", "prompt")] == 8
    assert samples["octavo_key_tokens_total", ("key-1", "generation")] == 30
    assert samples["octavo_user_requests_total", ("key-1", ann)] == 2
    assert samples["octavo_user_tokens_total", ("key-1", "prompt", ann)] == 7
    assert samples["octavo_user_tokens_total", ("", "prompt", ann)] == 100
    assert '"ann"' not in metrics.render().decode()


def test_users_who_come_without_end_fill_no_memory_and_are_all_counted() -> None:
    metrics = Metrics(CollectorRegistry())
    for number in range(3 * MAX_SHOWN):
        metrics.count_usage("key-1", f"user {number}", num_prompt_tokens=1, num_generation_tokens=1)
    shown = {
        labels: value for (name, labels), value in samples_of(metrics).items() if name == "octavo_user_requests_total"
    }
    assert len(shown) == MAX_SHOWN + 1
    assert shown["other", "other"] == 2 * MAX_SHOWN
    assert sum(shown.values()) == 3 * MAX_SHOWN


def test_two_registries_do_not_share_numbers() -> None:
    first, second = Metrics(CollectorRegistry()), Metrics(CollectorRegistry())
    first.count_prompt_tokens("a", 1)
    assert ("octavo_prompt_tokens_total", ("a",)) not in samples_of(second)
