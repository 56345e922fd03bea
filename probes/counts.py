"""What a probe found."""

from typing import Any

import msgspec

from probes.answer import Answer
from probes.verdict import fault_of

MAX_FINDINGS = 20


class Counts(msgspec.Struct):
    """num_right of num_sent were answered as specified. num_unplanned: 5xx that were not asked for.
    num_misshapen: errors that do not look like one. num_exits: processes that ended and should not have.
    findings: what was wrong, the first of it in words. figures: what else was counted or measured, by name.
    """

    num_sent: int = 0
    num_right: int = 0
    num_unplanned: int = 0
    num_misshapen: int = 0
    num_exits: int = 0
    findings: list[str] = []
    figures: dict[str, float] = {}

    @property
    def is_right(self) -> bool:
        return self.num_right == self.num_sent and not (self.num_unplanned or self.num_misshapen or self.num_exits)

    def judge(
        self, name: str, answer: Answer, expected: tuple[int, ...], *, sent: bytes = b"", secrets: tuple[str, ...] = ()
    ) -> None:
        """Count an answer that must have one of these statuses, and the shape of an error where it is one."""
        self.count(name, answer.status in expected, f"{answer.status}, not {expected}: {answer.body[:200]!r}")
        if answer.status >= 500 and answer.status not in expected:
            self.num_unplanned += 1
        if answer.status >= 400 and (fault := fault_of(answer, sent, secrets)):
            self.num_misshapen += 1
            self.find(f"{name}: {fault}")

    def count(self, name: str, is_right: bool, otherwise: str = "") -> None:
        """Count something that was tried."""
        self.num_sent += 1
        self.num_right += is_right
        if not is_right:
            self.find(f"{name}: {otherwise or 'not as it must be'}")

    def find(self, finding: str) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(finding[:600])

    def add(self, other: "Counts") -> None:
        """Of figures with the same name, the largest stays."""
        self.num_sent += other.num_sent
        self.num_right += other.num_right
        self.num_unplanned += other.num_unplanned
        self.num_misshapen += other.num_misshapen
        self.num_exits += other.num_exits
        for finding in other.findings:
            self.find(finding)
        for name, value in other.figures.items():
            self.worst(name, value)

    def worst(self, name: str, value: float) -> None:
        """Keep the largest of a figure's values."""
        self.figures[name] = max(value, self.figures.get(name, value))


def counts_from(data: bytes) -> Counts:
    """Raises msgspec.DecodeError."""
    return msgspec.json.decode(data, type=Counts)


def counts_to(counts: Counts) -> Any:
    return msgspec.to_builtins(counts)
