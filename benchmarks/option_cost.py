"""What an option of `octavo serve` costs: with it and without it, each alone on the machine, in turns.

python -m benchmarks.option_cost --deterministic
"""

from __future__ import annotations

import sys

from benchmarks.compare import demo_model
from benchmarks.contenders import octavo
from benchmarks.rounds import RESULTS, Plan, begin_report, run_and_report
from benchmarks.workloads import WORKLOADS

ROUNDS = 3
STREAM_COUNTS = (1, 8, 32)


def main() -> None:
    """Measure the flags of the command line against none, and write the report."""
    flags = sys.argv[1:]
    if not flags:
        sys.exit(__doc__)
    model = demo_model()
    contenders = [octavo(model, flags), octavo(model, (), "octavo (defaults)")]
    run_and_report([Plan(WORKLOADS["a"], contenders, STREAM_COUNTS, ROUNDS)], begin_report({}), RESULTS)


if __name__ == "__main__":
    main()
