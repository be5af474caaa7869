"""The paper's figures, its theorem and its claims: each computed once, kept in the store, and drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from datalens.errors import DataError
from datalens.experiments import notes, runtime
from datalens.experiments.by_epsilon import draw_by_epsilon
from datalens.experiments.cells import DATA_SETS, Cell
from datalens.experiments.claims import clip_effect, q_growth
from datalens.experiments.compression_times import draw_table_6
from datalens.experiments.dpsgd_figures import draw_features, draw_figure_3
from datalens.experiments.figure2 import (
    DEPENDENT,
    FAVOURABLE,
    NO_VOTES,
    PAPER,
    Figure2Result,
    Figure2Settings,
    break_even_noise,
    figure2,
)
from datalens.experiments.gradients import recorded_tallies
from datalens.experiments.grids import read_grid
from datalens.experiments.losses import draw_losses
from datalens.experiments.real import draw_real
from datalens.experiments.settings import base_cell
from datalens.experiments.store import ResultsStore
from datalens.experiments.study import Study, studied
from datalens.experiments.table import NO_FILES
from datalens.experiments.theorem6 import theorem6
from datalens.experiments.workplace import Workplace
from datalens.reports.grid import Grid
from datalens.reports.plots import Curve, image_grid, line_plot
from datalens.training.plan import plan_releases

Draw = Callable[[ResultsStore, Workplace, Path], Grid]
VOTED = tuple(PAPER)
"""Data sets of Figure 2."""
SHOWN = ("mnist", "fashion-mnist", "celeba-gender", "celeba-hair", "places365")
"""Those of Figure 4, whose CelebA we show by both of its labels."""


def draw_figure_2(store: ResultsStore, place: Workplace, out: Path) -> Grid:
    """Both bounds at the paper's settings, and with the votes of whole runs of 4000 compact teachers."""
    results = {name: studied(Study("figure2", (("settings", name),)), store, _bounds(name)) for name in PAPER}
    absent = []
    for name in VOTED:
        cell, title = base_cell(name), f"{name}, compact teachers"
        study = Study("figure2", (("settings", "compact teachers"), ("cell", cell.key)))
        try:
            if store.score(study, "result") is None:
                place.data_of(name)
        except DataError:
            absent.append(title)
            continue
        results[title] = studied(study, store, _bounds_of_votes(cell, place))
    rows = []
    for name, result in results.items():
        curves = [Curve(label, tuple(x), tuple(y)) for label, x, y in result["curves"]]
        line_plot(
            curves,
            out / f"figure2-{name.replace(', ', '-').replace(' ', '-')}",
            x_label="generator steps",
            y_label="epsilon at delta 1e-5",
            title=name,
        )
        ends = {curve.label: f"{curve.y[-1]:.4g}" for curve in curves}
        independent = [ends[label] for label in ends if label.startswith("data-independent")]
        dependent = [ends.get(label, NO_VOTES) for label in result["dependent_labels"]]
        rows.append(
            (name, str(len(curves[0].x)), *independent, *dependent, f"{result['break_even_noise']:.0f}")
        )
    rows += [(title, "", "", "", "", NO_FILES, NO_FILES, "") for title in absent]
    return Grid(
        "Figure 2: privacy bounds at the last step",
        (
            "data set",
            "steps",
            "exact",
            "rdp",
            "rdp-classic",
            "data-dependent, from votes",
            "data-dependent, unanimous",
            "would gain below sigma",
        ),
        tuple(rows),
        (
            "Data-dependent: Theorems 4 and 5 as corrected, never above rdp; it depends on the records and is not "
            "published of anybody's own data. Unanimous: every teacher votes for the same k coordinates of an image, "
            "the most favourable case.",
            "With compact teachers a step is one joint release, by the cap on images a teacher votes on.",
        ),
    )


def _bounds(name: str) -> Callable[[], dict[str, Any]]:
    return lambda: _plain(figure2(PAPER[name]))


def _bounds_of_votes(cell: Cell, place: Workplace) -> Callable[[], dict[str, Any]]:
    def compute() -> dict[str, Any]:
        config = cell.config()
        train, _ = place.data_of(cell.data_set)
        dim = int(np.prod(train.image_shape))
        plan, voting = plan_releases(config, dim), config.voting
        settings = Figure2Settings(
            name=cell.data_set,
            num_teachers=voting.num_teachers,
            top_k=voting.top_k,
            noise_stddev=plan.noise_stddev,
            vote_threshold=plan.mechanism.vote_threshold,
            batch_size=voting.batch_size,
            dim=dim,
            images_per_teacher=voting.images_per_teacher,
        )
        return _plain(figure2(settings, recorded_tallies(config, train), images_are_public=True))

    return compute


def _plain(result: Figure2Result) -> dict[str, Any]:
    return {
        "settings": asdict(result.settings),
        "curves": [[curve.label, list(curve.x), list(curve.y)] for curve in result.curves],
        "dependent_labels": [DEPENDENT, FAVOURABLE],
        "beaten": list(result.beaten),
        "log_miss": [list(pair) for pair in result.log_miss],
        "note": result.note,
        "verdict": result.verdict,
        "break_even_noise": break_even_noise(result.settings),
    }


def draw_figure_4(store: ResultsStore, place: Workplace, out: Path) -> Grid:
    """Images by class: real, at epsilon 10 and at epsilon 1."""
    rows = []
    for name in SHOWN:
        title = DATA_SETS[name].title
        try:
            train, _ = place.data_of(name)
        except DataError:
            rows.append((title, NO_FILES, NO_FILES))
            continue
        classes = train.num_classes
        real = np.stack([train.images[train.labels == label][0] for label in range(classes)])
        pictures, labels, said = [real], ["real"], []
        for epsilon in (10.0, 1.0):
            cell = base_cell(name, epsilon)
            drawn = read_grid(place, cell, real.shape[1:])
            said.append("drawn" if drawn is not None else "no grid")
            if drawn is not None:
                pictures.append(drawn[: 2 * classes])
                labels += [f"epsilon {epsilon:g}", ""]
        if "drawn" in said:  # a picture of real images alone would take the place of a whole one
            rows_of = np.concatenate(pictures)
            image_grid(rows_of, out / f"figure4-{name}", columns=classes, row_labels=labels, title=title)
        rows.append((title, *said))
    return Grid(
        "Figure 4: generated images, figure4-*.png and .svg",
        ("data set", "epsilon 10", "epsilon 1"),
        tuple(rows),
        notes.FIGURE_4,
    )


def draw_theorem_6(store: ResultsStore, place: Workplace, out: Path) -> Grid:
    """Which k the convergence bound favours, as printed and as corrected."""

    def compute() -> dict[str, Any]:
        result = theorem6(place.data_of("mnist")[0])
        return {
            "rows": [asdict(row) for row in result.rows],
            "curves": [[curve.label, list(curve.x), list(curve.y)] for curve in result.curves],
            "curves_title": result.curves_title,
        }

    result = studied(Study("theorem6"), store, compute)
    line_plot(
        [Curve(label, tuple(x), tuple(y)) for label, x, y in result["curves"]],
        out / "theorem6",
        x_label="k",
        y_label="terms of the bound that depend on k",
        title=result["curves_title"],
        x_log=True,
        y_log=True,
    )
    names = ("source", "clip_bound", "reading", "quantiser", "favoured_k")
    rows = [
        (*(str(row[name]) for name in names), "yes" if row["says_something"] else "no")
        for row in result["rows"]
    ]
    return Grid(
        "Theorem 6: the k that the bound favours, of 784",
        ("gradients", "clip", "reading", "quantiser", "favoured k", "below M^2 anywhere"),
        tuple(rows),
        notes.THEOREM_6,
    )


def draw_clip(store: ResultsStore, place: Workplace, out: Path) -> Grid:
    """Effect of the clip c on the votes (section 5.3)."""

    def compute() -> dict[str, Any]:
        rows = [asdict(row) for row in clip_effect(place.data_of("mnist")[0])]
        return {"rows": [{**row, "clip_bound": str(row["clip_bound"])} for row in rows]}

    result = studied(Study("clip"), store, compute)
    rows = [
        (
            row["teachers"],
            row["clip_bound"],
            *(f"{row[name]:.3f}" for name in ("saturated", "certainty", "agreement", "agreement_by_chance")),
        )
        for row in result["rows"]
    ]
    return Grid(
        "Claim: the effect of the clip on the votes (MNIST)",
        ("teachers", "clip", "share saturated", "certainty of a kept vote", "agreement", "by chance"),
        tuple(rows),
        notes.CLIP,
    )


def draw_q_growth(store: ResultsStore, place: Workplace, out: Path) -> Grid:
    """Growth of q with the dimension (section 4.2)."""
    study = Study("q-growth")
    result = studied(study, store, lambda: {"rows": [asdict(row) for row in q_growth()]})
    rows = [
        (
            row["case"],
            f"{row['noise_share']:g}",
            str(row["dim"]),
            str(row["top_k"]),
            f"{row['log_hit']:.3g}",
            f"{row['q']:.4f}",
            f"{row['independent_epsilon']:.4g}",
            f"{row['dependent_epsilon']:.4g}",
        )
        for row in result["rows"]
    ]
    return Grid(
        "Claim: q grows with the dimension",
        ("votes", "sigma / N", "d", "k", "log(1 - q)", "q", "rdp, 20 releases", "data-dependent"),
        tuple(rows),
        notes.Q_GROWTH,
    )


def draw_runtime(store: ResultsStore, place: Workplace, out: Path) -> Grid:
    """The runtime paragraph, measured here: run it with nothing beside it."""
    result = studied(runtime.STUDY, store, lambda: runtime.measure_runtime(place.data_of("mnist")[0]))
    return runtime.draw_runtime(result)


FIGURES: dict[str, tuple[str, Draw]] = {
    "table6": ("Table 6: running time by compression", draw_table_6),
    "figure2": ("Figure 2: both privacy bounds over the steps", draw_figure_2),
    "figure3": ("Figure 3: DP-SGD, accuracy over epsilon", draw_figure_3),
    "figure4": ("Figure 4: generated images", draw_figure_4),
    "by-epsilon": ("What epsilon costs in accuracy", draw_by_epsilon),
    "theorem6": ("Theorem 6: the k that the bound favours", draw_theorem_6),
    "clip": ("Claim: the effect of the clip on the votes", draw_clip),
    "q-growth": ("Claim: q grows with the dimension", draw_q_growth),
    "real": ("Tables 1, 3 and 12: what real images score", draw_real),
    "losses": ("Beyond the paper: where accuracy is lost", draw_losses),
    "features": ("Tables 8 and 11: the features of CIFAR-10", draw_features),
    "runtime": ("Runtime paragraph: 2000 against 4000 teachers", draw_runtime),
}
