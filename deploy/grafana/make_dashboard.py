"""Writes Grafana's dashboard of Octavo to standard output, as octavo.json has it."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT, PER_ROW = 8, 8, 3
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
SERVERS = 'instance=~"$instance"'
OF_MODEL = f'{SERVERS},model=~"$model"'
EVERY = "$__rate_interval"

Json = dict[str, Any]


@dataclass(frozen=True)
class Line:
    query: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """unit: as Grafana names it."""

    title: str
    lines: Sequence[Line]
    unit: str = "short"
    description: str = ""


def rate(name: str, by: str, where: str = OF_MODEL) -> str:
    return f"sum by ({by}) (rate({name}{{{where}}}[{EVERY}]))"


def quantiles(name: str, where: str = OF_MODEL) -> tuple[Line, ...]:
    buckets = rate(f"{name}_bucket", "le", where)
    return tuple(Line(f"histogram_quantile({part}, {buckets})", f"p{part * 100:.0f}") for part in (0.5, 0.95, 0.99))


def latest(name: str, legend: str, where: str = OF_MODEL) -> Line:
    return Line(f"{name}{{{where}}}", legend)


ROWS: dict[str, tuple[Panel, ...]] = {
    "Requests": (
        Panel("Requests by status", (Line(rate("octavo_requests_total", "status", SERVERS), "{{status}}"),), "reqps"),
        Panel(
            "Errors by status",
            (Line(rate("octavo_requests_total", "status", f'{SERVERS},status=~"4..|5.."'), "{{status}}"),),
            "reqps",
        ),
        Panel(
            "Ends of choices",
            (Line(rate("octavo_choices_total", "finish_reason"), "{{finish_reason}}"),),
            "reqps",
            "closed: the client went away. error: the engine or another choice failed.",
        ),
        Panel(
            "Running and waiting",
            (
                latest("octavo_requests_running", "running {{model}}"),
                latest("octavo_requests_waiting", "waiting {{model}}"),
            ),
        ),
        Panel("Sequences in a step", (latest("octavo_batch_size", "{{model}}"),)),
        Panel(
            "Refused by rate limits",
            (Line(rate("octavo_rate_limited_total", "limit", SERVERS), "{{limit}}"),),
            "reqps",
        ),
    ),
    "Times": (
        Panel("Time to first token", quantiles("octavo_time_to_first_token_seconds"), "s"),
        Panel("Time between tokens", quantiles("octavo_time_per_output_token_seconds"), "s"),
        Panel("Duration of a choice", quantiles("octavo_choice_duration_seconds"), "s"),
        Panel("In the queue", quantiles("octavo_queue_time_seconds"), "s"),
        Panel("Prefill", quantiles("octavo_prefill_time_seconds"), "s"),
        Panel("Duration of a request", quantiles("octavo_request_duration_seconds", SERVERS), "s"),
    ),
    "Tokens": (
        Panel(
            "Tokens a second",
            (
                Line(rate("octavo_prompt_tokens_total", "model"), "prompt {{model}}"),
                Line(rate("octavo_generation_tokens_total", "model"), "new {{model}}"),
            ),
        ),
        Panel(
            "Prompt tokens found computed",
            (
                Line(
                    f"{rate('octavo_cached_prompt_tokens_total', 'model')}"
                    f" / {rate('octavo_prompt_tokens_total', 'model')}",
                    "{{model}}",
                ),
            ),
            "percentunit",
        ),
        Panel("KV cache in use", (latest("octavo_kv_cache_usage_ratio", "{{model}}"),), "percentunit"),
        Panel("Saved prefixes", (latest("octavo_saved_prefixes", "{{model}}"),)),
        Panel(
            "Tokens a second by key",
            (Line(f"topk(10, {rate('octavo_key_tokens_total', 'key', SERVERS)})", "{{key}}"),),
        ),
        Panel(
            "Tokens a second by user",
            (Line(f"topk(10, {rate('octavo_user_tokens_total', 'user', SERVERS)})", "{{user}}"),),
            description="Users are shown by a hash of their names.",
        ),
    ),
    "Server": (
        Panel("Ready", (latest("octavo_model_ready", "{{model}}"),)),
        Panel(
            "Restarts of the engine in an hour",
            (
                Line(f"sum(increase(octavo_engine_restarts_total{{{OF_MODEL}}}[1h]))", "all"),
                Line(f"sum by (reason) (increase(octavo_engine_deaths_total{{{OF_MODEL}}}[1h]))", "{{reason}}"),
            ),
            description="The first one for a reason is only among all: Prometheus sees no increase in what is new.",
        ),
        Panel(
            "Memory",
            (
                latest("process_resident_memory_bytes", "server", SERVERS),
                latest("octavo_engine_process_resident_memory_bytes", "engine", SERVERS),
            ),
            "bytes",
        ),
        Panel(
            "Processors",
            (
                Line(f"rate(process_cpu_seconds_total{{{SERVERS}}}[{EVERY}])", "server"),
                Line(f"rate(octavo_engine_process_cpu_seconds_total{{{SERVERS}}}[{EVERY}])", "engine"),
            ),
        ),
        Panel("Open files", (latest("process_open_fds", "server", SERVERS),)),
        Panel("Version", (latest("octavo_build_info", "{{version}}", SERVERS),)),
    ),
    "Prompt log": (
        Panel("Rows", (Line(rate("octavo_prompt_log_rows_total", "result", SERVERS), "{{result}}"),), "reqps"),
        Panel("Rows that wait", (latest("octavo_prompt_log_waiting_rows", "{{instance}}", SERVERS),)),
        Panel("Degraded", (latest("octavo_prompt_log_degraded", "{{instance}}", SERVERS),)),
        Panel("Files set aside", (latest("octavo_prompt_log_set_aside_files", "{{instance}}", SERVERS),)),
    ),
    "Connections": (
        Panel("Connections", (latest("octavo_connections", "{{instance}}", SERVERS),)),
        Panel(
            "Refused before they were requests",
            (Line(rate("octavo_refused_total", "status", SERVERS), "{{status}}"),),
            "reqps",
        ),
    ),
}


def dashboard() -> Json:
    return {
        "uid": "octavo",
        "title": "Octavo",
        "tags": ["octavo"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_datasource(), _variable("instance"), _variable("model")]},
        "panels": list(_panels()),
    }


def _datasource() -> Json:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(label: str) -> Json:
    query = f"label_values(octavo_model_ready, {label})"
    return {
        "name": label,
        "label": label.capitalize(),
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": label},
        "definition": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _panels() -> Iterator[Json]:
    top, number = 0, 0
    for title, panels in ROWS.items():
        number += 1
        yield _row(number, title, top)
        top += 1
        for place, panel in enumerate(panels):
            number += 1
            yield _panel(number, panel, WIDTH * (place % PER_ROW), top + HEIGHT * (place // PER_ROW))
        top += HEIGHT * -(-len(panels) // PER_ROW)


def _row(number: int, title: str, top: int) -> Json:
    return {
        "id": number,
        "type": "row",
        "title": title,
        "collapsed": False,
        "gridPos": {"x": 0, "y": top, "w": WIDTH * PER_ROW, "h": 1},
        "panels": [],
    }


def _panel(number: int, panel: Panel, left: int, top: int) -> Json:
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": {"x": left, "y": top, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"tooltip": {"mode": "multi", "sort": "desc"}, "legend": {"displayMode": "list"}},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": DATASOURCE, "expr": line.query, "legendFormat": line.legend}
            for place, line in enumerate(panel.lines)
        ],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(dashboard(), indent=2) + "\n")
