"""Figure 3, accuracy of DP-SGD over epsilon, and what the features of CIFAR-10 are."""

from __future__ import annotations

import math
import time
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from datalens import data
from datalens.errors import DataError, MissingExtraError
from datalens.experiments.cells import DATA_SETS
from datalens.experiments.dpsgd_cells import ACCURACY
from datalens.experiments.dpsgd_paper import DPDL, TABLE_8
from datalens.experiments.dpsgd_records import frozen_net, records_of
from datalens.experiments.dpsgd_tables import COLUMNS, cell_of, shown
from datalens.experiments.extractors import EFFICIENTNET, INPUT_SIZE, RESNET18, Extractor
from datalens.experiments.settings import SEEDS
from datalens.experiments.store import ResultsStore
from datalens.experiments.study import Study, studied
from datalens.experiments.table import summary
from datalens.experiments.workplace import Workplace
from datalens.reports.grid import Grid
from datalens.reports.plots import Curve, line_plot

KEEPS_DRAWN = {0.7: "keep 0.7", 0.8: "keep 0.8", 1.0: "keep 1, GM-DP"}
PANELS = {
    "a-mnist": ("mnist", 0.0, 1.0),
    "b-cifar10-small": ("cifar10", 0.0, 0.4),
    "c-cifar10-large": ("cifar10", 0.4, 8.0),
}
"""Name of the file: data set, least and largest epsilon."""
_TIMED = 200


def draw_figure_3(store: ResultsStore, place: Workplace, out: Path) -> Grid:
    """Ours, the paper's and DPDL's, as plots and as numbers; cells that have not run are left out of the plots."""
    extractor = _extractor(place)
    rows = []
    for panel, (name, least, most) in PANELS.items():
        epsilons = [e for e in TABLE_8[name] if least <= e <= most]
        curves = []
        for keep, label in KEEPS_DRAWN.items():
            ours = {}
            for epsilon in epsilons:
                row = cell_of(name, epsilon, keep, extractor)
                cells = [row.with_seed(seed) for seed in SEEDS]
                printed = TABLE_8[name][epsilon][keep]
                rows.append(
                    (
                        panel[0],
                        DATA_SETS[name].title,
                        f"{epsilon:g}",
                        label,
                        summary(cells, COLUMNS[0], store),
                        shown(printed),
                    )
                )
                scores = [score for cell in cells if (score := store.score(cell, ACCURACY)) is not None]
                if scores:
                    ours[epsilon] = 100 * mean(score["last_accuracy"] for score in scores)
            curves += _curve(f"ours, {label}", ours)
            curves += _curve(f"paper, {label}", {e: TABLE_8[name][e][keep][0] for e in epsilons})
        published = {e: accuracy for e, accuracy in DPDL[name].items() if least <= e <= most}
        curves += _curve("DPDL, as published", published)
        rows += [
            (panel[0], DATA_SETS[name].title, f"{e:g}", "DPDL", "", f"{accuracy:.0f}")
            for e, accuracy in published.items()
        ]
        line_plot(
            curves,
            out / f"figure3-{panel}",
            x_label="epsilon at delta 1e-5, by each paper's own accountant",
            y_label="accuracy, percent",
            title=DATA_SETS[name].title,
            x_log=True,
        )
    return Grid(
        "Figure 3: DP-SGD, accuracy over epsilon",
        ("panel", "data set", "epsilon", "method", "ours", "printed"),
        tuple(rows),
        (
            "The cells of table8: run that first. Mean ± standard deviation over seeds; the plots show means.",
            "Epsilon by the paper's accountant, as in the figure; the tightest is in table8.",
            "DPDL: Abadi et al. 2016, sections 5.2 and 5.3, in percent, delta 1e-5, by the moments accountant; its "
            "networks are its own. The paper's TopAgg with k 1.0 is GM-DP, and so one curve here.",
        ),
    )


def draw_features(store: ResultsStore, place: Workplace, out: Path) -> Grid:
    """Compute the features of CIFAR-10 where the workplace lacks them, and say what they are and cost."""
    extractor = _extractor(place)
    name = extractor.name
    study = Study("features", (("extractor", name), ("input_size", INPUT_SIZE)))

    def compute() -> dict[str, Any]:
        net = frozen_net(name, place)
        images = data.load("cifar10", split="test", root=place.data_root).to_unit()[:_TIMED]
        started = time.monotonic()
        for part in images.split(50):
            net.features(part)
        seconds = time.monotonic() - started
        return {
            "weights": net.digest,
            "num_features": net.extractor.num_features,
            "used": net.extractor.used,
            "images_per_second": round(len(images) / seconds, 1),
            "threads": torch.get_num_threads(),
        }

    header = ("extractor", "weights, SHA-256", "input", "features", "used", "images a second", "threads")
    try:
        if not store.read_only:
            records_of(cell_of("cifar10", math.inf, 1.0, extractor), place, place.tell)
        found = studied(study, store, compute)
    except (DataError, MissingExtraError) as error:
        row = (name, "no files", *("" for _ in header[2:]))
        return Grid("Features of CIFAR-10", header, (row,), (str(error),))
    shape = f"{INPUT_SIZE}x{INPUT_SIZE}"
    row = (name, found["weights"][:16], shape, *(str(found[key]) for key in ("num_features", "used")))
    return Grid(
        "Features of CIFAR-10",
        header,
        ((*row, f"{found['images_per_second']:.1f}", str(found["threads"])),),
        (
            "A frozen network of ImageNet without its last layer: public weights, which no record here has touched. "
            "Kept in frozen-features/ of the scratch folder, for 60,000 images.",
        ),
    )


def _extractor(place: Workplace) -> Extractor:
    return EFFICIENTNET if place.resnet18 is None else RESNET18


def _curve(label: str, points: dict[float, float]) -> list[Curve]:
    """One curve, or none where there is no point."""
    return [Curve(label, tuple(points), tuple(points.values()))] if points else []
