"""Cells on colour images, from the makers' files to a score: shrunken ones, on the miniatures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_cell import MERF
from tiny_colour import write_celeba, write_emoji, write_places

from datalens.baselines.registry import METHODS
from datalens.experiments import figures, paper
from datalens.experiments.baseline_cells import BaselineCell
from datalens.experiments.cells import DATA_SETS, Cell
from datalens.experiments.contenders import contender
from datalens.experiments.grids import read_grid
from datalens.experiments.measure import measure
from datalens.experiments.store import ResultsStore
from datalens.experiments.study import Study
from datalens.experiments.sweep import Work, refusal_of, run
from datalens.experiments.tables import TABLES
from datalens.experiments.workplace import Workplace
from datalens.student import update

COLOUR = ("celeba-gender", "celeba-hair", "places365")
SHRUNKEN = {
    "voting__num_teachers": 4,
    "voting__num_steps": 1,
    "voting__batch_size": 4,
    "voting__noise_stddev": None,
    "student__hidden_units": 8,
    "student__channels": 4,
    "student__smoothing": 1,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    write_emoji(write_places(write_celeba(root, 48)))
    return root


@pytest.fixture(autouse=True)
def _few_images_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of public images of 64x64 would take most of the time."""
    monkeypatch.setattr(update, "SETTLING_IMAGES", 12)


@pytest.fixture
def place(root: Path, tmp_path: Path) -> Workplace:
    return Workplace(tmp_path / "scratch", str(root), tmp_path / "grids")


def shrunken(cell: Cell, *, quiet: bool = False) -> Cell:
    """The cell with few teachers and one step, at an epsilon that pays for it, or without noise."""
    noise = {"privacy__noise": "none"} if quiet else {}
    return replace(cell, epsilon=1000.0, changes=tuple({**dict(cell.changes), **SHRUNKEN, **noise}.items()))


def cells_of(table: str, data_set: str) -> Iterator[Cell]:
    """The different cells of DataLens in a table."""
    found = {row.cell.key: row.cell for row in TABLES[table]().rows if row.cell.data_set == data_set}
    yield from (cell for cell in found.values() if isinstance(cell, Cell))


@pytest.mark.parametrize(
    ("table", "data_set", "count"),
    [
        *(("table1", name, 2) for name in COLOUR),
        ("table4", "celeba-hair", 11),
        ("table5", "celeba-gender", 7),
        ("table7", "celeba-hair", 7),
        ("table12", "celeba-gender", 2),
    ],
)
def test_every_kind_of_cell_is_trained_and_scored(
    place: Workplace, tmp_path: Path, table: str, data_set: str, count: int
) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    cells = list(cells_of(table, data_set))
    assert len(cells) == count
    quiet = table in ("table5", "table7")  # votes of four teachers drown in the noise that some of these need
    small = {cell.key: cell for cell in (shrunken(cell, quiet=quiet) for cell in cells)}
    for cell in small.values():
        measure(cell, ["logistic-12"], store, place)
        score, result = store.score(cell, "logistic-12"), store.run(cell)
        assert score is not None and result is not None
        assert result["steps"] == 1 and 0 <= score["last_accuracy"] <= 1


def test_the_papers_networks_train_on_every_set(place: Workplace, tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    few = {**SHRUNKEN, "teachers__first_steps": 1, "teachers__steps": 1, "voting__num_teachers": 2}
    for name in (*COLOUR, "emoji"):
        cell = Cell(name, 1000.0, changes=tuple(few.items()), paper_networks=True)
        measure(cell, ["logistic-12"], store, place)
        result = store.run(cell)
        assert result is not None and result["config"]["teachers"]["kind"] == "paper"
        assert result["config"]["student"]["latent_dim"] == 100
        assert read_grid(place, cell, (3, 64, 64)) is not None


@pytest.mark.slow
def test_looks_are_scored_in_colour(place: Workplace, tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    cell = shrunken(next(cells_of("table12", "celeba-gender")))
    with pytest.warns(UserWarning, match="FID from 12 images"):
        measure(cell, ["is-12", "fid-12", "cnn-12"], store, place)
    score, distance = store.score(cell, "is-12"), store.score(cell, "fid-12")
    assert score is not None and 1 <= score["mean"] <= 2
    assert distance is not None and np.isfinite(distance["value"])


def test_the_other_methods_take_colour_images_or_say_why_not(place: Workplace, tmp_path: Path) -> None:
    class Faces:
        num_records = num_listed = 162770
        image_shape, num_classes = (3, 64, 64), 2

    for name in METHODS:
        for epsilon in (1.0, 10.0):
            cell = contender(name, "celeba-gender", epsilon)
            reason = refusal_of(cell, Faces())  # pyright: ignore[reportArgumentType]
            assert reason is None or "\n" not in reason, name
    store = ResultsStore(tmp_path / "results.jsonl")
    small = BaselineCell("celeba-hair", "dp-merf", 10.0, settings=MERF)
    measure(small, ["logistic-12"], store, place)
    assert store.score(small, "logistic-12") is not None


def test_figure_2_has_the_votes_of_a_run_on_faces(
    place: Workplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = figures.base_cell
    monkeypatch.setattr(figures, "base_cell", lambda name: shrunken(real(name)))
    store = ResultsStore(tmp_path / "results.jsonl")
    grid = figures.draw_figure_2(store, place, tmp_path)
    votes = grid.header.index("data-dependent, from votes")
    shown = {row[0]: row[votes] for row in grid.rows}
    assert float(shown["celeba-gender, compact teachers"]) > 0
    assert float(shown["celeba-hair, compact teachers"]) > 0
    assert shown["mnist, compact teachers"] == "no files"
    assert store.score(Study("figure2", (("settings", "celeba-hair"),)), "result") is not None


def test_what_is_absent_is_told_once_with_what_to_get(tmp_path: Path) -> None:
    place = Workplace(tmp_path / "scratch", str(tmp_path / "empty"))
    store = ResultsStore(tmp_path / "results.jsonl")
    work = [Work(cell, ("logistic-12",)) for name in COLOUR for cell in cells_of("table1", name)]
    told = run(work, store, place)
    assert [line.partition(": no files (")[0] for line in told] == list(COLOUR)
    assert all("; get " in line and "and put them into" in line for line in told)
    assert place.absent([*COLOUR, "shapes"]) == frozenset(COLOUR)


def test_a_miniature_is_not_absent_and_a_lost_picture_makes_it_so(root: Path, tmp_path: Path) -> None:
    assert Workplace(tmp_path, str(root)).absent([*COLOUR, "emoji", "shapes"]) == frozenset()
    other = write_celeba(tmp_path / "other", 8)
    (other / "celeba" / "img_align_celeba" / "000001.jpg").unlink()
    assert Workplace(tmp_path, str(other)).absent(COLOUR) == frozenset(COLOUR)


def test_data_sets_are_named_as_the_catalogue_names_them() -> None:
    from datalens.data import list_sources

    assert set(DATA_SETS) == {source.name for source in list_sources()}
    for table in (
        paper.TABLE_1,
        paper.TABLE_4["top_k"],
        paper.TABLE_5,
        paper.TABLE_6,
        paper.TABLE_7,
        paper.TABLE_12,
    ):
        assert all(DATA_SETS[name].quick and DATA_SETS[name].paper for name in table)
