"""GGUF files with a header that lies: numbers exchanged, and ends cut off."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from gguf import GGUFReader

MAGIC_BYTES = 4
NUMBERS = {4: struct.Struct("<I"), 8: struct.Struct("<Q")}
"""The sizes in which a header writes counts, lengths, dimensions, types and offsets."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a header. start: the first of its bytes in the file."""

    start: int
    size: int

    def read(self, data: bytes) -> int:
        return int.from_bytes(data[self.start : self.start + self.size], "little")

    def write(self, data: bytes, value: int) -> bytes:
        return data[: self.start] + NUMBERS[self.size].pack(value) + data[self.start + self.size :]


def header_numbers(path: Path) -> tuple[Number, ...]:
    """All numbers of a file's header, in order: of the version and the counts, the metadata and the tensors."""
    reader = GGUFReader(path)
    numbers: list[Number] = []
    for field in (*reader.fields.values(), *(tensor.field for tensor in reader.tensors)):
        starts = accumulate((part.nbytes for part in field.parts), initial=field.offset)
        for start, part in zip(starts, field.parts, strict=False):
            if part.dtype != np.uint8:
                numbers += [Number(start + at, part.itemsize) for at in range(0, part.nbytes, part.itemsize)]
    return tuple(sorted(numbers, key=lambda number: number.start))


def header_mutations(path: Path, count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """So many different files that have one other number in their header each, and what was done to them.

    Some may still be what they were, with another name or another number in a place that nobody reads.
    """
    random, data, numbers = np.random.default_rng(seed), path.read_bytes(), header_numbers(path)
    values = sorted({number.read(data) for number in numbers})
    seen = {data}
    while len(seen) <= count:
        number = numbers[random.integers(len(numbers))]
        value = drawn_value(random, number, data, values)
        mutated = number.write(data, value)
        if mutated not in seen:
            seen.add(mutated)
            yield f"byte {number.start}: {number.read(data)} becomes {value}", mutated


def drawn_value(random: np.random.Generator, number: Number, data: bytes, others: Sequence[int]) -> int:
    """For a number's place: small, huge, negative for who reads it so, near, one bit off, or another place's."""
    value, most = number.read(data), 2 ** (8 * number.size) - 1
    bit = 1 << int(random.integers(8 * number.size))
    ends = (0, 1, 2, 4, 2**20, 2**31 - 1, 2**31, most // 2, most // 2 + 1, most - 31, most)
    near = (value - 1, value + 1, 2 * value, value // 2, value + 32, value ^ bit)
    choices = (ends, near, others)[random.integers(3)]
    return choices[random.integers(len(choices))] & most


def truncations(path: Path) -> Iterator[tuple[str, bytes]]:
    """The file up to each number of its header, to the half of each, to its data, and to within them."""
    data = path.read_bytes()
    starts = [number.start + offset for number in header_numbers(path) for offset in (0, number.size // 2)]
    start_of_data = GGUFReader(path).data_offset
    ends = {0, 1, MAGIC_BYTES, *starts, start_of_data - 1, start_of_data, start_of_data + 1, len(data) - 1}
    for end in sorted(ends):
        yield f"the first {end} of {len(data)} bytes", data[:end]
