"""What becomes of the schemas of the JSON Schema Test Suite."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from octavo.errors import UnsupportedGrammar
from support.json_schema_suite import Instance, SuiteCase, suite_cases
from support.json_spellings import orders, spellings
from support.languages import Language

_STEP = r'\.[\w$-]+|\[\d+\]|\["(?:[^"]|"(?!\]))*"\]'
_REFUSAL = re.compile(rf"\$(?P<path>(?:{_STEP})*): (?P<reason>.+)", re.DOTALL)


@dataclass(frozen=True)
class Verdict:
    """language: of a schema that is accepted. refusal: why it is not, or empty. fault: why it has to be and is not."""

    case: SuiteCase
    language: Language | None = None
    refusal: str = ""
    fault: str = ""

    @property
    def is_accepted(self) -> bool:
        return self.language is not None

    @property
    def path(self) -> Sequence[str | int] | None:
        """Of what is refused, from the schema's root on; None where the refusal does not tell."""
        found = _REFUSAL.fullmatch(self.refusal)
        return [_step(step) for step in re.findall(_STEP, found["path"])] if found else None

    @property
    def reason(self) -> str:
        """Of a refusal, without the path."""
        found = _REFUSAL.fullmatch(self.refusal)
        return found["reason"] if found else self.refusal

    @cached_property
    def writable(self) -> tuple[Instance, ...]:
        """The instances that a model could write, valid or not, in one order and spelling or another."""
        return tuple(instance for instance in self.case.instances if self._is_writable(instance.data))

    def _is_writable(self, value: Any) -> bool:
        language = self.language
        texts = (text for ordered in orders(value) for text in spellings(ordered).values())
        return language is not None and any(text in language for text in texts)


@cache
def verdicts() -> tuple[Verdict, ...]:
    """Of all schemas, the optional ones too. Raises subprocess.CalledProcessError where they cannot be fetched."""
    return tuple(map(_verdict, suite_cases()))


def _verdict(case: SuiteCase) -> Verdict:
    try:
        return Verdict(case, Language.of_schema(case.schema))
    except UnsupportedGrammar as error:
        return Verdict(case, refusal=error.message)
    except ValueError as error:
        return Verdict(case, fault=str(error))


def _step(text: str) -> str | int:
    if text.startswith("."):
        return text[1:]
    return text[2:-2] if text.startswith('["') else int(text[1:-1])
