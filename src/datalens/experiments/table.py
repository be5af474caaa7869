"""A table of results: its rows of cells, its columns of scores, and how it is drawn from the results store."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from datalens.experiments.dpsgd_cells import TableCell
from datalens.experiments.store import ResultsStore
from datalens.reports.grid import Grid

RUN = "run"
"""In place of a score's name: what is said of the training itself."""
NO_FILES, NOT_RUN = "no files", "not run"
"""Why a cell is empty: the data set is not on this machine, or nobody has asked yet."""


@dataclass(frozen=True)
class Column:
    """One number of a row: ``field`` of the score ``score``.

    Attributes:
        title: as shown.
        score: name in the results store, or :data:`RUN`.
        field: of that score.
        percent: shares shown as percent.
        digits: after the point; None for what its size needs.
    """

    title: str
    score: str
    field: str = "last_accuracy"
    percent: bool = True
    digits: int | None = None


@dataclass(frozen=True)
class Cost:
    """A column with an epsilon of the training: its title, and the number in what is said of a run.

    The number is infinite where nothing is promised.
    """

    title: str
    of: Callable[[Any], float]


@dataclass(frozen=True)
class Row:
    """One training, over seeds.

    Attributes:
        labels: what the row is.
        cell: with any seed.
        seeds: how many and which.
        printed: what the paper prints, or others; empty where nothing is.
        scores: what is measured of it; the table's columns that it lacks stay empty.
    """

    labels: tuple[str, ...]
    cell: TableCell
    seeds: tuple[int, ...]
    printed: str
    scores: tuple[str, ...]

    @property
    def cells(self) -> list[TableCell]:
        """Its cell with each seed."""
        return [self.cell.with_seed(seed) for seed in self.seeds]

    def refusal(self, store: ResultsStore) -> str | None:
        """Why the product would not train it; None where it did, was not asked yet, or has no recipe."""
        if self.cell.recipe is None:
            return None
        return next(filter(None, map(store.refusal, self.cells)), None)


@dataclass(frozen=True)
class Table:
    """A table of results, as the paper has them or as one chooses a method by.

    Attributes:
        name: of its files, and in ``datalens reproduce NAME``.
        title: one line.
        labels: names of the first columns.
        columns: what is shown of each row.
        printed: title of the last column, what the paper or others print.
        rows: in order.
        notes: lines below it.
        both_adjacencies: epsilon for replacing a record has a column of its own.
        costs: columns with other epsilons, in place of these.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    printed: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    both_adjacencies: bool = False
    costs: tuple[Cost, ...] = ()

    def draw(self, store: ResultsStore, absent: Collection[str] = ()) -> Grid:
        """The table from the results that are there; other cells say why they are empty.

        Args:
            store: the results.
            absent: data sets whose files are not here.
        """
        epsilons = [cost.title for cost in self._costs()]
        header = (*self.labels, *(column.title for column in self.columns), "seeds", *epsilons, self.printed)
        rows = tuple(self._draw_row(row, store, absent) for row in self.rows)
        return Grid(self.title, header, rows, (*self.notes, *self._refusals(store)))

    def _draw_row(self, row: Row, store: ResultsStore, absent: Collection[str]) -> tuple[str, ...]:
        cells = row.cells
        is_refused = row.refusal(store) is not None
        has_run = any(store.run(cell) is not None for cell in cells if row.cell.recipe is not None)
        has_files = row.cell.recipe is not None and row.cell.data_set not in absent
        if is_refused or not (has_files or has_run):
            empty = ("",) * (1 + len(self._costs()))
            return (
                *row.labels,
                *("refused" if is_refused else NO_FILES for _ in self.columns),
                *empty,
                row.printed,
            )
        shown = [
            summary(cells, column, store) if column.score in (*row.scores, RUN) else ""
            for column in self.columns
        ]
        runs = [run for run in map(store.run, cells) if run is not None]
        epsilons = (f"{max(map(cost.of, runs)):.4g}" if runs else "" for cost in self._costs())
        whole = sum(not store.missing(cell, row.scores) for cell in cells)
        count = f"{whole}" if whole == len(cells) else f"{whole} of {len(cells)}"
        return (*row.labels, *shown, count, *epsilons, row.printed)

    def _costs(self) -> tuple[Cost, ...]:
        return self.costs or ((SPENT, REPLACED) if self.both_adjacencies else (SPENT,))

    def _refusals(self, store: ResultsStore) -> list[str]:
        """A note for each reason that plans were refused for, with the rows that it was given for."""
        rows: dict[str, list[str]] = {}
        for row in self.rows:
            reason = row.refusal(store)
            if reason is not None:
                rows.setdefault(reason, []).append(" ".join(row.labels))
        return [f"Refused, {'; '.join(which)}: {reason}" for reason, which in rows.items()]


def summary(cells: Sequence[TableCell], column: Column, store: ResultsStore) -> str:
    """Mean and standard deviation over seeds of one number, or :data:`NOT_RUN`."""
    found = [store.run(cell) if column.score == RUN else store.score(cell, column.score) for cell in cells]
    held = [result.get(column.field) for result in found if result is not None]
    values = [value * (100 if column.percent else 1) for value in held if value is not None]
    if not values:
        return NOT_RUN if not held else "not measured"
    digits = 1 if column.percent or mean(values) >= 100 else 2
    digits = digits if column.digits is None else column.digits
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{mean(values):.{digits}f} ± {stdev(values):.{digits}f}"


def _spent(run: Any) -> float:
    """Epsilon of a training where one record is added or removed."""
    privacy = run["privacy"]
    return math.inf if privacy is None else privacy["spent_epsilon"]["exact"]


def _replaced(run: Any) -> float:
    """The same where one is replaced; where nothing is said, it costs the same."""
    privacy = run["privacy"]
    return _spent(run) if privacy is None else privacy.get("replace_one_epsilon", _spent(run))


SPENT = Cost("epsilon", _spent)
REPLACED = Cost("epsilon, replacing one", _replaced)
