"""The judges of pages, of files that were opened and of rows that were stored: what is wrong is found."""

import os
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from probes.answer import Answer
from probes.counts import Counts
from probes.documents import EXPECTED, judge, judge_elsewhere, secret_lines
from probes.gauges import num_running, num_waiting
from probes.groups.logging import _judge_rows
from probes.opened_files import end_tracer, path_in, state_in
from probes.small_disk import no_small_disk, small_disk
from probes.talk import DONE, REFUSED, Talk

PAGE = b"<title>octavo</title>"
SECRETS = ("root:x:0:0:root:/root:/bin/bash", "PATH=")
ENDS = [Talk(DONE, 200, id="a"), Talk(DONE, 200, id="b"), Talk(REFUSED, 503, "prompt_log_unavailable")]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('openat(AT_FDCWD</srv>, "link", O_RDONLY) = 3</etc/passwd>', "/etc/passwd"),
        ('openat(AT_FDCWD</srv>, "x", O_RDONLY) = -1 ENOENT (No such file or directory)', "/srv/x"),
        ('openat(AT_FDCWD</srv>, "/etc/x", O_RDONLY|O_CLOEXEC) = -1 EACCES (Permission denied)', "/etc/x"),
        ('openat(5</srv/a>, "b/x", O_RDONLY) = -1 ENOENT (No such file or directory)', "/srv/a/b/x"),
        ('openat2(AT_FDCWD</srv>, "x", {flags=O_RDONLY, resolve=0}, 24) = 7</srv/x>', "/srv/x"),
        ('open("/etc/hosts", O_RDONLY) = 3</etc/hosts>', "/etc/hosts"),
        ('open("/etc/hosts", O_RDONLY) = -1 EMFILE (Too many open files)', "/etc/hosts"),
        ("--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---", ""),
        ("+++ exited with 0 +++", ""),
    ],
)
def test_a_line_of_a_trace_has_the_path_after_all_links(line: str, path: str) -> None:
    assert path_in(line) == path


def test_a_tracer_that_does_not_let_go_is_killed() -> None:
    with subprocess.Popen(("sh", "-c", "trap '' INT; echo; sleep 60 & wait"), stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout is not None
        tracer.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            end_tracer(tracer, seconds=0.1)
    assert tracer.returncode < 0


def test_a_thread_that_has_ended_has_no_state() -> None:
    with subprocess.Popen("true") as process:
        process.wait()
    assert state_in(Path(f"/proc/{process.pid}/status")) == ""
    assert "TracerPid" in state_in(Path(f"/proc/{os.getpid()}/status"))


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, {}, SECRETS[0].encode()),
        Answer(200, {}, b"HOME=/\0PATH=/usr/bin\0"),
        Answer(200, {}, b"no page"),
        Answer(200, {}, PAGE, is_whole=False),
        Answer(200, {}, PAGE * 3),
        Answer(206, {}, PAGE),
        Answer(0, is_whole=False),
    ],
)
def test_what_is_no_page_of_the_servers_is_found(answer: Answer) -> None:
    counts = Counts()
    judge_elsewhere(counts, "/../x", answer, [PAGE], SECRETS)
    assert not counts.is_right


def test_a_page_is_right() -> None:
    counts = Counts()
    judge_elsewhere(counts, "/./", Answer(200, {}, PAGE), [b"", PAGE], SECRETS)
    judge(counts, "/", Answer(200, {}, PAGE), EXPECTED, len(PAGE), SECRETS)
    assert counts.is_right, counts.findings


def test_a_secret_is_known_of_each_file_that_is_asked_for() -> None:
    assert len(secret_lines()) == 3
    assert b"PATH=" in Path("/proc/self/environ").read_bytes()


def rows(**numbers: float) -> defaultdict[str, float]:
    return defaultdict(float, {"logged": 2, "stored": 2, "refused": 1, **numbers})


def test_rows_that_agree_are_right() -> None:
    counts = Counts()
    _judge_rows(counts, ENDS, rows(), {"a": "{}", "b": "{}"})
    assert counts.is_right, counts.findings


@pytest.mark.parametrize(
    ("counted", "stored"),
    [
        (rows(stored=1), {"a": "{}"}),
        (rows(), {"a": "{}"}),
        (rows(stored=3), {"a": "{}", "b": "{}", "c": "{}"}),
        (rows(refused=0), {"a": "{}", "b": "{}"}),
        (rows(set_aside=1), {"a": "{}", "b": "{}"}),
        (rows(), {"a": "{}", "b": "{"}),
    ],
)
def test_a_row_that_is_missing_or_too_much_is_found(counted: defaultdict[str, float], stored: dict[str, str]) -> None:
    counts = Counts()
    _judge_rows(counts, ENDS, counted, stored)
    assert not counts.is_right


@pytest.mark.skipif(bool(no_small_disk()), reason="it needs root")
def test_nothing_stays_mounted_though_a_file_is_open() -> None:
    with small_disk() as disk:
        file = (disk / "x").open("w")
    with file:
        assert str(disk) not in Path("/proc/mounts").read_text()
        assert not disk.exists()


def test_a_page_without_a_gauge_says_neither_few_nor_many() -> None:
    page = 'octavo_requests_running{model="a"} 2.0\noctavo_requests_running{model="b"} 1.0\n'
    assert num_running(page) == 3
    waiting = num_waiting(page)
    assert not waiting <= 1
    assert not waiting >= 1
