"""The cases of the JSON Schema Test Suite, draft 2020-12, that come with the sources of `jsonschema`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.packages import PackageFolder

FOLDER = PackageFolder(
    "jsonschema",
    "4.26.0",
    path="json/tests/draft2020-12",
    suffix=".json",
    place="json-schema-test-suite",
    build_backend=("hatchling", "hatch-vcs", "hatch-fancy-pypi-readme"),
)
FORMATS = "optional/format/"
"""Where `format` is more than an annotation: one file for each format."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A value, and whether it is valid under its case's schema."""

    description: str
    data: Any
    is_valid: bool


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """A schema with instances.

    file: its path in the suite, without the suffix. index: its place in the file.
    """

    file: str
    index: int
    description: str
    schema: Any
    instances: tuple[Instance, ...]

    @property
    def name(self) -> str:
        return f"{self.file}[{self.index}]: {self.description}"

    @property
    def is_required(self) -> bool:
        """Of every validator, rather than of one with optional features."""
        return not self.file.startswith("optional/")

    @property
    def asserted_format(self) -> str | None:
        """The format that its instances are judged by."""
        return self.file.removeprefix(FORMATS) if self.file.startswith(FORMATS) else None


def suite_cases() -> list[SuiteCase]:
    """All, also the optional ones. Raises subprocess.CalledProcessError where they cannot be fetched.

    What the optional ones ask of a validator (large numbers, ECMA 262's regular expressions, the old `dependencies`,
    schemas of other drafts, formats) is asked of a grammar too: that it lets through nothing that they call invalid.
    """
    folder = FOLDER.fetched()
    return [case for path in sorted(folder.rglob("*.json")) for case in _cases(path, folder)]


def _cases(path: Path, folder: Path) -> Iterator[SuiteCase]:
    file = path.relative_to(folder).with_suffix("").as_posix()
    for index, case in enumerate(json.loads(path.read_text(encoding="utf-8"))):
        instances = tuple(map(_instance, case["tests"]))
        yield SuiteCase(file, index, case["description"], case["schema"], instances)


def _instance(test: Mapping[str, Any]) -> Instance:
    return Instance(test["description"], test["data"], test["valid"])
