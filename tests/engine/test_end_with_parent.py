"""Processes end with the one that started them, also where that was gone before they could ask for it."""

import os
import subprocess
import sys

CODE = "import sys; from octavo.engine.end_with_parent import end_with_parent; end_with_parent(int(sys.argv[1]))"


def exit_code(parent: int) -> int:
    return subprocess.run((sys.executable, "-c", CODE, str(parent)), check=False).returncode


def test_a_process_whose_parent_lives_goes_on() -> None:
    assert exit_code(os.getpid()) == 0


def test_a_process_whose_parent_is_gone_ends_at_once() -> None:
    assert exit_code(os.getppid()) == 1
