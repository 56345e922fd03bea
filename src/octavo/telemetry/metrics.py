"""The numbers that Prometheus scrapes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from octavo.telemetry.aliases import aliases_of
from octavo.telemetry.choice_metrics import ChoiceMetrics, ChoicePhases, EndedChoice
from octavo.telemetry.usage_metrics import UsageMetrics

_REQUEST_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_FIRST_TOKEN_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_FETCH_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_OUTPUT_TOKEN_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0, 2.5)


class Metrics:
    """Octavo's metrics in one registry. Times are seconds.

    Labels must come from a small set: `model` is a served model's or adapter's id and `endpoint` a route's path, never
    what a client sent; who asks is shown for so many, and end users by a hash.
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._requests = Counter("octavo_requests", "Requests answered.", ["endpoint", "status"], registry=registry)
        self._request_duration = Histogram(
            "octavo_request_duration_seconds",
            "From a request's arrival to the last byte of its answer.",
            ["endpoint"],
            registry=registry,
            buckets=_REQUEST_BUCKETS,
        )
        self._tokens = _TokenMetrics(registry)
        self._choices = ChoiceMetrics(registry)
        self._usage = UsageMetrics(registry)
        self._engine = _EngineMetrics(registry)
        self._adapters = _AdapterMetrics(registry)
        self._images = _ImageMetrics(registry)
        self._rate_limited = Counter(
            "octavo_rate_limited", "Requests that a key's own limit refused.", ["limit"], registry=registry
        )
        self._refused = Counter(
            "octavo_refused", "Requests and connections that the server refused itself.", ["status"], registry=registry
        )
        self._connections = Gauge("octavo_connections", "Open connections of clients.", registry=registry)
        self._prompt_log = _PromptLogMetrics(registry)

    def observe_request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count an answered request and its duration."""
        self._requests.labels(endpoint, str(status)).inc()
        self._request_duration.labels(endpoint).observe(seconds)

    def count_refusal(self, status: int) -> None:
        """Count a request or connection that no application has seen."""
        self._refused.labels(str(status)).inc()

    def show_connections(self, count: Callable[[], int]) -> None:
        """count: tells how many there are now, in any thread."""
        self._connections.set_function(count)

    def count_prompt_tokens(self, model: str, num_tokens: int) -> None:
        self._tokens.prompt.labels(model).inc(num_tokens)

    def count_cached_prompt_tokens(self, model: str, num_tokens: int) -> None:
        self._tokens.cached.labels(model).inc(num_tokens)

    def count_computed_prompt_tokens(self, model: str, num_tokens: int) -> None:
        self._tokens.computed.labels(model).inc(num_tokens)

    def count_generation_tokens(self, model: str, num_tokens: int) -> None:
        self._tokens.generation.labels(model).inc(num_tokens)

    def observe_time_to_first_token(self, model: str, seconds: float) -> None:
        self._tokens.time_to_first.labels(model).observe(seconds)

    def observe_time_per_output_token(self, model: str, seconds: float) -> None:
        self._tokens.time_per_output.labels(model).observe(seconds)

    def observe_choice(self, model: str, choice: EndedChoice) -> None:
        self._choices.end(model, choice)

    def observe_phases(self, model: str, phases: ChoicePhases) -> None:
        """Of a choice that has at least one token."""
        self._choices.observe_phases(model, phases)

    def count_usage(self, key_id: str, user: str, *, num_prompt_tokens: int, num_generation_tokens: int) -> None:
        """Count a request for whoever made it. key_id, user: empty for none."""
        self._usage.count(key_id, user, num_prompt_tokens, num_generation_tokens)

    def observe_engine(
        self, model: str, *, num_running: int, num_waiting: int, batch_size: int, num_restarts: int
    ) -> None:
        """Show an engine's state as of now; num_restarts is its total so far."""
        self._engine.running.labels(model).set(num_running)
        self._engine.waiting.labels(model).set(num_waiting)
        self._engine.batch_size.labels(model).set(batch_size)
        self._engine.restarts.follow(num_restarts, model)

    def observe_deaths(self, model: str, deaths: Mapping[str, int], *, num_quarantined: int) -> None:
        """Show why an engine's process was replaced, by reason, and how many requests have been the cause: totals."""
        for reason, total in deaths.items():
            self._engine.deaths.follow(total, model, reason)
        self._engine.quarantined.follow(num_quarantined, model)

    def observe_readiness(self, model: str, *, is_ready: bool) -> None:
        """Show whether a model can serve as of now."""
        self._engine.ready.labels(model).set(is_ready)

    def observe_cache(
        self, model: str, *, num_tokens: int, max_tokens: int, num_saved_prefixes: int, num_saved_tokens: int
    ) -> None:
        """Show how full an engine's KV cache is as of now; max_tokens: 0 where that is not known."""
        self._engine.cache_tokens.labels(model).set(num_tokens)
        self._engine.cache_usage.labels(model).set(num_tokens / max_tokens if max_tokens else 0.0)
        self._engine.saved_prefixes.labels(model).set(num_saved_prefixes)
        self._engine.saved_tokens.labels(model).set(num_saved_tokens)

    def observe_adapters(self, model: str, num_loaded: int) -> None:
        """Show how many adapters of a model are served as of now."""
        self._adapters.loaded.labels(model).set(num_loaded)

    def count_adapter_load(self, model: str, *, is_loaded: bool) -> None:
        """Count an adapter that was to be loaded; one that is not was refused."""
        self._adapters.loads.labels(model, "loaded" if is_loaded else "refused").inc()

    def count_rate_limited(self, limit: str) -> None:
        """Count a request that a key's limit has refused: requests, tokens or concurrent."""
        self._rate_limited.labels(limit).inc()

    def count_image(self, model: str, source: str, result: str) -> None:
        """Count an image that a model was to see. source: data or http. result: ok or refused."""
        self._images.given.labels(model, source, result).inc()

    def observe_image_fetch(self, seconds: float) -> None:
        self._images.fetch_duration.observe(seconds)

    def count_log_row(self, result: str) -> None:
        """Count a request with log_prompt. result: logged, refused before it began, or lost at its end."""
        self._prompt_log.rows.labels(result).inc()

    def observe_prompt_log(
        self, totals: Mapping[str, int], *, num_waiting: int, waiting_bytes: int, is_degraded: bool
    ) -> None:
        """Show the prompt log's state as of now. totals: how many rows so far have got each further result."""
        self._prompt_log.waiting_rows.set(num_waiting)
        self._prompt_log.waiting_bytes.set(waiting_bytes)
        self._prompt_log.degraded.set(is_degraded)
        for result, total in totals.items():
            self._prompt_log.totals.follow(total, result)

    def observe_set_aside(self, num_files: int, num_bytes: int) -> None:
        """Show what the prompt log has set aside, as of now."""
        self._prompt_log.aside_files.set(num_files)
        self._prompt_log.aside_bytes.set(num_bytes)

    def forget_model(self, model: str) -> None:
        """Show nothing more of one that is gone, so that names that come and go fill no memory."""
        self._tokens.forget(model)
        self._choices.forget(model)

    def render(self) -> bytes:
        """The registry in Prometheus' text format, to be sent with `content_type`, and its aliases. In any thread."""
        return generate_latest(_WithAliases(self._registry))


class _WithAliases(Collector):
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        families = tuple(self._registry.collect())
        yield from families
        yield from aliases_of(families)


class _TokenMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.prompt = Counter(
            "octavo_prompt_tokens", "Prompt tokens of admitted requests.", ["model"], registry=registry
        )
        self.cached = Counter(
            "octavo_cached_prompt_tokens",
            "Prompt tokens of requests that have ended, found computed.",
            ["model"],
            registry=registry,
        )
        self.computed = Counter(
            "octavo_computed_prompt_tokens",
            "Prompt tokens of requests that have ended, computed for them.",
            ["model"],
            registry=registry,
        )
        self.generation = Counter("octavo_generation_tokens", "Tokens generated.", ["model"], registry=registry)
        self.time_to_first = Histogram(
            "octavo_time_to_first_token_seconds",
            "From a request's admission to the first token of any of its choices.",
            ["model"],
            registry=registry,
            buckets=_FIRST_TOKEN_BUCKETS,
        )
        self.time_per_output = Histogram(
            "octavo_time_per_output_token_seconds",
            "A choice's mean time between tokens, after its first.",
            ["model"],
            registry=registry,
            buckets=_OUTPUT_TOKEN_BUCKETS,
        )

    def forget(self, model: str) -> None:
        counters = (self.prompt, self.cached, self.computed, self.generation)
        for metric in (*counters, self.time_to_first, self.time_per_output):
            with suppress(KeyError):  # it has none of these
                metric.remove(model)


class _EngineMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.running = Gauge("octavo_requests_running", "Sequences in slots.", ["model"], registry=registry)
        self.waiting = Gauge("octavo_requests_waiting", "Sequences in the queue.", ["model"], registry=registry)
        self.batch_size = Gauge("octavo_batch_size", "Sequences in the last step.", ["model"], registry=registry)
        self.ready = Gauge("octavo_model_ready", "1 where a model can serve.", ["model"], registry=registry)
        self.cache_tokens = Gauge(
            "octavo_kv_cache_tokens", "Computed tokens of running sequences.", ["model"], registry=registry
        )
        self.cache_usage = Gauge(
            "octavo_kv_cache_usage_ratio",
            "Part of the KV cache that running sequences have filled, 0 to 1.",
            ["model"],
            registry=registry,
        )
        self.saved_prefixes = Gauge(
            "octavo_saved_prefixes", "Earlier sequences in the host's memory.", ["model"], registry=registry
        )
        self.saved_tokens = Gauge(
            "octavo_saved_tokens", "Tokens of earlier sequences in the host's memory.", ["model"], registry=registry
        )
        self.restarts = _Follower(
            Counter("octavo_engine_restarts", "Times the engine's process was replaced.", ["model"], registry=registry)
        )
        self.deaths = _Follower(
            Counter("octavo_engine_deaths", "The same, by how it ended.", ["model", "reason"], registry=registry)
        )
        self.quarantined = _Follower(
            Counter(
                "octavo_requests_quarantined",
                "Requests that ended the engine's process again, alone, and are refused since.",
                ["model"],
                registry=registry,
            )
        )


class _Follower:
    """A counter of what is counted elsewhere. It never falls."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._seen: dict[tuple[str, ...], int] = {}

    def follow(self, total: int, *labels: str) -> None:
        seen = self._seen.get(labels, 0)
        self._counter.labels(*labels).inc(max(0, total - seen))
        self._seen[labels] = max(seen, total)


class _ImageMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.given = Counter("octavo_images", "Images in requests.", ["model", "source", "result"], registry=registry)
        self.fetch_duration = Histogram(
            "octavo_image_fetch_seconds",
            "From the decision to fetch an image to its last byte, or to the error.",
            registry=registry,
            buckets=_FETCH_BUCKETS,
        )


class _PromptLogMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.rows = Counter(
            "octavo_prompt_log_rows",
            "Rows of the prompt log: logged, refused, lost; later stored, set_aside, deleted.",
            ["result"],
            registry=registry,
        )
        self.waiting_rows = Gauge(
            "octavo_prompt_log_waiting_rows", "Rows that are not yet in the database.", registry=registry
        )
        self.waiting_bytes = Gauge("octavo_prompt_log_waiting_bytes", "Their size.", registry=registry)
        self.degraded = Gauge(
            "octavo_prompt_log_degraded",
            "1 while the prompt log is not as it should be; /ready says why.",
            registry=registry,
        )
        self.aside_files = Gauge(
            "octavo_prompt_log_set_aside_files", "Files with what could not be stored.", registry=registry
        )
        self.aside_bytes = Gauge("octavo_prompt_log_set_aside_bytes", "Their size.", registry=registry)
        self.totals = _Follower(self.rows)
        for result in ("logged", "refused", "lost"):
            self.rows.labels(result)  # there from the start: Prometheus sees no increase in what first appears as 1


class _AdapterMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.loaded = Gauge("octavo_adapters_loaded", "Adapters that are served.", ["model"], registry=registry)
        self.loads = Counter(
            "octavo_adapter_loads", "Adapters that were to be loaded.", ["model", "result"], registry=registry
        )
