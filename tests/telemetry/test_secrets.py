"""What is told of requests has neither keys nor prompts nor users' names, whatever became of them."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from support.otlp_receiver import receiving
from support.processes import serving

KEY, PROMPT, USER = f"sk-octavo-{'k' * 32}", "an unspeakable prompt", "somebody@example.com"
WRONG_KEY = f"sk-octavo-{'w' * 32}"
SECRETS = (KEY, WRONG_KEY, PROMPT, USER)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"


def bodies() -> Iterator[tuple[str, dict[str, object]]]:
    messages = [{"role": "user", "content": PROMPT}]
    for stream in (False, True):
        yield COMPLETIONS, {"model": "demo", "prompt": PROMPT, "user": USER, "stream": stream, "echo": True}
        yield CHAT, {"model": "demo", "messages": messages, "user": USER, "stream": stream}
        yield CHAT, {"model": "demo", "messages": [{"role": PROMPT, "content": PROMPT}], "user": USER}
        yield COMPLETIONS, {"model": "demo", "prompt": f'@script {{"raise_at": 1}}\n{PROMPT}', "stream": stream}
        yield COMPLETIONS, {"model": "demo", "prompt": PROMPT, "max_tokens": PROMPT, "user": USER}
        yield COMPLETIONS, {"model": "demo", "prompt": [PROMPT] * 300}
        yield COMPLETIONS, {"model": "demo", "prompt": PROMPT, "user": USER, "stream": stream, "log_prompt": True}


def ask_everything(client: httpx.Client) -> None:
    for key in (KEY, WRONG_KEY):
        for path, body in bodies():
            client.post(path, json=body, headers={"authorization": f"Bearer {key}"})
        client.post(COMPLETIONS, content=PROMPT, headers={"authorization": f"Bearer {key}"})
        client.get("/v1/models", headers={"authorization": f"Basic {key}", "x-request-id": f"{key} {PROMPT}"})
        client.get("/v1/models", headers={"traceparent": TRACE, "tracestate": f"{key} {PROMPT}"})


@pytest.mark.slow
@pytest.mark.parametrize(("log", "welcome"), [((), "Ctrl-C"), (("--log-json",), '"message": "serving"')])
def test_no_log_metric_trace_or_command_line_tells_a_secret(tmp_path: Path, log: tuple[str, ...], welcome: str) -> None:
    with (
        receiving() as receiver,
        serving(
            *("--alias", "demo", "--log-level", "debug", "--log-db", f"sqlite:///{tmp_path}/rows.db", *log),
            folder=tmp_path,
            OCTAVO_API_KEY=KEY,
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
            OTEL_EXPORTER_OTLP_HEADERS=f"Bearer {KEY}",
            OTEL_BSP_SCHEDULE_DELAY="100",
        ) as server,
    ):
        server.wait_for(welcome)
        server.url = re.findall(r"http://127\.0\.0\.1:\d+", server.log)[-1]
        with server.client() as client:
            ask_everything(client)
            metrics = client.get("/metrics", headers={"authorization": f"Bearer {KEY}"}).text
        processes = [psutil.Process(server.pid), *server.children()]
        command_lines = [" ".join(process.cmdline()) for process in processes]
        receiver.wait_for("text_completion demo")
        server.send(signal.SIGTERM)
        assert server.wait() == 0
    told = {"log": server.log, "metrics": metrics, "command lines": "\n".join(command_lines)}
    told["traces"] = "\n".join(body.decode(errors="replace") for body in receiver.bodies)
    assert all(told.values())
    assert "octavo_user_tokens_total{" in metrics
    for place, text in told.items():
        assert not [secret for secret in SECRETS if secret in text], place
