"""The import table of docs/architecture.md: arrows never point back."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import octavo

SOURCE = Path(octavo.__file__).parent
EVERYTHING = ""

ROWS: dict[str, tuple[str, ...]] = {
    # Place: what it may import beside itself, `errors` and libraries. The longest place that matches is the one.
    "errors": (),
    "config": ("core.api_key", "core.caller"),
    "core": (),
    "prompting": ("core",),
    "constraints": ("core",),
    "streaming": ("core",),
    "engine": (),
    "engine.base": ("core",),
    "engine.specs": (),
    "engine.end_with_parent": (),
    "engine.own_module": (),
    "engine.batching": ("engine.base", "constraints", "core"),
    "engine.runners": (
        *("engine.batching.runner", "engine.batching.rows", "engine.batching.step_costs", "engine.batching.vision"),
        *("engine.end_with_parent", "engine.own_module", "core"),
    ),
    # The tokenizer of a model file lives beside its runner; what it takes and gives is said in the seam.
    "engine.runners.llama_cpp.model": ("engine.runners", "engine.base", "core"),
    "engine.llama": ("engine",),
    "engine.llama_description": ("engine.runners", "engine.specs"),
    "engine.scripted": ("engine.base", "engine.specs", "core"),
    "engine.worker": ("engine.base", "engine.specs", "engine.end_with_parent", "engine.own_module", "core"),
    "engine.registry": ("engine",),
    "engine.__main__": ("engine",),
    "telemetry": ("core",),
    "service": ("core", "prompting", "constraints", "streaming", "engine.base", "telemetry", "store"),
    "api": ("service", "telemetry", "core", "store"),
    "api.app": ("api", "service", "telemetry", "core", "constraints", "store"),
    "api.context": ("service", "telemetry", "core", "constraints", "store"),
    "api.convert": ("api", "service", "telemetry", "core", "prompting", "constraints", "streaming.tool_formats"),
    "store": ("core",),
    "server": ("api.errors", "core"),
    "cli": (EVERYTHING,),
    "__main__": ("cli",),
}


def modules() -> dict[str, Path]:
    """Files by the module's name within octavo, such as engine.worker.child; a package's by its folder's."""
    files = {path.relative_to(SOURCE).with_suffix("").parts: path for path in SOURCE.rglob("*.py")}
    return {".".join(parts).removesuffix("__init__").strip("."): path for parts, path in files.items()}


MODULES = modules()


def imports(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            inner = [name for name in submodules if name.removeprefix("octavo.") in MODULES]
            yield from inner
            if len(inner) < len(submodules):
                yield node.module


def is_within(name: str, place: str) -> bool:
    return place == EVERYTHING or name == place or name.startswith(f"{place}.")


@pytest.mark.parametrize("name", sorted(MODULES.keys() - {""}))
def test_a_module_imports_only_what_its_row_of_the_table_allows(name: str) -> None:
    place = max((place for place in ROWS if is_within(name, place)), key=len)
    allowed = (place, "errors", *ROWS[place])
    ours = [other.removeprefix("octavo.") for other in imports(MODULES[name]) if is_within(other, "octavo")]
    wrong = [other for other in ours if not any(is_within(other, each) for each in allowed)]
    assert not wrong, f"{name} may import {', '.join(allowed)}"


def test_only_the_bindings_import_llama_cpp() -> None:
    users = {name for name, path in MODULES.items() if any(is_within(other, "llama_cpp") for other in imports(path))}
    assert users == {"engine.runners.llama_cpp.binding", "engine.runners.llama_cpp.mtmd_binding"}


def test_only_cli_imports_the_settings() -> None:
    users = {name for name, path in MODULES.items() if "octavo.config" in imports(path)}
    assert users
    assert all(is_within(name, "cli") for name in users)


def test_every_row_of_the_table_is_about_something() -> None:
    assert [place for place in ROWS if not any(is_within(name, place) for name in MODULES)] == []
