"""What real images reach: the ceiling of what generated ones can be asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from datalens.errors import DataError
from datalens.experiments import paper
from datalens.experiments.cells import DATA_SETS
from datalens.experiments.settings import HEADLINE
from datalens.experiments.store import ResultsStore
from datalens.experiments.study import Study, studied
from datalens.experiments.table import NO_FILES
from datalens.experiments.workplace import Workplace
from datalens.reports.grid import Grid

SHOWN = (*paper.TABLE_12_REAL, "emoji")


def draw_real(store: ResultsStore, place: Workplace, out: Path) -> Grid:
    """What real images score: the ceiling of Tables 1, 3 and 12 under our classifiers."""

    def compute(name: str) -> dict[str, Any]:
        scorer = place.data_of(name)[1]
        return {kind: scorer.score_real(kind) for kind in ("is", "fid")}

    rows = []
    for name in SHOWN:
        title = DATA_SETS[name].title
        score, distance = paper.TABLE_12_REAL.get(name, ("", ""))
        printed = f"{score} / {distance}" if score else ""
        try:
            looks = studied(Study("real", (("data_set", name),)), store, lambda name=name: compute(name))
            accuracy = real_accuracy(name, store, place)
        except DataError:
            rows.append((title, NO_FILES, NO_FILES, NO_FILES, printed))
            continue
        ours = f"{looks['is']['mean']:.2f}", f"{looks['fid']['value']:.2f}"
        rows.append((title, f"{100 * accuracy:.1f}", *ours, printed))
    return Grid(
        "What real images score",
        ("data set", "CNN", "IS", "FID", "paper, IS / FID of real images"),
        tuple(rows),
        (
            "CNN: accuracy in percent on the test images after the last of 4 epochs on the real training images, "
            "60,000 of them at most; seed 0.",
            "IS and FID of the test images, by the classifiers of Tables 3 and 12; FID against the training images.",
        ),
    )


def real_accuracy(name: str, store: ResultsStore, place: Workplace) -> float:
    """Accuracy, in [0, 1], of the CNN that learns from the real training images, 60,000 at most.

    Raises:
        NotRun: the store lacks it and is only to be read.
        DataError: the data set's files are not here.
    """

    def compute() -> dict[str, Any]:
        train, scorer = place.data_of(name)
        count = min(len(train.labels), 60_000)
        return scorer.score(HEADLINE, train.images[:count], np.asarray(train.labels[:count]), seed=0)

    study = Study("real-accuracy", (("data_set", name), ("score", HEADLINE)))
    return studied(study, store, compute)["last_accuracy"]
