"""Adapters are tried where they can do no harm."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from numeric.tiny_gguf import TinyModel, write_tiny_gguf
from numeric.tiny_lora import write_lora, write_tiny_lora
from octavo.engine.runners.llama_cpp import adapter_trial
from octavo.engine.runners.llama_cpp.adapter_trial import try_adapter
from octavo.errors import AdapterRefused
from support.bad_adapters import pair, with_one, write_bad_adapter
from support.processes import are_gone, eventually


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return write_tiny_gguf(tmp_path_factory.mktemp("tried") / "tiny.gguf")


def refusal(model: Path, adapter: Path) -> str:
    with pytest.raises(AdapterRefused) as refused:
        try_adapter(model, adapter)
    assert str(adapter.parent) not in refused.value.message, "paths are nobody's business"
    return refused.value.message


def test_an_adapter_of_the_model_passes(tiny: TinyModel, tmp_path: Path) -> None:
    write_tiny_lora(tmp_path / "good.gguf", tiny)
    try_adapter(tiny.path, tmp_path / "good.gguf")


def test_an_adapter_for_another_model_is_refused_with_llama_cpp_s_reason(tiny: TinyModel, tmp_path: Path) -> None:
    path = tmp_path / "other.gguf"
    write_lora(path, pair("blk.99.attn_q.weight"))
    assert "blk.99.attn_q.weight" in refusal(tiny.path, path)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not an adapter" * 100])
def test_what_is_no_gguf_file_is_refused(content: bytes, tiny: TinyModel, tmp_path: Path) -> None:
    path = tmp_path / "wrong.gguf"
    path.write_bytes(content)
    assert refusal(tiny.path, path).startswith("The file is no adapter for this model: ")


def test_a_file_that_is_not_there_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    refusal(tiny.path, tmp_path / "missing.gguf")


def test_a_file_that_ends_the_process_that_reads_it_is_refused_by_its_end(tiny: TinyModel, tmp_path: Path) -> None:
    path = tmp_path / "deadly.gguf"
    write_bad_adapter("an alpha of another type", path, tiny)
    assert "did not survive" in refusal(tiny.path, path)


def test_an_adapter_with_which_nothing_can_be_computed_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    path = tmp_path / "nan.gguf"
    write_lora(path, with_one(float("nan")))
    assert "not numbers" in refusal(tiny.path, path)


def test_an_adapter_that_takes_too_long_is_refused(
    tiny: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_lora(tmp_path / "slow.gguf", tiny)
    monkeypatch.setattr(adapter_trial, "SECONDS", 0)
    assert "within 0 s" in refusal(tiny.path, tmp_path / "slow.gguf")


@pytest.mark.parametrize(
    ("script", "returncode", "message"),
    [
        ("exit 3", 3, "The adapter could not be tried; the server's log says why."),
        ("kill -KILL $$", -9, "The adapter could not be tried; the server's log says why."),
        ("echo what", 0, "The adapter could not be tried; the server's log says why."),
        ("kill -SEGV $$", -11, "The file is broken: the process that tried it as an adapter did not survive that."),
    ],
)
def test_a_trial_without_a_verdict_is_told_by_how_it_ended_and_logged(
    script: str,
    returncode: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    trial = tmp_path / "trial"
    trial.write_text(f"#!/bin/sh\nfor i in $(seq 100); do echo line $i >&2; done\n{script}\n")
    trial.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(trial))
    with caplog.at_level(logging.WARNING, "octavo.adapters"):
        assert refusal(tmp_path / "model.gguf", tmp_path / "adapter.gguf") == message
    [record] = caplog.records
    lines = record.getMessage().splitlines()
    assert lines[0] == f"an adapter's trial ended with {returncode}:"
    assert lines[1:] == [f"line {number}" for number in range(81, 101)]


def trial_of(parent: int, model: Path) -> psutil.Process | None:
    """The one that the process has started, once it has the model."""
    children = psutil.Process(parent).children()
    return next((child for child in children if any(map.path == str(model) for map in child.memory_maps())), None)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_trial_ends_with_a_parent_that_is_killed(tiny: TinyModel, tmp_path: Path) -> None:
    pipe = tmp_path / "endless.gguf"
    os.mkfifo(pipe)  # to open it takes as long as nobody writes
    code = "import sys; from octavo.engine.runners.llama_cpp.adapter_trial import *; try_adapter(*sys.argv[1:])"
    with subprocess.Popen((sys.executable, "-c", code, str(tiny.path), str(pipe))) as parent:
        try:
            eventually(lambda: trial_of(parent.pid, tiny.path) is not None)
            trial = trial_of(parent.pid, tiny.path)
        finally:
            parent.kill()
    assert trial is not None
    assert are_gone([trial])
