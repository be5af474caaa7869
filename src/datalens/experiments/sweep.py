"""Run the cells that tables still lack: each cell once, the first seed of every row before the second."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from datalens.errors import DataError
from datalens.experiments.baseline_cells import AnyCell
from datalens.experiments.measure import Workplace, measure
from datalens.experiments.store import ResultsStore
from datalens.experiments.table import Row


@dataclass(frozen=True)
class Work:
    """A cell with all scores that some table asks of it."""

    cell: AnyCell
    scores: tuple[str, ...]


def work_of(rows: Iterable[Row], store: ResultsStore, *, num_seeds: int | None = None) -> list[Work]:
    """What is missing, in the order in which it is best done.

    Args:
        rows: of all the tables that are wanted; a cell that several share is listed once.
        store: what is there already.
        num_seeds: only the first so many seeds of a row.
    """
    wanted: dict[str, tuple[AnyCell, dict[str, None]]] = {}
    pairs = [
        (place, row.cell.with_seed(seed), row.scores)
        for row in rows
        if row.cell.recipe is not None
        for place, seed in enumerate(row.seeds[:num_seeds])
    ]
    for _, cell, scores in sorted(pairs, key=lambda pair: pair[0]):
        wanted.setdefault(cell.key, (cell, {}))[1].update(dict.fromkeys(scores))
    missing = [Work(cell, tuple(store.missing(cell, scores))) for cell, scores in wanted.values()]
    return [work for work in missing if work.scores]


def run(
    work: Iterable[Work],
    store: ResultsStore,
    place: Workplace,
    *,
    tell: Callable[[str], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Do the work; what is finished is in the store, whatever happens later.

    Returns:
        Lines on data sets whose files are not here; their cells are passed over.
    """
    absent: dict[str, str] = {}
    for item in work:
        cell = item.cell
        if stop():
            break
        if cell.data_set in absent:
            continue
        try:
            place.data_of(cell.data_set)
        except DataError as error:
            absent[cell.data_set] = f"{cell.data_set}: no files ({error})"
            continue
        measure(cell, item.scores, store, place, lambda what, cell=cell: tell(f"{cell.title}: {what}"))
    return list(absent.values())
