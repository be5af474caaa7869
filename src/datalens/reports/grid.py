"""A table as plain text cells, and its three forms: aligned text, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass


@dataclass(frozen=True)
class Grid:
    """A table ready to be shown.

    Attributes:
        title: one line.
        header: names of the columns.
        rows: as many texts as columns.
        notes: lines below it.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"a row has {len(row)} cells, the header {len(self.header)}: {row}")


def to_text(grid: Grid) -> str:
    """Aligned columns for a terminal.

    >>> print(to_text(Grid("Two", ("a", "b"), (("1", "22"),))))
    Two
    <BLANKLINE>
    a  b
    1  22
    """
    widths = [max(map(len, column)) for column in zip(grid.header, *grid.rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (grid.header, *grid.rows)
    ]
    return "\n".join([grid.title, "", *lines, *([""] if grid.notes else []), *grid.notes])


def to_markdown(grid: Grid) -> str:
    """A Markdown table; pipes and line breaks in cells are escaped.

    >>> print(to_markdown(Grid("Two", ("a", "b"), (("1|0", "22"),))))
    **Two**
    <BLANKLINE>
    | a | b |
    |---|---|
    | 1\\|0 | 22 |
    <BLANKLINE>
    """

    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    rows = [line(grid.header), "|" + "---|" * len(grid.header), *map(line, grid.rows)]
    notes = [f"* {note}" for note in grid.notes]
    return "\n".join([f"**{grid.title}**", "", *rows, *([""] if notes else []), *notes]) + "\n"


def to_csv(grid: Grid) -> str:
    """Comma-separated values with the header first; notes are left out.

    >>> to_csv(Grid("Two", ("a", "b"), (("1,5", "22"),)))
    'a,b\\n"1,5",22\\n'
    """
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([grid.header, *grid.rows])
    return buffer.getvalue()
