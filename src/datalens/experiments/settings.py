"""What every table of the paper shares: the settings it leaves open, declared once, and the columns of scores.

At epsilon 1 and below the noise is the paper's, 5000 votes, and as many steps are made as the budget allows; at
epsilon 10 it is 900 with top-k 350. Everything else is the compact recipe's.
"""

from __future__ import annotations

from dataclasses import replace

from datalens.experiments.cells import Cell
from datalens.experiments.table import Column

PAPER_NOISE = (("voting__noise_stddev", 5000.0), ("voting__num_steps", None))
PAPER_NOISE_AT_10 = (("voting__noise_stddev", 900.0), ("voting__num_steps", None), ("voting__top_k", 350))
SMALL_EPSILONS = (0.2, 0.4, 0.6, 0.8)
SEEDS = (0, 1, 2)
ONE_SEED = (0,)

HEADLINE, SHORT = "cnn-60000", "cnn-10000"


def base_cell(data_set: str, epsilon: float = 1.0) -> Cell:
    """The full method on a data set with the paper's noise."""
    return Cell(data_set, epsilon, changes=PAPER_NOISE_AT_10 if epsilon >= 10 else PAPER_NOISE)


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
