"""What every table of the paper shares: the settings it leaves open, declared once, and the columns of scores.

At epsilon 1 and below the noise is the paper's, 5000 votes, and as many steps are made as the budget allows; at
epsilon 10 it is 900 with top-k 350. On colour images it is 9000 and 700, with the paper's numbers of teachers and
top-k. Everything else is the compact recipe's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from datalens.experiments.cells import Cell
from datalens.experiments.table import Column

Changes = tuple[tuple[str, Any], ...]

ALL_STEPS: Changes = (("voting__num_steps", None),)
GREY_NOISE, GREY_NOISE_AT_10, GREY_TOP_K_AT_10 = 5000.0, 900.0, 350
COLOUR_NOISE, COLOUR_NOISE_AT_10 = 9000.0, 700.0
COLOUR_TEACHERS = {"celeba-gender": 6000, "celeba-hair": 8000, "places365": 6000}
COLOUR_TOP_K_AT_10 = {"celeba-gender": 500, "celeba-hair": 500, "places365": 700}
SMALL_EPSILONS = (0.2, 0.4, 0.6, 0.8)
SEEDS = (0, 1, 2)
ONE_SEED = (0,)

HEADLINE, SHORT = "cnn-60000", "cnn-10000"


def base_cell(data_set: str, epsilon: float = 1.0) -> Cell:
    """The full method on a data set with the paper's noise."""
    changes: Changes = (("voting__noise_stddev", paper_noise(data_set, epsilon)), *ALL_STEPS)
    if epsilon >= 10:
        changes += (("voting__top_k", COLOUR_TOP_K_AT_10.get(data_set, GREY_TOP_K_AT_10)),)
    return Cell(data_set, epsilon, changes=(*changes, *teachers_of(data_set)))


def paper_noise(data_set: str, epsilon: float = 1.0) -> float:
    """The paper's noise in votes.

    >>> paper_noise("mnist"), paper_noise("celeba-hair", 10.0)
    (5000.0, 700.0)
    """
    if data_set in COLOUR_TEACHERS:
        return COLOUR_NOISE_AT_10 if epsilon >= 10 else COLOUR_NOISE
    return GREY_NOISE_AT_10 if epsilon >= 10 else GREY_NOISE


def teachers_of(data_set: str) -> Changes:
    """The paper's number of teachers on colour images; elsewhere it is the recipe's."""
    return (("voting__num_teachers", COLOUR_TEACHERS[data_set]),) if data_set in COLOUR_TEACHERS else ()


def without_noise(cell: Cell, num_teachers: int) -> Cell:
    """The cell with neither noise nor threshold: what the votes of so many teachers teach in 149 steps."""
    changes = (
        ("privacy__noise", "none"),
        ("voting__noise_stddev", None),
        ("voting__num_teachers", num_teachers),
        ("voting__vote_threshold", 0.0),
        ("voting__num_steps", 149),
    )
    return replace(cell, changes=changes)


def with_voting(cell: Cell, setting: str, value: float) -> Cell:
    """The cell with one setting of the vote changed; the last word on a setting counts."""
    changes = {**dict(cell.changes), f"voting__{setting}": value}
    return replace(cell, changes=tuple(changes.items()))


ACCURACY = (
    Column("CNN, 60,000", HEADLINE),
    Column("its best test epoch", HEADLINE, "best_epoch_accuracy"),
    Column("CNN, 10,000", SHORT),
    Column("logistic, 10,000", "logistic-10000"),
    Column("MLP, 10,000", "mlp-10000"),
)
ACCURACY_NOTE = (
    "Ours: accuracy in percent on the real test set of a classifier trained on that many synthetic images, at the "
    "last of a fixed number of epochs (CNN 4, others 10). Seeds count from 0, insecure: mean ± standard deviation of "
    "several, and no spread of one. A best test epoch is what the paper's code prints; the test set chose it."
)
EPSILON_NOTE = (
    "epsilon: spent, exact accountant, delta 1e-5, adding or removing one record; "
    "replacing one costs the same."
)
BOTH_EPSILONS_NOTE = (
    "epsilon: spent, exact accountant (RDP where records are sampled), delta 1e-5, adding or removing one record; "
    "beside it for replacing one, as in the certificate. inf: nothing is promised."
)
PROTOCOL_NOTES = (ACCURACY_NOTE, EPSILON_NOTE)


def percent(share: float) -> str:
    """A share as the tables print it.

    >>> percent(0.7123)
    '71.2'
    """
    return f"{100 * share:.1f}"
