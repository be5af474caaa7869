"""Run the cells that tables still lack: each cell once, the first seed of every row before the second.

A cell whose plan the product refuses is a result too: the reason goes into the store, and it is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from datalens.baselines.registry import BaselineConfig
from datalens.data.images import LabelledImages
from datalens.errors import BudgetError, ConfigError, DataError, MissingExtraError
from datalens.experiments.baseline_cells import AnyCell
from datalens.experiments.dpsgd_cells import DpsgdCell, TableCell
from datalens.experiments.dpsgd_records import records_of
from datalens.experiments.dpsgd_training import measure_dpsgd, require_opacus
from datalens.experiments.measure import measure
from datalens.experiments.store import REFUSED, ResultsStore
from datalens.experiments.table import Row
from datalens.experiments.workplace import Workplace
from datalens.methods.method import PublicSize
from datalens.training.plan import check_plan
from datalens.training.release import environment


@dataclass(frozen=True)
class Work:
    """A cell with all scores that some table asks of it."""

    cell: TableCell
    scores: tuple[str, ...]


def work_of(rows: Iterable[Row], store: ResultsStore, *, num_seeds: int | None = None) -> list[Work]:
    """What is missing, in the order in which it is best done.

    Args:
        rows: of all the tables that are wanted; a cell that several share is listed once.
        store: what is there already.
        num_seeds: only the first so many seeds of a row.
    """
    wanted: dict[str, tuple[TableCell, dict[str, None]]] = {}
    pairs = [
        (place, row.cell.with_seed(seed), row.scores)
        for row in rows
        if row.cell.recipe is not None
        for place, seed in enumerate(row.seeds[:num_seeds])
    ]
    for _, cell, scores in sorted(pairs, key=lambda pair: pair[0]):
        wanted.setdefault(cell.key, (cell, {}))[1].update(dict.fromkeys(scores))
    missing = [
        Work(cell, tuple(store.missing(cell, scores)))
        for cell, scores in wanted.values()
        if store.refusal(cell) is None
    ]
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
        Lines on data sets whose files are not here and packages that are not installed; cells that need them are
        passed over.
    """
    absent: dict[str, str] = {}
    for item in work:
        cell = item.cell
        if stop():
            break
        if cell.data_set in absent:
            continue
        try:
            reason = _reason(cell, store, place)
        except DataError as error:
            absent[cell.data_set] = f"{cell.data_set}: no files ({error})"
            continue
        except MissingExtraError as error:
            absent[str(error)] = f"{cell.recipe}: passed over ({error})"
            continue
        if reason is not None:
            tell(f"{cell.title}: refused: {reason}")
            store.add(cell, {}, {REFUSED: reason, "environment": environment("cpu")})
            continue
        said = lambda what, cell=cell: tell(f"{cell.title}: {what}")  # noqa: E731
        if isinstance(cell, DpsgdCell):
            measure_dpsgd(cell, records_of(cell, place), store, said)
        else:
            measure(cell, item.scores, store, place, said)
    return list(absent.values())


def _reason(cell: TableCell, store: ResultsStore, place: Workplace) -> str | None:
    """Why the product refuses a cell that has not run; None where it does not.

    Raises:
        DataError: its files are not here.
        MissingExtraError: a package is not installed.
    """
    if isinstance(cell, DpsgdCell):
        require_opacus()
        records_of(cell, place, place.tell)
        return cell.refusal()
    train, _ = place.data_of(cell.data_set, held_out=cell.held_out)
    return refusal_of(cell, train) if store.run(cell) is None else None


def refusal_of(cell: AnyCell, data: LabelledImages) -> str | None:
    """Why the product refuses to train a cell on these records, in its own words; None where it does not.

    Raises:
        ConfigError: a setting that does not exist or is out of range: a mistake in a table and no answer.
        MissingExtraError: a package that is not installed, which says nothing of the plan.
    """
    config = cell.config()
    try:
        if isinstance(config, BaselineConfig):
            config.settings.plan(
                config.privacy, PublicSize(data.num_listed, data.image_shape, data.num_classes)
            )
        else:
            check_plan(config, data.num_listed, data.image_shape)
    except MissingExtraError:
        raise
    except (BudgetError, ConfigError) as error:
        return str(error)
    return None
