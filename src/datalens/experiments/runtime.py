"""The runtime paragraph: seconds of a generator step with 2000 and with 4000 teachers, in turns in one process."""

from __future__ import annotations

from statistics import median
from typing import Any

from datalens.data.images import LabelledImages
from datalens.experiments import paper
from datalens.experiments.cells import Cell
from datalens.experiments.settings import base_cell, with_voting
from datalens.experiments.study import Study
from datalens.experiments.turns import seconds_in_turns
from datalens.reports.grid import Grid

TEACHERS = (2000, 4000)
STEPS = 5
STUDY = Study("runtime", (("teachers", TEACHERS), ("steps", STEPS)))


def measure_runtime(data: LabelledImages, cell: Cell | None = None, steps: int = STEPS) -> dict[str, Any]:
    """Median seconds of a step by number of teachers; the sessions take turns, so both meet the same machine.

    Args:
        data: the records.
        cell: settings; MNIST at epsilon 1 with compact teachers unless given.
        steps: timed for each, after one that warms up.
    """
    cell = cell or base_cell("mnist")
    cells = {str(count): with_voting(cell, "num_teachers", count) for count in TEACHERS}
    seconds = seconds_in_turns(cells, data, steps)
    return {"seconds": {count: round(median(times), 4) for count, times in seconds.items()}}


def draw_runtime(result: dict[str, Any]) -> Grid:
    """The paragraph as a table."""
    ours = {count: result["seconds"][str(count)] for count in TEACHERS}
    rows = [
        (
            str(count),
            f"{ours[count]:.2f}",
            f"{paper.RUNTIME[count]:.0f}",
            f"{paper.RUNTIME[count] / ours[count]:.0f}",
        )
        for count in TEACHERS
    ]
    few, many = TEACHERS
    ratios = (f"{ours[many] / ours[few]:.2f}", f"{paper.RUNTIME[many] / paper.RUNTIME[few]:.2f}", "")
    return Grid(
        "Runtime: seconds a generator step, MNIST, epsilon 1",
        ("teachers", "ours, compact teachers", "paper, RTX 2080 Ti", "paper / ours"),
        (*rows, ("4000 against 2000", *ratios)),
        (
            f"Medians of {STEPS} steps each, in turns, after one thrown away; machine and threads: in the store.",
            "Other networks and another machine than the paper's: the ratio of the two rows is what compares.",
        ),
    )
