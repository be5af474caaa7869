"""Where the share that stays is counted: over a whole gradient, as Algorithm 4 has it, or within each parameter.

Over a whole gradient a dense layer, whose gradient is spread over many small coordinates, may never be heard.
"""

from __future__ import annotations

from dataclasses import replace

from datalens.experiments.dpsgd_paper import TABLE_8, TABLE_11
from datalens.experiments.dpsgd_tables import (
    ACCOUNTANTS_NOTE,
    COLUMNS,
    COSTS,
    KEEP_NOTE,
    SEEDS_NOTE,
    cell_of,
    features_note,
    kept,
    row_of,
)
from datalens.experiments.extractors import EFFICIENTNET
from datalens.experiments.table import Table


def table_tensors() -> Table:
    """Table 11's settings, with the share taken of the whole gradient or of each parameter's part by itself."""
    rows = []
    for name, by_epsilon in TABLE_11.items():
        for epsilon, by_keep in by_epsilon.items():
            for keep in by_keep:
                cell, said = cell_of(name, epsilon, keep), TABLE_8[name][epsilon][keep]
                shares = ("all",) if keep == 1 else ("norm", "tensor-norm")
                rows += [
                    row_of(
                        name,
                        (f"{epsilon:g}", kept(keep), share),
                        cell if keep == 1 else replace(cell, select_by=share),
                        said if share == "norm" or keep == 1 else None,
                    )
                    for share in shares
                ]
    return Table(
        "dpsgd-tensors",
        "Selection by norm within the whole gradient, and within each parameter",
        ("data set", "epsilon asked", "keep", "share of"),
        COLUMNS,
        "paper, Table 8",
        tuple(rows),
        (
            SEEDS_NOTE,
            ACCOUNTANTS_NOTE,
            "Settings are Table 11's, which were searched for selection within the whole gradient. Both selections "
            "have the same bound, noise and epsilon.",
            KEEP_NOTE,
            features_note(EFFICIENTNET),
        ),
        costs=COSTS,
    )
