import subprocess
import sys

import pytest

PROGRAM = """
import logging, resource, sys
from octavo.server.open_files import allow_open_files
logging.basicConfig(format="%(message)s")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, int(sys.argv[1])))
num_possible = allow_open_files(1000)
print(num_possible, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("hard", "allowed", "warning"),
    [
        (4096, "1000 1256", ""),
        (1024, "768 1024", "1000 connections need 1256: there will be 768 at most"),
        (200, "100 200", "there will be 100 at most"),
    ],
)
def test_as_many_files_are_allowed_as_connections_need_and_the_system_grants(
    hard: int, allowed: str, warning: str
) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(hard)], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == allowed
    assert warning in done.stderr
    assert bool(done.stderr) == bool(warning)
