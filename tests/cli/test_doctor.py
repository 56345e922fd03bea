"""`octavo doctor`: its words, and its exit code."""

from pathlib import Path

import pytest

from octavo.cli.doctor import SelfTest, explain_amx, verdict
from octavo.cli.library import Library
from octavo.engine.base import EngineInfo
from octavo.engine.runners.llama_cpp.machine import Machine
from support.processes import run_octavo

INFO = EngineInfo(context_length=1, num_slots=1, chat_template=None, fingerprint="fp")
PASSED = SelfTest(INFO, num_deaths=0)
FELL_BACK = SelfTest(INFO, num_deaths=1)
FAILED = SelfTest(None, num_deaths=2, fault="SIGSEGV")
WITH_AMX = Library("1", "AVX512 = 1 | AMX_INT8 = 1")
WITHOUT_AMX = Library("1", "AVX2 = 1")


def machine(*features: str) -> Machine:
    return Machine(num_cores=2, memory=2**30, features=frozenset(features))


@pytest.mark.parametrize(
    ("features", "library", "test", "words"),
    [
        ((), WITHOUT_AMX, PASSED, "the processor has none; no cure is needed"),
        (("amx_tile",), WITHOUT_AMX, PASSED, "the library was built without"),
        (("amx_tile",), WITH_AMX, PASSED, "the library is sound"),
        (("amx_tile",), WITH_AMX, FELL_BACK, "probably built without the cure"),
        (("amx_tile",), WITH_AMX, FAILED, "probably built without the cure"),
    ],
)
def test_it_says_whether_the_amx_cure_is_needed(
    features: tuple[str, ...], library: Library, test: SelfTest, words: str
) -> None:
    assert words in explain_amx(machine(*features), library, test)


def test_the_verdict_tells_a_pass_from_a_fall_back_from_a_failure() -> None:
    assert verdict(PASSED) == "passed"
    assert verdict(FELL_BACK).startswith("passed with the fall-back")
    assert verdict(FAILED) == "FAILED: SIGSEGV"


def test_an_engine_that_works_is_described_with_exit_code_0(tmp_path: Path) -> None:
    done = run_octavo("doctor", folder=tmp_path, OCTAVO_ENGINE="scripted")

    assert done.returncode == 0
    assert "self-test:         passed\n" in done.stdout.decode()
    assert "engine:            scripted\n" in done.stdout.decode()


def test_an_engine_whose_process_dies_while_it_loads_is_reported_with_exit_code_1(tmp_path: Path) -> None:
    done = run_octavo("doctor", folder=tmp_path, OCTAVO_ENGINE="scripted", OCTAVO_SCRIPTED_EXIT_AT="-1")

    assert done.returncode == 1
    assert "self-test:         FAILED: Its process ended" in done.stdout.decode()
    assert b"Traceback" not in done.stderr


def test_a_library_that_cannot_be_loaded_does_not_take_the_command_down(tmp_path: Path) -> None:
    package = tmp_path / "llama_cpp"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "llama_cpp.py").write_text("import os; os.abort()")

    done = run_octavo("doctor", folder=tmp_path, OCTAVO_ENGINE="scripted", PYTHONPATH=str(tmp_path))

    assert done.returncode == 0
    assert "llama.cpp:         cannot be used: its process ended with -6" in done.stdout.decode()
