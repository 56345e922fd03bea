"""What a command does not need, it does not import: a start is as long as its imports."""

import subprocess
import sys

import pytest

HEAVY = {
    *("fastapi", "jinja2", "llama_cpp", "llguidance", "numpy", "opentelemetry", "prometheus_client"),
    *("pydantic_settings", "rich", "starlette", "uvicorn"),
}


def imported_by(module: str) -> set[str]:
    """Top-level packages that importing the module in a fresh process leaves imported."""
    program = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("octavo.cli", set()),
        ("octavo.cli.serve", set()),  # the engine's process is started with these, the rest comes meanwhile
        ("octavo.cli.doctor", set()),
        ("octavo.engine.__main__", set()),
        ("octavo.engine.runners.llama_cpp.binding", {"numpy", "llama_cpp"}),
    ],
)
def test_a_module_imports_nothing_heavy_but_what_it_needs(module: str, needed: set[str]) -> None:
    assert imported_by(module) & HEAVY <= needed


def test_a_server_without_traces_imports_nothing_that_makes_them() -> None:
    program = "import sys, octavo.cli.server; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "octavo.cli.tracing" in modules
    assert not [name for name in modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]


def test_a_prompt_log_imports_its_databases_library_for_its_first_row() -> None:
    program = """
import asyncio, sys
from pathlib import Path
import octavo.cli.server
from octavo.store.prompt_log import PromptLog, Retention

async def run(folder):
    log = PromptLog(f"sqlite:///{folder}/log.db", Path(folder, "spool"), 2**20, Retention(days=1))
    await log.start()
    log.reserve(1).give_back()
    await log.close()

asyncio.run(run(sys.argv[1]))
print(*sys.modules)
"""
    command = [sys.executable, "-c", program, "/nowhere"]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "octavo.store.log_mover" in modules
    assert not {"sqlalchemy", "aiosqlite"} & {*modules}
