"""One attack, once. The first line of its output is what it counted.

python -m probes.attacker GROUP PROBE TARGET
"""

import asyncio
import resource
import sys

import msgspec

from probes.companion import report
from probes.counts import counts_to
from probes.groups import probe_named
from probes.probe import Attack
from probes.target import Target


def main() -> None:
    group, name, target = sys.argv[1:]
    probe = probe_named(group, name)
    assert isinstance(probe, Attack)
    _allow_many_files()
    report(counts_to(asyncio.run(probe.attack(msgspec.json.decode(target, type=Target)))))


def _allow_many_files() -> None:
    """An attack may hold hundreds of connections open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    main()
