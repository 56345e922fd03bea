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
