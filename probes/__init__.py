"""Probes: abuse, faults and overload against a real server, with figures. See README.md."""

import sys
from pathlib import Path

# The bad inputs, the checker and the canary are those of the tests.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
