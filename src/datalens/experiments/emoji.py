"""Real colour pictures that anyone can have: 64x64x3 end to end, with the noise of epsilon 10 and without any.

Some 1,600 groups in training are too few to learn much of privately; the rows without noise show that the way to
64x64x3 learns, those of epsilon 10 what privacy costs at so few records.
"""

from __future__ import annotations

import math

from datalens.experiments.baseline_cells import AnyCell
from datalens.experiments.benchmark import FEATURED, IMAGE_COLUMNS
from datalens.experiments.cells import Cell
from datalens.experiments.contenders import DATALENS, contender
from datalens.experiments.settings import ACCURACY_NOTE, BOTH_EPSILONS_NOTE, ONE_SEED, SHORT, without_noise
from datalens.experiments.table import RUN, Column, Row, Table

NAME = "emoji"
EPSILON = 10.0
SCORES = (SHORT, *FEATURED)


def table_emoji() -> Table:
    """Utility, looks, seconds and memory on ``emoji``, without noise and at epsilon 10."""
    compact, theirs = Cell(NAME, EPSILON), Cell(NAME, EPSILON, paper_networks=True)
    rows = (
        _row("dc-gan", math.inf, "no guarantee", contender("dc-gan", NAME, math.inf)),
        _row("moments", math.inf, "without noise", contender("moments", NAME, math.inf)),
        _row("moments", EPSILON, "", contender("moments", NAME, EPSILON)),
        _row("dp-merf", EPSILON, "", contender("dp-merf", NAME, EPSILON)),
        _row(DATALENS, math.inf, "200 compact teachers, without noise", without_noise(compact, 200)),
        _row(DATALENS, math.inf, "40 of the paper's, without noise", without_noise(theirs, 40)),
        _row(DATALENS, EPSILON, "800 compact teachers", compact),
    )
    return Table(
        NAME,
        "Colour pictures of 64x64: emoji, nine categories",
        ("method", "epsilon asked", "what"),
        (
            Column("CNN, 10,000", SHORT),
            *IMAGE_COLUMNS,
            Column("seconds", RUN, "training_seconds", percent=False),
            Column("MiB", RUN, "peak_memory_mib", percent=False),
        ),
        "printed elsewhere",
        rows,
        (
            ACCURACY_NOTE,
            "`datalens reproduce real` has what the real training pictures score. Saying the largest category "
            "every time is right for 54.4% of the test pictures. No emoji is in both splits.",
            "IS and FID: 10,000 images, features of a classifier trained on the real training pictures.",
            BOTH_EPSILONS_NOTE,
            "Without noise: no threshold either, 149 steps. 800 teachers of 16 pictures, 138 steps at epsilon 10.",
            "Seconds and MiB are of the training's process, without the scores; MiB: its largest resident set.",
        ),
        both_adjacencies=True,
    )


def _row(method: str, epsilon: float, what: str, cell: AnyCell) -> Row:
    return Row((method, f"{epsilon:g}", what), cell, ONE_SEED, "", SCORES)
