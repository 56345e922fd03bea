"""Rows of text for a terminal or a pipe."""

from collections.abc import Sequence

from octavo.cli.terminal import shown

_BREAKS = str.maketrans({"\n": r"\n", "\t": r"\t"})


def table(rows: Sequence[Sequence[str]]) -> str:
    """A line for each row, in columns. A row stays one line, whatever its cells hold."""
    cells = [[shown(cell).translate(_BREAKS) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "".join(f"{line.rstrip()}\n" for line in lines)
