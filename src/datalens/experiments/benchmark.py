"""Methods side by side on one data set: utility, looks, time, memory, and epsilon under both relations."""

from __future__ import annotations

from collections.abc import Sequence

from datalens.experiments import paper, printed
from datalens.experiments.cells import DATA_SETS
from datalens.experiments.contenders import DATALENS, contender
from datalens.experiments.settings import ACCURACY_NOTE, BOTH_EPSILONS_NOTE, HEADLINE, SHORT
from datalens.experiments.table import RUN, Column, Row, Table
from datalens.experiments.trials import TRIALS_NOTE

FEATURED = ("is-10000", "fid-10000")
IMAGE_COLUMNS = (
    Column("IS", FEATURED[0], "mean", percent=False),
    Column("FID", FEATURED[1], "value", percent=False),
)


def benchmark_table(
    data_set: str, methods: Sequence[str], epsilons: Sequence[float], num_seeds: int
) -> Table:
    """The comparison of some methods on a data set, a row for each at each epsilon.

    Args:
        data_set: a name of :data:`~datalens.experiments.cells.DATA_SETS`.
        methods: names of :data:`~datalens.experiments.contenders.CONTENDERS`.
        epsilons: above 0; a method without privacy has one row for all of them.
        num_seeds: seeds 0 and up.

    Raises:
        ConfigError: an unknown method.
    """
    rows: dict[str, Row] = {}
    for epsilon in epsilons:
        for name in methods:
            cell = contender(name, data_set, epsilon)
            labels = (name, f"{cell.epsilon:g}")
            row = Row(
                labels,
                cell,
                tuple(range(num_seeds)),
                elsewhere(name, data_set, cell.epsilon),
                (HEADLINE, SHORT, *FEATURED),
            )
            rows.setdefault(cell.key, row)
    return Table(
        f"benchmark-{data_set}",
        f"Methods on {DATA_SETS[data_set].title}",
        ("method", "epsilon asked"),
        (
            Column("CNN, 60,000", HEADLINE),
            Column("CNN, 10,000", SHORT),
            *IMAGE_COLUMNS,
            Column("seconds", RUN, "training_seconds", percent=False),
            Column("MiB", RUN, "peak_memory_mib", percent=False),
        ),
        "printed elsewhere",
        tuple(rows.values()),
        (
            ACCURACY_NOTE,
            "IS (higher is better) and FID (lower is better): 10,000 images, features of a classifier trained on the "
            "real training images, so compare within a column; `datalens reproduce real` has the ceiling.",
            BOTH_EPSILONS_NOTE,
            "Seconds and MiB are of the training's process, which holds PyTorch and the records too, without the "
            "scores; MiB: its largest resident set. Seconds are as good as the machine was quiet.",
            TRIALS_NOTE,
            "Printed elsewhere: accuracy of the method's column in the DataLens paper, and of an independent run of "
            "the published code (SoK-PPDS 2024); other protocols, not comparable to the digit.",
        ),
        both_adjacencies=True,
    )


def elsewhere(name: str, data_set: str, epsilon: float) -> str:
    """What others print for the accuracy of a contender; empty where nothing is.

    >>> elsewhere("dp-merf", "mnist", 1.0)
    're-run 83.9'
    """
    in_paper = printed.TABLE_1.get(data_set, {}).get(epsilon, {}).get(name)
    if name == DATALENS and epsilon in paper.TABLE_1.get(data_set, {}):
        in_paper = 100 * paper.TABLE_1[data_set][epsilon]
    rerun = printed.RERUNS.get(data_set, {}).get(epsilon, {}).get(name)
    said = [f"paper {in_paper:.1f}"] if in_paper is not None else []
    return ", ".join([*said, *([f"re-run {rerun:.1f}"] if rerun is not None else [])])
