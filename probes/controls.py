"""Negative controls: a probe that passes without its guard would say nothing."""

from collections.abc import Sequence
from dataclasses import replace

from probes.bench import Bench
from probes.probe import Attack, Control, Group, Probe
from probes.rig import run_probe


def run_controls(groups: Sequence[Group], bench: Bench) -> int:
    """Run each probe with its guard opened wide. The exit code is 1 when one passes."""
    print("| guard | opened by | probe | fails without its guard | because |\n|---|---|---|---|---|", flush=True)
    results = [run_control(group, control, bench) for group in groups for control in group.controls]
    return 0 if results and all(results) else 1


def run_control(group: Group, control: Control, bench: Bench) -> bool:
    """Whether the probe fails, as it must."""
    probe = opened(group.probe_named(control.probe), control)
    row = run_probe(group.name, probe, bench.with_flags(*control.flags), repeats=0)
    said = row.why_not or ("no" if row.is_passed else "yes")
    because = "; ".join(row.breaches)[:200]
    flags = " ".join(control.flags) or "no keys"
    print(f"| {control.guard} | {flags} | {group.name} / {control.probe} | {said} | {because} |", flush=True)
    return not row.is_passed or bool(row.why_not)


def opened(probe: Probe, control: Control) -> Probe:
    if isinstance(probe, Attack) and control.keys is not None:
        return replace(probe, keys=control.keys)
    return probe
