"""What an option of `octavo serve` costs: with it and without it, each alone on the machine, in turns.

python -m benchmarks.option_cost --deterministic
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from benchmarks.compare import RESULTS, Plan, compare, demo_model, octavo, shown, write_report
from benchmarks.load import LoadConfig
from benchmarks.machine import describe_machine, describe_versions
from benchmarks.processes import ServerFailed, run_until_stopped
from benchmarks.report import Comparison

ROUNDS = 3


def main() -> None:
    """Measure the flags of the command line against none, and write the report."""
    flags = sys.argv[1:]
    if not flags:
        sys.exit(__doc__)
    model = demo_model()
    plan = Plan(
        contenders=[octavo(model, flags), octavo(model, (), "octavo (defaults)")],
        rounds=ROUNDS,
        stream_counts=[1, 8, 32],
        requests_per_stream=2,
        load=LoadConfig(url="http://127.0.0.1", ignore_eos=True),
    )
    comparison = Comparison(
        started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
        machine=describe_machine(),
        versions=describe_versions(),
        commands={contender.name: shown(contender.command(1)) for contender in plan.contenders},
        workload=plan.describe(),
    )
    failure = None
    try:
        run_until_stopped(compare(plan, comparison))
    except (OSError, ServerFailed) as error:
        failure = str(error)
    if comparison.measurements:
        report = write_report(comparison, RESULTS)
        print(f"\n{report.read_text()}\nWritten to {report}; the same as JSON is beside it.")
    sys.exit(failure)


if __name__ == "__main__":
    main()
