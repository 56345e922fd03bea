"""What Prometheus' text format and its queries name."""

import re
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

_NAME = re.compile(r"\b(?:octavo|process|vllm|llamacpp|up|python)(?:[a-zA-Z0-9_:]*)\b")
_SELECTOR = re.compile(r"\{([^}]*)\}")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPING = re.compile(r"\b(?:by|without|on)\s*\(([^)]*)\)")
_STRING = re.compile(r'"[^"]*"')
_SUFFIXES = {
    "counter": ("_total", "_created"),
    "histogram": ("_bucket", "_sum", "_count", "_created"),
    "info": ("_info",),
}


@dataclass(frozen=True, slots=True)
class Family:
    """name: as docs and queries have it, a counter's with `_total`. labels: without a histogram's `le`."""

    name: str
    kind: str
    labels: frozenset[str]

    @property
    def samples(self) -> set[str]:
        if self.kind == "histogram":
            return {f"{self.name}{suffix}" for suffix in _SUFFIXES["histogram"]}
        return {self.name}


def families_of(page: str) -> dict[str, Family]:
    """All that a page has, whether it has samples or not; those that only say when a counter began are left out."""
    families = (
        Family(
            family.name + ("_total" if family.type == "counter" else ""),
            family.type,
            frozenset(label for sample in family.samples for label in sample.labels) - {"le"},
        )
        for family in text_string_to_metric_families(page)
        if not family.name.endswith("_created")
    )
    return {family.name: family for family in families}


def metrics_of(query: str) -> set[str]:
    """Names of the metrics in a PromQL expression."""
    return set(_NAME.findall(_GROUPING.sub("", _SELECTOR.sub("", query))))


def labels_of(query: str) -> set[str]:
    """Names of the labels in a PromQL expression."""
    matched = {name for selector in _SELECTOR.findall(query) for name in _MATCHER.findall(_STRING.sub('""', selector))}
    grouped = {name.strip() for names in _GROUPING.findall(_SELECTOR.sub("", query)) for name in names.split(",")}
    return matched | grouped
