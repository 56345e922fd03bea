"""The numbers that Prometheus scrapes."""

from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_REQUEST_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_FIRST_TOKEN_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_FETCH_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_OUTPUT_TOKEN_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0, 2.5)


class Metrics:
    """Octavo's metrics in one registry. Times are seconds.

    Labels must come from a small set: `model` is a served model's or adapter's id and `endpoint` a route's path, never
    what a client sent.
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
        self._engine = _EngineMetrics(registry)
        self._adapters = _AdapterMetrics(registry)
        self._images = _ImageMetrics(registry)

    def observe_request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count an answered request and its duration."""
        self._requests.labels(endpoint, str(status)).inc()
        self._request_duration.labels(endpoint).observe(seconds)

    def count_prompt_tokens(self, model: str, num_tokens: int) -> None:
        self._tokens.prompt.labels(model).inc(num_tokens)

    def count_cached_prompt_tokens(self, model: str, num_tokens: int) -> None:
        self._tokens.cached.labels(model).inc(num_tokens)

    def count_generation_tokens(self, model: str, num_tokens: int) -> None:
        self._tokens.generation.labels(model).inc(num_tokens)

    def observe_time_to_first_token(self, model: str, seconds: float) -> None:
        self._tokens.time_to_first.labels(model).observe(seconds)

    def observe_time_per_output_token(self, model: str, seconds: float) -> None:
        self._tokens.time_per_output.labels(model).observe(seconds)

    def observe_engine(
        self, model: str, *, num_running: int, num_waiting: int, batch_size: int, num_restarts: int
    ) -> None:
        """Show an engine's state as of now; num_restarts is its total so far."""
        self._engine.running.labels(model).set(num_running)
        self._engine.waiting.labels(model).set(num_waiting)
        self._engine.batch_size.labels(model).set(batch_size)
        self._engine.set_restarts(model, num_restarts)

    def observe_adapters(self, model: str, num_loaded: int) -> None:
        """Show how many adapters of a model are served as of now."""
        self._adapters.loaded.labels(model).set(num_loaded)

    def count_adapter_load(self, model: str, *, is_loaded: bool) -> None:
        """Count an adapter that was to be loaded; one that is not was refused."""
        self._adapters.loads.labels(model, "loaded" if is_loaded else "refused").inc()

    def count_image(self, model: str, source: str, result: str) -> None:
        """Count an image that a model was to see. source: data or http. result: ok or refused."""
        self._images.given.labels(model, source, result).inc()

    def observe_image_fetch(self, seconds: float) -> None:
        self._images.fetch_duration.observe(seconds)

    def forget_model(self, model: str) -> None:
        """Show nothing more of one that is gone, so that names that come and go fill no memory."""
        self._tokens.forget(model)

    def render(self) -> bytes:
        """The registry in Prometheus' text format, to be sent with `content_type`."""
        return generate_latest(self._registry)


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
        for metric in (self.prompt, self.cached, self.generation, self.time_to_first, self.time_per_output):
            with suppress(KeyError):  # it has none of these
                metric.remove(model)


class _EngineMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.running = Gauge("octavo_requests_running", "Sequences in slots.", ["model"], registry=registry)
        self.waiting = Gauge("octavo_requests_waiting", "Sequences in the queue.", ["model"], registry=registry)
        self.batch_size = Gauge("octavo_batch_size", "Sequences in the last step.", ["model"], registry=registry)
        self._restarts = Counter(
            "octavo_engine_restarts", "Times the engine's process was replaced.", ["model"], registry=registry
        )
        self._num_restarts: dict[str, int] = {}

    def set_restarts(self, model: str, total: int) -> None:
        seen = self._num_restarts.get(model, 0)
        self._restarts.labels(model).inc(max(0, total - seen))
        self._num_restarts[model] = max(seen, total)


class _ImageMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.given = Counter("octavo_images", "Images in requests.", ["model", "source", "result"], registry=registry)
        self.fetch_duration = Histogram(
            "octavo_image_fetch_seconds",
            "From the decision to fetch an image to its last byte, or to the error.",
            registry=registry,
            buckets=_FETCH_BUCKETS,
        )


class _AdapterMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.loaded = Gauge("octavo_adapters_loaded", "Adapters that are served.", ["model"], registry=registry)
        self.loads = Counter(
            "octavo_adapter_loads", "Adapters that were to be loaded.", ["model", "result"], registry=registry
        )
