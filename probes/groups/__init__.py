"""All groups, by name."""

from importlib import import_module

from probes.probe import Group, Probe

NAMES = (
    *("input", "grammar", "media", "connections", "network", "access", "overload", "legit", "faults", "logging"),
    "soak",
)


def group_named(name: str) -> Group:
    group = import_module(f"probes.groups.{name}").GROUP
    assert isinstance(group, Group)
    return group


def probe_named(group: str, name: str) -> Probe:
    return group_named(group).probe_named(name)
