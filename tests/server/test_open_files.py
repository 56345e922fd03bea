import subprocess
import sys

import pytest

PROGRAM = """
import logging, resource, sys
from octavo.server.open_files import allow_open_files
logging.basicConfig(format="%(message)s")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, int(sys.argv[1])))
allow_open_files(100)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(("hard", "allowed", "warning"), [(1024, "356", ""), (200, "200", "100 connections need 356")])
def test_as_many_files_are_allowed_as_connections_need_and_the_system_grants(
    hard: int, allowed: str, warning: str
) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(hard)], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == allowed
    assert warning in done.stderr
    assert bool(done.stderr) == bool(warning)
