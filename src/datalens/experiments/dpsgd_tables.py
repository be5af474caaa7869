"""Tables 8 to 11: DP-SGD with TopAgg by what is kept and how it is selected, and with compression or noise alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from datalens.experiments.cells import DATA_SETS
from datalens.experiments.dpsgd_cells import ACCURACY, DpsgdCell
from datalens.experiments.dpsgd_costs import PAPERS, TIGHTEST
from datalens.experiments.dpsgd_paper import (
    DIMENSIONS,
    KEEPS,
    TABLE_8,
    TABLE_9,
    TABLE_10,
    TABLE_11,
    Score,
    settings_for,
)
from datalens.experiments.extractors import EFFICIENTNET, INPUT_SIZE, RESNET18, Extractor
from datalens.experiments.settings import SEEDS
from datalens.experiments.table import RUN, Column, Cost, Row, Table

CONTROL_KEEP = 0.8
"""What Table 10 keeps."""
COLUMNS = (
    Column("accuracy", ACCURACY, digits=2),
    Column("steps", RUN, "steps", percent=False, digits=0),
    Column("seconds", RUN, "training_seconds", percent=False, digits=0),
)
COSTS = (
    Cost("epsilon, paper's accountant", lambda run: _epsilon(run, PAPERS)),
    Cost("epsilon, tightest", lambda run: _epsilon(run, TIGHTEST)),
    Cost(
        "epsilon, replacing one",
        lambda run: math.inf if run["privacy"] is None else run["privacy"]["replace_one_epsilon"],
    ),
)
ACCOUNTANTS_NOTE = (
    "As many steps as cost at most the epsilon asked under the paper's accountant: Rényi divergences of the sampled "
    "Gaussian with the conversion of 2017 (rdp-classic). Beside it the tightest, by the distribution of the privacy "
    "loss (pld). Both: delta 1e-5, adding or removing one record; replacing one by rdp with the tight conversion. "
    "inf: nothing is promised."
)
SEEDS_NOTE = (
    "Ours: accuracy in percent on the test images after the last step; seeds count from 0, insecure, of initial "
    "weights, lots and noise: mean ± standard deviation of several, and no spread of one. The paper: mean ± standard "
    "deviation of ten runs."
)
SETTINGS_NOTE = (
    "Settings are Table 11's. At other epsilons C, batch and rate are those of the nearest in ratio, and sigma lies "
    "between both neighbours'. The paper searched settings for every cell and prints them for three epsilons a data "
    "set."
)
KEEP_NOTE = "keep 1 and GM-DP are one training here, bit for bit; the paper ran both and found them alike."


def table_8(extractor: Extractor = EFFICIENTNET) -> Table:
    """Accuracy by epsilon and what is kept, and without noise."""
    rows = [
        row_of(name, (f"{epsilon:g}", kept(keep)), cell_of(name, epsilon, keep, extractor), score)
        for name, by_epsilon in TABLE_8.items()
        for epsilon, by_keep in by_epsilon.items()
        for keep, score in by_keep.items()
    ]
    return Table(
        "table8",
        "Table 8: DP-SGD with TopAgg, accuracy by epsilon and what is kept",
        ("data set", "epsilon asked", "keep"),
        COLUMNS,
        "paper",
        tuple(rows),
        (
            SEEDS_NOTE,
            ACCOUNTANTS_NOTE,
            SETTINGS_NOTE,
            KEEP_NOTE,
            "Epsilon inf: clipped, selected and without noise, with the settings and as many steps as at the largest "
            "epsilon of Table 11; what the paper did there it does not say.",
            features_note(extractor),
        ),
        costs=COSTS,
    )


def table_9() -> Table:
    """Share of the squared norm against share of the coordinates."""
    rows = []
    for epsilon, by_dimension in TABLE_9.items():
        by_norm = TABLE_8["mnist"][epsilon]
        named = [("norm", keep, by_norm[keep]) for keep in KEEPS[:-1]]
        named += [("dimension", keep, score) for keep, score in zip(DIMENSIONS, by_dimension, strict=True)]
        named += [("all", 1.0, by_norm[1.0])]
        for select_by, keep, score in named:
            if select_by == "dimension":  # its noise is GM-DP's, and so are its settings
                whole = settings_for("mnist", epsilon, 1.0)
                cell = DpsgdCell("mnist", epsilon, whole, keep, select_by="dimension")
            else:
                cell = cell_of("mnist", epsilon, keep)
            rows.append(row_of("mnist", (f"{epsilon:g}", select_by, kept(keep)), cell, score))
    return Table(
        "table9",
        "Table 9: selection by norm against selection by dimension",
        ("data set", "epsilon asked", "share of", "keep"),
        COLUMNS,
        "paper",
        tuple(rows),
        (
            SEEDS_NOTE,
            ACCOUNTANTS_NOTE,
            SETTINGS_NOTE,
            "By dimension: a gradient may lie in the coordinates that stay, so its noise is GM-DP's, and so are its "
            "settings, which the paper does not print.",
        ),
        costs=COSTS,
    )


def table_10() -> Table:
    """Compression and noise apart: the control cells."""
    noises = {
        "topk-gm-dp": "full",
        "topagg": "reduced",
        "topk-sgd": "none",
        "gm-dp": "full",
        "clipped-sgd": "none",
    }
    rows = []
    for epsilon, printed in TABLE_10.items():
        shared = settings_for("mnist", epsilon, CONTROL_KEEP)
        for method, noise in noises.items():
            cell = DpsgdCell("mnist", epsilon, shared, CONTROL_KEEP, method)
            compression = "none" if cell.keep == 1 else "NormTopK"
            labels = (f"{epsilon:g}", method, compression, noise)
            rows.append(row_of("mnist", labels, cell, printed.get(method)))
    return Table(
        "table10",
        f"Table 10: compression and noise apart, keep {CONTROL_KEEP:g}",
        ("data set", "epsilon asked", "method", "compression", "noise"),
        COLUMNS,
        "paper",
        tuple(rows),
        (
            SEEDS_NOTE,
            ACCOUNTANTS_NOTE,
            "All methods of one epsilon have the settings and the number of steps of TopAgg with keep 0.8, those "
            "without noise too. "
            "So GM-DP is not Table 8's, which has settings of its own (the paper: 85.05 and 84.55).",
            "TopK-GM-DP is charged at sigma, which is an upper bound. Our copy of the paper lacks the row without "
            "compression at epsilon 1.",
        ),
        costs=COSTS,
    )


def table_11(extractor: Extractor = EFFICIENTNET) -> Table:
    """The cells whose settings the paper prints, with what they allow and reach."""
    rows = []
    for name, by_epsilon in TABLE_11.items():
        for epsilon, by_keep in by_epsilon.items():
            for keep, used in by_keep.items():
                labels = (
                    f"{epsilon:g}",
                    kept(keep),
                    f"{used.max_grad_norm:g}",
                    f"{used.noise_multiplier:g}",
                    str(used.batch_size),
                    f"{used.learning_rate:g}",
                )
                cell = cell_of(name, epsilon, keep, extractor)
                rows.append(row_of(name, labels, cell, TABLE_8[name][epsilon][keep]))
    return Table(
        "table11",
        "Table 11: the paper's settings, and what they reach",
        ("data set", "epsilon asked", "keep", "C", "sigma", "batch", "rate"),
        COLUMNS,
        "paper, Table 8",
        tuple(rows),
        (
            SEEDS_NOTE,
            ACCOUNTANTS_NOTE,
            "The paper prints no number of epochs or steps: here as many as fit. Of its three parts for MNIST our "
            "copy has the first two in the order of their headings; the third is from another copy.",
            KEEP_NOTE,
            features_note(extractor),
        ),
        costs=COSTS,
    )


def table_tightest(extractor: Extractor = EFFICIENTNET) -> Table:
    """Table 11 again, with as many steps as the tightest accountant allows."""
    table = table_11(extractor)
    rows = [
        replace(row, cell=replace(row.cell, accountant=TIGHTEST))
        for row in table.rows
        if isinstance(row.cell, DpsgdCell)
    ]
    return replace(
        table,
        name="dpsgd-tightest",
        title="Table 11's settings with as many steps as the tightest accountant allows",
        rows=tuple(rows),
        notes=(
            SEEDS_NOTE,
            "As many steps as cost at most the epsilon asked by the distribution of the privacy loss (pld); the "
            "paper's accountant would call it more. Both: delta 1e-5, adding or removing one record; replacing one "
            "by rdp with the tight conversion.",
            "C, sigma, batch and rate are the paper's, which were searched for fewer steps.",
            KEEP_NOTE,
            features_note(extractor),
        ),
    )


def cell_of(name: str, epsilon: float, keep: float, extractor: Extractor = EFFICIENTNET) -> DpsgdCell:
    """The cell of Table 8; without noise at an infinite epsilon."""
    return DpsgdCell(
        name,
        min(epsilon, max(TABLE_11[name])),
        settings_for(name, epsilon, keep),
        keep,
        "topk-sgd" if math.isinf(epsilon) else "topagg",
        features=extractor.name if name == "cifar10" else None,
    )


DPSGD_TABLES: dict[str, Callable[[], Table]] = {
    "table8": table_8,
    "table9": table_9,
    "table10": table_10,
    "table11": table_11,
    "dpsgd-tightest": table_tightest,
}


def by_resnet18() -> dict[str, Callable[[], Table]]:
    """The tables that have rows of CIFAR-10, with ResNet-18 in place of EfficientNet-Lite0."""
    tables = {"table8": table_8, "table11": table_11, "dpsgd-tightest": table_tightest}
    return {name: partial(table, RESNET18) for name, table in tables.items()}


def row_of(name: str, labels: tuple[str, ...], cell: DpsgdCell, score: Score | None) -> Row:
    """A row of three seeds, with what the paper prints for it."""
    said = "" if score is None else shown(score)
    return Row((DATA_SETS[name].title, *labels), cell, SEEDS, said, (ACCURACY,))


def shown(score: Score) -> str:
    """As the paper prints it.

    >>> shown((84.55, 0.98))
    '84.55 ± 0.98'
    """
    return f"{score[0]:.2f} ± {score[1]:.2f}"


def kept(keep: float) -> str:
    """The share in words.

    >>> kept(0.8), kept(1)
    ('0.8', '1, GM-DP')
    """
    return "1, GM-DP" if keep == 1 else f"{keep:g}"


def _epsilon(run: dict, accountant: str) -> float:
    return math.inf if run["privacy"] is None else run["privacy"]["spent_epsilon"][accountant]


def features_note(extractor: Extractor) -> str:
    """What CIFAR-10's classifier sees, and what the paper's saw."""
    first = "" if extractor.used == extractor.num_features else f"the first {extractor.used} of "
    return (
        f"CIFAR-10: a linear head on {first}the {extractor.num_features} features of a frozen {extractor.title} of "
        f"ImageNet, on images scaled to {INPUT_SIZE}x{INPUT_SIZE}; the paper: ResNet-18. MNIST: the network of "
        "Opacus's example."
    )
