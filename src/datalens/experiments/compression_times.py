"""Table 6: seconds of a generator step with each compression, in turns in one process, and of Table 5's trainings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from datalens.data.images import LabelledImages
from datalens.errors import DataError
from datalens.experiments import paper
from datalens.experiments.cells import DATA_SETS, Cell
from datalens.experiments.compressions import COMPRESSIONS, TOPAGG, Compression, cells_of_equal_steps
from datalens.experiments.settings import COLOUR_TEACHERS
from datalens.experiments.store import ResultsStore
from datalens.experiments.study import Study, studied
from datalens.experiments.table import NO_FILES, NOT_RUN
from datalens.experiments.turns import seconds_in_turns
from datalens.experiments.workplace import Workplace
from datalens.reports.grid import Grid

STEPS = 5
COLOUR_EPSILON = 10.0
HEADER = (
    "data set",
    "compression",
    "s a step",
    "its ratio",
    "s a training",
    "its ratio",
    "paper, s",
    "its ratio",
)
NOTES = (
    f"s a step: median (least to largest) of {STEPS} generator steps, the compressions in turns in one process, "
    "after one step each that is thrown away; seed 0; CelebA at epsilon 10, whose noise D2P-Fed can pay for. Ratios "
    "are to TopAgg, of steps the median of those in a turn.",
    "s a training: the cells of table5 with as many steps as TopAgg's, each at its own time: ratios are no better "
    "than the machine was quiet, and left out where TopAgg's was trained in another environment (in the store).",
    "The paper: seconds an epoch, which is a generator step, of its own networks on a Tesla T4. FetchSGD in its "
    "sound form is ours; the paper prints nothing for it.",
)


def cells_to_time(name: str) -> dict[Compression, Cell]:
    """What is timed on a data set: TopAgg's steps, and on colour images at :data:`COLOUR_EPSILON`.

    There D2P-Fed cannot pay for as many steps at epsilon 1; a step takes as long at any noise.
    """
    cells = cells_of_equal_steps(name)
    if name not in COLOUR_TEACHERS:
        return cells
    return {one: replace(cell, epsilon=COLOUR_EPSILON) for one, cell in cells.items()}


def measure_steps(
    data: LabelledImages, cells: Mapping[Compression, Cell], steps: int = STEPS
) -> dict[str, Any]:
    """Seconds of each step by compression, rounded to a tenth of a millisecond.

    Args:
        data: the records.
        cells: what is timed.
        steps: of each, after one that is thrown away.
    """
    seconds = seconds_in_turns({str(one.mechanism): cell for one, cell in cells.items()}, data, steps)
    return {"seconds": {name: [round(took, 4) for took in times] for name, times in seconds.items()}}


def draw_table_6(store: ResultsStore, place: Workplace, out: Path) -> Grid:
    """The table: run it with nothing beside it."""
    rows = []
    for name in paper.TABLE_6:
        try:
            steps = _steps(name, store, place)
            absent = False
        except DataError:
            steps, absent = {}, True
        for one in COMPRESSIONS:
            printed = one.paper_value(paper.TABLE_6, name)
            rows.append(
                (
                    DATA_SETS[name].title,
                    one.title,
                    *_shown_steps(steps, one),
                    *_shown_training(name, one, store, absent=absent),
                    *_shown_printed(name, printed),
                )
            )
    return Grid("Table 6: running time by compression, epsilon 1", HEADER, tuple(rows), NOTES)


def _steps(name: str, store: ResultsStore, place: Workplace) -> dict[str, list[float]]:
    """Seconds of steps by mechanism, from the store or measured now.

    Raises:
        DataError: they were not measured, and the data set's files are not here.
    """
    study = Study("table6", (("data_set", name), ("steps", STEPS)))
    if store.score(study, "result") is None:
        place.data_of(name)
    found = studied(study, store, lambda: measure_steps(place.data_of(name)[0], cells_to_time(name)))
    return found["seconds"]


def _shown_steps(steps: dict[str, list[float]], one: Compression) -> tuple[str, str]:
    if not steps:
        return NO_FILES, ""
    times, reference = steps[str(one.mechanism)], steps[str(TOPAGG.mechanism)]
    ratio = median(took / other for took, other in zip(times, reference, strict=True))
    return f"{median(times):.2f} ({min(times):.2f} to {max(times):.2f})", f"{ratio:.2f}"


def _shown_training(name: str, one: Compression, store: ResultsStore, *, absent: bool) -> tuple[str, str]:
    """Seconds of the whole training, and over those of TopAgg's."""
    cells = cells_of_equal_steps(name)
    if store.refusal(cells[one]) is not None:
        return "refused", ""
    ours, others = (store.run(cells[which]) or {} for which in (one, TOPAGG))
    took, reference = (run.get("training_seconds") for run in (ours, others))
    if took is None:
        return NO_FILES if absent else NOT_RUN, ""
    alike = reference is not None and ours.get("environment") == others.get("environment")
    return f"{took:.0f}", f"{took / reference:.2f}" if alike else ""


def _shown_printed(name: str, printed: float | None) -> tuple[str, str]:
    if printed is None:
        return "", ""
    return f"{printed:.0f}", f"{printed / paper.TABLE_6[name]['TopAgg']:.2f}"
