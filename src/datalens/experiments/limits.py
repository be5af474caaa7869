"""What limits each baseline: noise, shards and compression taken away one after the other, on MNIST.

Without noise nothing is promised. With one shard a single teacher sees all records, which no plan with noise could
afford. What is then still missing is the method's own: its networks, its steps, its loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from datalens.experiments.baseline_cells import BaselineCell
from datalens.experiments.settings import ONE_SEED, PROTOCOL_NOTES, SHORT
from datalens.experiments.table import Column, Row, Table
from datalens.experiments.trials import Settings, chosen

LEARNT_ON = "mnist"
NO_NOISE = "without noise"

REMOVED: dict[str, tuple[tuple[str, Settings], ...]] = {
    "dp-merf": (),
    "pate-gan": (
        ("and one teacher", (("num_teachers", 1),)),
        ("and with 1000 steps", (("num_steps", 1000),)),
    ),
    "g-pate": (
        ("and no threshold", (("vote_threshold", 0.0),)),
        ("and one teacher", (("num_teachers", 1),)),
        ("and with 1200 steps", (("num_steps", 1200),)),
        ("and no projection, 100 bins", (("num_projected", 784), ("num_bins", 100))),
    ),
    "dp-gan": (("and with 2000 steps", (("num_steps", 2000),)),),
    "gs-wgan": (
        ("and one critic, as many generator steps", (("num_critics", 1), ("num_steps", 500))),
        ("and with 3000 steps of 32 images", (("num_steps", 3000), ("batch_size", 32))),
    ),
}
"""By method, what goes after the noise; each removal keeps those before it. More steps cost nothing by then.

DP-GAN keeps its clip: gradients are summed in whole numbers of a thousandth of it, so a clip so long that it cuts
nothing rounds most of them away, and the critic learns nothing."""


def table_limits() -> Table:
    """Every baseline at epsilon 1 and 10, then with its hindrances removed."""
    rows = [
        Row((name, what), cell, ONE_SEED, "", (SHORT,)) for name in REMOVED for what, cell in _removals(name)
    ]
    return Table(
        "limits",
        "What limits the baselines: MNIST, hindrances removed one after the other",
        ("method", "what is removed"),
        (
            Column("CNN, 10,000", SHORT),
            Column("its best test epoch", SHORT, "best_epoch_accuracy"),
            Column("seconds", "run", "training_seconds", percent=False),
        ),
        "paper",
        tuple(rows),
        (PROTOCOL_NOTES[0], "Each row keeps what the rows above it removed. inf: nothing is promised."),
    )


def _removals(name: str) -> Iterator[tuple[str, BaselineCell]]:
    """(what is removed, the cell), from nothing on."""
    settings = dict(chosen(name))
    for epsilon, what in ((1.0, "nothing, epsilon 1"), (10.0, "nothing, epsilon 10"), (math.inf, NO_NOISE)):
        yield what, BaselineCell(LEARNT_ON, name, epsilon, settings=chosen(name))
    for what, changes in REMOVED[name]:
        settings |= dict(changes)
        yield what, BaselineCell(LEARNT_ON, name, math.inf, settings=tuple(settings.items()))
