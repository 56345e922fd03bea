"""`octavo serve --engine scripted`, with more slots than a model's engine can have.

python -m benchmarks.scripted_server --port 8080 --slots 500
"""

from __future__ import annotations

import argparse
import sys

from octavo.cli.serve import serve
from octavo.config import load_settings

TEXT = "The quick brown fox jumps over the lazy dog." * 100
"""So long that its end-of-generation token, which has no text, comes seldom."""


def main() -> None:
    """Read the options, and serve until a signal comes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scripted_server", description=__doc__)
    parser.add_argument("--port", required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--delay", default="0", help="seconds between a stream's tokens")
    options = parser.parse_args()
    flags = {
        "engine": "scripted",
        "scripted_text": TEXT,
        "scripted_delay": options.delay,
        "port": options.port,
        "log_level": "warning",
    }
    # The command line refuses more than llama.cpp can take.
    sys.exit(serve(load_settings(flags).model_copy(update={"slots": options.slots})))


if __name__ == "__main__":
    main()
