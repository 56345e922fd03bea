"""python -m probes [GROUP…] [--seed N] [--examples N] [--scale X] [--repeats N] [--json FILE] [--controls]"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from probes.bench import Bench
from probes.controls import run_controls
from probes.groups import NAMES, group_named
from probes.probe import Group
from probes.rig import run_probe
from probes.row import Row, head, line

REPEATS = 2
CONTROL_SCALE = 0.05
"""A guard that is missing shows at once."""
EXAMPLES = 250
MAX_SHOWN = 5
"""Findings of each probe; the JSON file has more."""


def main() -> int:
    options = read_options()
    if options.controls:
        return run_controls(chosen(options), bench_of(options, CONTROL_SCALE))
    rows = list(run_all(options))
    if options.json:
        Path(options.json).write_text(json.dumps(report(options, rows), indent=1) + "\n", encoding="utf-8")
    return say_end(rows)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m probes", description="Abuse a server and see that it stands it.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(NAMES)}; without, all in small")
    parser.add_argument("--probe", action="append", help="only this one of them; may be given several times")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random (1)")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help=f"for each generated case ({EXAMPLES})")
    parser.add_argument("--scale", type=float, help="of the number of things that are sent; see the README")
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, help=f"of attack and control ({REPEATS}); 0: no control"
    )
    parser.add_argument("--json", metavar="FILE", help="for the results")
    parser.add_argument("--controls", action="store_true", help="see that each probe fails without its guard")
    options = parser.parse_args()
    unknown = set(options.groups) - set(NAMES)
    if unknown:
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    return options


def chosen(options: argparse.Namespace) -> list[Group]:
    return [group_named(name) for name in options.groups or NAMES]


def bench_of(options: argparse.Namespace, share: float) -> Bench:
    return Bench(seed=options.seed, scale=share if options.scale is None else options.scale, examples=options.examples)


def run_all(options: argparse.Namespace) -> Iterator[Row]:
    """Groups that are named run in full; without names, each runs at its share."""
    print(head(), flush=True)
    for group in chosen(options):
        share = 1.0 if options.groups else group.share
        if share == 0:
            continue
        for probe in group.probes:
            if not options.probe or probe.name in options.probe:
                row = run_probe(group.name, probe, bench_of(options, share), options.repeats)
                print(line(row.cells), flush=True)
                yield row


def report(options: argparse.Namespace, rows: list[Row]) -> dict[str, Any]:
    return {"seed": options.seed, "examples": options.examples, "probes": [row.to_json() for row in rows]}


def say_end(rows: list[Row]) -> int:
    """The findings, and the exit code."""
    broken = [row for row in rows if not row.is_passed]
    for row in broken:
        print(f"\n{row.group} / {row.probe}: {'; '.join(row.breaches)}")
        for finding in row.counts.findings[:MAX_SHOWN]:
            print(f"  - {finding}")
    num_sent = sum(row.counts.num_sent for row in rows)
    num_right = sum(row.counts.num_right for row in rows)
    print(f"\n{num_right} of {num_sent} as specified; {len(rows) - len(broken)} of {len(rows)} probes passed")
    return 1 if broken or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
