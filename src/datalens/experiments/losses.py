"""Where accuracy is lost between real images and those of ``moments``: the model, the noise, too few images.

One seed, the same classifier at every place, so that neighbouring numbers differ by one thing: real records, images
from the law that noise never touched, images from the noisy law, fewer of these.
"""

from __future__ import annotations

import math
from pathlib import Path

from datalens.errors import DataError
from datalens.experiments.beyond import EPSILONS
from datalens.experiments.cells import DATA_SETS
from datalens.experiments.contenders import contender
from datalens.experiments.measure import measure
from datalens.experiments.real import real_accuracy
from datalens.experiments.settings import HEADLINE, SHORT
from datalens.experiments.store import ResultsStore
from datalens.experiments.study import NotRun
from datalens.experiments.table import NO_FILES, NOT_RUN
from datalens.experiments.workplace import Workplace
from datalens.reports.grid import Grid

METHOD = "moments"
LEARNT_ON = ("mnist", "fashion-mnist")
NOTES = (
    "Accuracy in percent on the real test images of a CNN after its last epoch; seed 0. A loss is the number before "
    "it less the number itself, in points; seeds of one setting differ by up to half a point.",
    "Real images: the same CNN and as many of the training images. Model: images from the normal laws of the records "
    "themselves, without noise (epsilon infinite). Noise: the same laws as they are released. Sampling: 10,000 "
    "generated images in place of 60,000, at the same epsilon.",
)


def draw_losses(store: ResultsStore, place: Workplace, out: Path) -> Grid:
    """What model, noise and sampling cost, by data set and epsilon."""
    rows = [row for name in LEARNT_ON for row in _rows(name, store, place)]
    return Grid(
        "Where moments loses accuracy",
        ("data set", "epsilon", "real images", "model loses", "noise loses", "CNN, 60,000", "sampling loses"),
        tuple(rows),
        NOTES,
    )


def _rows(name: str, store: ResultsStore, place: Workplace) -> list[tuple[str, ...]]:
    title = DATA_SETS[name].title
    try:
        real = real_accuracy(name, store, place)
        clean = _accuracies(name, math.inf, store, place)[0]
        rows = []
        for epsilon in EPSILONS:
            long, short = _accuracies(name, epsilon, store, place)
            numbers = (real, real - clean, clean - long, long, long - short)
            rows.append((title, f"{epsilon:g}", *(f"{100 * number:.1f}" for number in numbers)))
    except (DataError, NotRun) as error:
        missing = NO_FILES if isinstance(error, DataError) else NOT_RUN
        return [(title, f"{epsilon:g}", *[missing] * 5) for epsilon in EPSILONS]
    return rows


def _accuracies(name: str, epsilon: float, store: ResultsStore, place: Workplace) -> tuple[float, float]:
    """From 60,000 and from 10,000 images of the method.

    Raises:
        NotRun: the store lacks them and is only to be read.
    """
    cell, scores = contender(METHOD, name, epsilon), (HEADLINE, SHORT)
    if not store.read_only:
        measure(cell, scores, store, place)
    found = [store.score(cell, score) for score in scores]
    if found[0] is None or found[1] is None:
        raise NotRun(f"{cell.key}: not run")
    return found[0]["last_accuracy"], found[1]["last_accuracy"]
