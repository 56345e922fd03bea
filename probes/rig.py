"""Runs a probe, and says which pass lines it broke."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import httpx
import msgspec
import psutil

from probes.bench import Bench
from probes.companion import Companion, accompanied
from probes.counts import Counts, counts_from
from probes.gauges import num_running, num_waiting
from probes.healthy import Health
from probes.measure import Ratio, percentile
from probes.probe import Attack, Drill, Probe
from probes.row import Row
from probes.sampler import Samples, sample
from probes.target import Target
from support.processes import SECONDS, Server, eventually

MIN_SECONDS = 2.0
"""Shorter attacks are repeated: the healthy client must have something to tell."""
MAX_RATIO = 1.5
MAX_STALL = 0.25
MAX_FDS = 4
"""More than before that still count as the same: connections that the server's own clients keep."""
SETTLE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Period:
    """What was seen while an attack ran, or its control."""

    health: Health
    samples: Samples
    counts: Counts

    @property
    def stall(self) -> float:
        return max((*self.health.first_tokens, *self.health.gaps), default=0.0)


def run_probe(group: str, probe: Probe, bench: Bench, repeats: int) -> Row:
    """repeats: of an attack and of its control; 0: once, and without the control."""
    started, row = time.monotonic(), Row(group, probe.name, why_not=probe.why_not())
    if row.why_not:
        return row
    try:
        _run(row, probe, bench, repeats)
    except (AssertionError, RuntimeError, OSError, httpx.HTTPError, subprocess.SubprocessError) as error:
        row.breaches.append(f"could not be run to its end: {str(error)[-300:]}")
    row.seconds = time.monotonic() - started
    return row


def _run(row: Row, probe: Probe, bench: Bench, repeats: int) -> None:
    match probe:
        case Attack():
            _run_attack(row, probe, bench, repeats)
        case Drill():
            _run_drill(row, probe, bench)


def _run_drill(row: Row, probe: Drill, bench: Bench) -> None:
    row.counts = probe.drill(bench)
    row.breaches = breaches_of(row.counts)


def _run_attack(row: Row, probe: Attack, bench: Bench, repeats: int) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(bench.serving(*probe.flags, engine=probe.engine, keys=probe.keys))
        target = bench.target(server, probe.keys)
        scene = Scene(
            row.group,
            probe,
            target,
            healthy=stack.enter_context(accompanied("probes.healthy", _text(target))),
            sampler=stack.enter_context(accompanied("probes.sampler", str(server.pid))),
        )
        before = sample(psutil.Process(server.pid))
        attacks, controls = [], []
        sink = stack.enter_context(accompanied("probes.sink")) if probe.is_compared and repeats else None
        for _ in range(max(repeats, 1) if probe.is_compared else 1):
            attacks.append(scene.attack(target, MIN_SECONDS if repeats else 0.0))
            _wait_idle(server, target)
            if sink is not None:
                controls.append(scene.attack(msgspec.structs.replace(target, url=sink.first), MIN_SECONDS))
        _fill(row, attacks, controls)
        row.breaches = [
            *breaches_of(row.counts),
            *_health_breaches(attacks, probe),
            *_speed_breaches(row),
            *_aftermath(server, target, scene, before.children, before.num_fds),
        ]


@dataclass(frozen=True, slots=True)
class Scene:
    group: str
    probe: Attack
    target: Target
    healthy: Companion
    sampler: Companion

    def attack(self, target: Target, min_seconds: float) -> Period:
        """On this target, again and again for so long, while the companions look at the server."""
        counts, start = Counts(), time.monotonic()
        self.sampler.begin()
        self.healthy.begin()
        while True:
            counts.add(self._attack_once(target))
            if not self.probe.is_compared or time.monotonic() - start >= min_seconds:
                break
        health = msgspec.convert(self.healthy.end(), Health)
        return Period(health, msgspec.convert(self.sampler.end(), Samples), counts)

    def _attack_once(self, target: Target) -> Counts:
        command = (sys.executable, "-m", "probes.attacker", self.group, self.probe.name, _text(target))
        return counts_from(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def breaches_of(counts: Counts) -> list[str]:
    """The pass lines that the counts alone break."""
    found = []
    if counts.num_sent == 0:
        found.append("nothing was sent")
    if counts.num_right < counts.num_sent:
        found.append(f"{counts.num_sent - counts.num_right} not as specified")
    for number, what in (
        (counts.num_unplanned, "unplanned 5xx"),
        (counts.num_misshapen, "without the shape of an error"),
        (counts.num_exits, "processes ended"),
    ):
        if number:
            found.append(f"{number} {what}")
    return found


def _fill(row: Row, attacks: list[Period], controls: list[Period]) -> None:
    for period in attacks:
        row.counts.add(period.counts)
    row.memory = max(period.samples.peak - period.samples.before.memory for period in attacks)
    row.stall = max(period.stall for period in attacks)
    if controls:
        row.first_token = Ratio.of(*([_p99(p.health.first_tokens) for p in side] for side in (attacks, controls)))
        row.gap = Ratio.of(*([_p99(p.health.gaps) for p in side] for side in (attacks, controls)))


def _p99(seconds: list[float]) -> float:
    return percentile(seconds, 99)


def _health_breaches(attacks: list[Period], probe: Attack) -> list[str]:
    found = []
    num_wrong = sum(period.health.num_wrong for period in attacks)
    num_failed = sum(period.health.num_failed for period in attacks)
    growth = max(period.samples.peak - period.samples.before.memory for period in attacks)
    if num_wrong:
        found.append(f"{num_wrong} wrong texts for the healthy client")
    if num_failed:
        failures = {failure for period in attacks for failure in period.health.failures}
        found.append(f"{num_failed} failures for the healthy client ({'; '.join(sorted(failures))[:200]})")
    if growth > probe.max_growth:
        found.append(f"memory {growth / 2**20:.1f} MiB above rest, more than {probe.max_growth / 2**20:.0f}")
    return found


def _speed_breaches(row: Row) -> list[str]:
    """Only what the control allows to tell."""
    found = []
    for ratio, what in ((row.first_token, "first token"), (row.gap, "gap")):
        if ratio is not None and ratio.is_resolvable and ratio.median > MAX_RATIO:
            found.append(f"p99 of the {what} {ratio.median:.2f} times the control's")
    steady = all(ratio is not None and ratio.is_resolvable for ratio in (row.first_token, row.gap))
    if steady and row.stall is not None and row.stall > MAX_STALL:
        found.append(f"the healthy client waited {1000 * row.stall:.0f} ms")
    return found


def _aftermath(server: Server, target: Target, scene: Scene, children: list[int], num_fds: int) -> list[str]:
    """What an attack must leave as it was."""
    if not server.is_running:
        return ["the server has ended"]
    found = []
    process = psutil.Process(server.pid)
    with server.client() as client:
        if client.get("/health").status_code != 200:
            found.append("/health is not 200")
    if not _holds(lambda: sample(process).num_fds <= num_fds + MAX_FDS):
        found.append(f"{sample(process).num_fds} file descriptors, {num_fds} before")
    if not _holds(lambda: is_idle(target)):
        found.append("slots are not free")
    if sample(process).children != children:
        found.append("other child processes than before")
    scene.healthy.begin()
    time.sleep(0.2)
    health = msgspec.convert(scene.healthy.end(), Health)
    if health.num_wrong or health.num_failed or not health.num_streams:
        found.append("the healthy client's answer is not what it was")
    return found


def is_idle(target: Target) -> bool:
    """By the server's own numbers nothing runs or waits."""
    try:
        page = httpx.get(f"{target.url}/metrics", headers=target.headers, timeout=SECONDS, trust_env=False).text
    except httpx.HTTPError:
        return False
    return num_running(page) + num_waiting(page) == 0


def _wait_idle(server: Server, target: Target) -> None:
    if server.is_running:
        _holds(lambda: is_idle(target))


def _holds(what: Callable[[], bool]) -> bool:
    try:
        eventually(what, SETTLE_SECONDS)
    except AssertionError:
        return False
    return True


def _text(target: Target) -> str:
    return msgspec.json.encode(target).decode()
