"""Engines that are measured without a server, by a program that computes prompts from a file."""

from __future__ import annotations

import asyncio
import json
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contenders import Room, shown, warm_up
from benchmarks.load import Endpoint, LoadConfig
from benchmarks.load_result import LoadResult
from benchmarks.processes import ServerFailed, end, log_tail
from benchmarks.prompts import make_prompts
from benchmarks.scenarios import Phase, SteadyStreams
from benchmarks.workloads import Workload
from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.binding import Model
from octavo.engine.runners.llama_cpp.model import load_model

OFFLINE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class OfflineContender:
    """A program that reads a job's file, computes it and prints a line of JSON with its seconds and tokens."""

    name: str
    program: tuple[str, ...]
    model: Path
    cache: Path

    def can_run(self, workload: Workload, num_streams: int) -> bool:
        """Prompts that do not depend on answers, and nothing asked that only a server of this API knows."""
        return isinstance(workload.scenario, SteadyStreams) and _is_plain(workload.scenario.request)

    def shown_command(self, room: Room) -> str:
        return f"{shown(self.program)} JOB.json"

    async def measure(self, workload: Workload, num_streams: int, seed: int, log_path: Path) -> list[Phase]:
        assert isinstance(workload.scenario, SteadyStreams)
        config = workload.scenario.config(num_streams, seed)
        with tempfile.TemporaryDirectory() as folder:
            job = Path(folder) / "job.json"
            job.write_text(json.dumps(await self._job(config)))
            answer = await _run_job((*self.program, str(job)), log_path)
        return [Phase("", _offline_result(self.model.stem, config, answer))]

    async def _job(self, config: LoadConfig) -> dict[str, object]:
        return {
            "model": str(self.model),
            "cache": str(self.cache),
            "prompts": await tokenized_prompts(self.model, config),
            "warm_up": await tokenized_prompts(self.model, warm_up(config, config.num_streams)),
            "num_streams": config.num_streams,
            "max_tokens": config.max_tokens,
            "temperature": config.temperature,
            "top_p": config.top_p,
        }


async def tokenized_prompts(path: Path, config: LoadConfig) -> list[list[int]]:
    """The prompts that a server with this model would be sent, as tokens."""
    binding.initialize()
    model = load_model(path, use_extra_buffers=False, on_progress=lambda _: None)
    try:
        return [_tokenize(model, text) for text in await _texts(model, config)]
    finally:
        model.close()


async def _texts(model: Model, config: LoadConfig) -> list[str]:
    async def count(text: str) -> int:
        return len(_tokenize(model, text))

    if config.texts:
        return [config.texts[index % len(config.texts)] for index in range(config.total_requests)]
    return await make_prompts(
        config.seed, config.total_requests, config.prompt_tokens, config.shared_prefix_tokens, count
    )


def _tokenize(model: Model, text: str) -> list[int]:
    first = [model.bos_token] if model.adds_bos and model.bos_token is not None else []
    tokens: list[int] = model.tokenize(text).tolist()
    return first + tokens


def _is_plain(request: LoadConfig) -> bool:
    return request.endpoint is Endpoint.COMPLETIONS and not request.extra


async def _run_job(arguments: Sequence[str], log_path: Path) -> dict[str, float]:
    """The JSON that it prints. Raises ServerFailed."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *arguments, stdin=DEVNULL, stdout=PIPE, stderr=log, start_new_session=True
        )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), OFFLINE_SECONDS)
    except TimeoutError as error:
        raise ServerFailed(f"no answer after {OFFLINE_SECONDS:g} s:\n{log_tail(log_path)}") from error
    finally:
        await end(process)
    if process.returncode != 0:
        raise ServerFailed(f"ended with status {process.returncode}:\n{log_tail(log_path)}")
    # Engines log to standard output too.
    answers = [line for line in output.splitlines() if line.startswith(b"{")]
    if not answers:
        raise ServerFailed(f"it printed no answer:\n{log_tail(log_path)}")
    answer: dict[str, float] = json.loads(answers[-1])
    return answer


def _offline_result(model: str, config: LoadConfig, answer: dict[str, float]) -> LoadResult:
    return LoadResult(
        model=model,
        num_streams=config.num_streams,
        num_requests=config.total_requests,
        num_completed=config.total_requests,
        wall_seconds=answer["wall_seconds"],
        prompt_tokens=None,
        completion_tokens=int(answer["completion_tokens"]),
        are_token_counts_exact=True,
        time_to_first_token_ms=None,
        time_per_output_token_ms=None,
        largest_gap_ms=0.0,
        joint_tokens_per_second=answer.get("joint_tokens_per_second"),
        errors={},
        load_cpu_seconds=0.0,
    )
