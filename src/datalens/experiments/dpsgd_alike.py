"""Whether a selection helps or its settings do: the whole gradient in the settings that the paper has for a share.

Table 11 gives every share settings of its own, so two of its rows differ in more than what is kept. Here they differ
in that alone.
"""

from __future__ import annotations

from dataclasses import replace

from datalens.experiments.dpsgd_paper import TABLE_8
from datalens.experiments.dpsgd_tables import (
    ACCOUNTANTS_NOTE,
    COLUMNS,
    COSTS,
    SEEDS_NOTE,
    cell_of,
    features_note,
    kept,
    row_of,
)
from datalens.experiments.extractors import EFFICIENTNET
from datalens.experiments.table import Table

PLACES: dict[str, tuple[float, ...]] = {"cifar10": (0.025, 0.05, 0.075, 0.1), "mnist": (0.05, 0.2)}
SHARE = 0.7


def table_alike() -> Table:
    """A share of the gradient, all of it in the same settings, and all of it in its own."""
    rows = []
    for name, epsilons in PLACES.items():
        for epsilon in epsilons:
            share, whole = cell_of(name, epsilon, SHARE), cell_of(name, epsilon, 1.0)
            printed = TABLE_8[name][epsilon]
            own, others = f"keep {SHARE:g}", "keep 1"
            rows += [
                row_of(name, (f"{epsilon:g}", kept(SHARE), own), share, printed[SHARE]),
                row_of(name, (f"{epsilon:g}", kept(1), own), replace(share, keep=1.0), None),
                row_of(name, (f"{epsilon:g}", kept(1), others), whole, printed[1.0]),
            ]
    return Table(
        "dpsgd-alike",
        "What the selection does, and what its settings do",
        ("data set", "epsilon asked", "keep", "settings of"),
        COLUMNS,
        "paper, Table 8",
        tuple(rows),
        (
            SEEDS_NOTE,
            ACCOUNTANTS_NOTE,
            "Settings are those that Table 11 prints for the share named, or lie between its neighbours'. Between "
            "the first two rows of an epsilon only the selection differs, and the noise: a share needs less.",
            features_note(EFFICIENTNET),
        ),
        costs=COSTS,
    )
