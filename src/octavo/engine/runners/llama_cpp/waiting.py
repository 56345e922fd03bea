"""How the engine's threads wait for each other, at some thousand barriers a step.

OpenMP reads its settings when it is loaded, before anything could be measured in its process. Its default is to spin
for some milliseconds and then to sleep; `python -m benchmarks.threads` measures it against others.
"""

from collections.abc import Mapping

VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Of the environment, for the common libraries of OpenMP."""
OPENMP = "OPENMP = 1"


def describe_waiting(environment: Mapping[str, str], system_info: str) -> str:
    """What is in force, for people. system_info: what the library says that it was built to use."""
    if OPENMP not in system_info:
        return "in llama.cpp's own way, because it was built without OpenMP"
    given = [f"{name}={environment[name]}" for name in VARIABLES if name in environment]
    if given:
        return f"as the environment says, {' '.join(given)}"
    return "OpenMP's default, which spins and then sleeps: where nothing else runs, less spinning only cost speed"
