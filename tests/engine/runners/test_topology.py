"""Numbers of threads worth measuring, by what the kernel tells of processors, on invented machines."""

from pathlib import Path

import pytest

from octavo.engine.runners.llama_cpp.topology import Processor, read_topology, thread_candidates


def plain(number: int) -> list[Processor]:
    return [Processor(str(core), is_fast=True) for core in range(number)]


def paired(number: int) -> list[Processor]:
    """Cores of two processors each."""
    return [Processor(f"{core},{core + number}", is_fast=True) for core in range(number)] * 2


def mixed(num_fast: int, num_slow: int) -> list[Processor]:
    return [Processor(str(core), core < num_fast) for core in range(num_fast + num_slow)]


@pytest.mark.parametrize(
    ("num_usable", "processors", "candidates"),
    [
        (1, plain(1), (1,)),
        (2, plain(2), (2, 1)),
        (16, paired(8), (16, 15, 8)),
        (8, mixed(4, 4), (8, 7, 4)),
        (24, paired(8) + mixed(0, 8), (24, 23, 16, 8)),
        (4, paired(8), (4, 3)),  # of more processors than a quota leaves
        (6, [], (6, 5)),  # the kernel tells nothing
    ],
)
def test_threads_are_measured_per_processor_one_less_per_core_and_per_fast_core(
    num_usable: int, processors: list[Processor], candidates: tuple[int, ...]
) -> None:
    assert thread_candidates(num_usable, processors) == candidates


def write_processor(devices: Path, number: int, siblings: str, capacity: int | None = None) -> None:
    folder = devices / "system" / "cpu" / f"cpu{number}"
    (folder / "topology").mkdir(parents=True)
    (folder / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
    if capacity is not None:
        (folder / "cpu_capacity").write_text(f"{capacity}\n")


def test_efficiency_cores_are_told_by_their_capacity(tmp_path: Path) -> None:
    for number, capacity in enumerate((1024, 870, 400)):
        write_processor(tmp_path, number, str(number), capacity)
    assert [processor.is_fast for processor in read_topology(range(3), tmp_path)] == [True, True, False]


def test_efficiency_cores_of_intel_s_hybrids_are_told_by_the_list_of_them(tmp_path: Path) -> None:
    for number, siblings in enumerate(("0-1", "0-1", "2", "3")):
        write_processor(tmp_path, number, siblings)
    (tmp_path / "cpu_atom").mkdir()
    (tmp_path / "cpu_atom" / "cpus").write_text("2-3\n")
    assert read_topology(range(4), tmp_path) == (
        Processor("0-1", is_fast=True),
        Processor("0-1", is_fast=True),
        Processor("2", is_fast=False),
        Processor("3", is_fast=False),
    )


def test_where_the_kernel_does_not_tell_all_cores_none_are_known(tmp_path: Path) -> None:
    write_processor(tmp_path, 0, "0")
    assert read_topology(range(2), tmp_path) == ()
