"""Figures and claims are computed once, drawn from the store, and say where files or results are missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_cell import TINY

from datalens.cli.main import main
from datalens.errors import DataError
from datalens.experiments import figures
from datalens.experiments.grids import GRID_ROWS, read_grid
from datalens.experiments.measure import measure
from datalens.experiments.store import ResultsStore
from datalens.experiments.study import NotRun, Study
from datalens.experiments.workplace import Workplace


class Drawn(Workplace):
    """A workplace whose every data set is the drawn shapes."""

    def data_of(self, data_set: str, *, held_out: bool = False):
        return super().data_of("shapes")


class Empty(Workplace):
    """A workplace without files."""

    def data_of(self, data_set: str, *, held_out: bool = False):
        raise DataError("not here")


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    return ResultsStore(tmp_path / "results.jsonl")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "base_cell", lambda name, epsilon=10.0: TINY)


def test_figure_2_has_the_papers_settings_and_the_votes_of_a_run(
    tmp_path: Path, store: ResultsStore, tiny: None
) -> None:
    grid = figures.draw_figure_2(store, Drawn(tmp_path / "scratch"), tmp_path)
    by_name = {row[0]: row for row in grid.rows}
    assert list(by_name) == [*figures.PAPER, *(f"{name}, compact teachers" for name in figures.PAPER)]
    votes, unanimous = (grid.header.index(f"data-dependent, {what}") for what in ("from votes", "unanimous"))
    assert by_name["celeba-hair"][votes] == "no votes given"
    rdp = float(by_name["celeba-hair"][grid.header.index("rdp")])
    assert float(by_name["celeba-hair"][unanimous]) == pytest.approx(rdp, rel=1e-3), (
        "never better, on one grid of orders"
    )
    for name in figures.PAPER:
        assert float(by_name[f"{name}, compact teachers"][votes]) > 0
    assert by_name["mnist, compact teachers"][1] == "2"
    assert (tmp_path / "figure2-mnist.png").exists() and (tmp_path / "figure2-mnist.svg").exists()
    again = figures.draw_figure_2(ResultsStore(store.path, read_only=True), Empty(tmp_path), tmp_path)
    assert again == grid, "drawn from the store alone"


def test_figure_2_says_no_files_where_votes_cannot_be_had(tmp_path: Path, store: ResultsStore) -> None:
    grid = figures.draw_figure_2(store, Empty(tmp_path), tmp_path)
    votes = grid.header.index("data-dependent, from votes")
    shown = {row[0]: row[votes] for row in grid.rows}
    for name in figures.PAPER:
        assert shown[name] == "no votes given" and shown[f"{name}, compact teachers"] == "no files"


def test_figure_4_shows_what_is_there(tmp_path: Path, store: ResultsStore, tiny: None) -> None:
    place = Drawn(tmp_path / "scratch", None, tmp_path / "grids")
    assert {row[1] for row in figures.draw_figure_4(store, place, tmp_path).rows} == {"no grid"}
    assert not list(tmp_path.glob("figure4-*")), "real images alone are no Figure 4"
    measure(TINY, ["logistic-40"], store, place)
    grid = figures.draw_figure_4(store, place, tmp_path)
    assert grid.rows[0] == ("MNIST", "drawn", "drawn") and grid.rows[-1] == ("Places365", "drawn", "drawn")
    assert (tmp_path / "figure4-mnist.svg").exists() and (tmp_path / "figure4-celeba-hair.png").exists()
    none = figures.draw_figure_4(store, Empty(tmp_path), tmp_path)
    assert {cell for row in none.rows for cell in row[1:]} == {"no files"}


def test_a_grid_is_read_as_it_was_drawn(tmp_path: Path, store: ResultsStore) -> None:
    place = Workplace(tmp_path / "scratch", None, tmp_path / "grids")
    measure(TINY, ["logistic-40"], store, place)
    images = read_grid(place, TINY, (1, 16, 16))
    assert images is not None
    assert images.shape == (GRID_ROWS * 4, 1, 16, 16) and images.dtype == np.uint8
    picture = images.reshape(GRID_ROWS, 4, 16, 16).transpose(0, 2, 1, 3).reshape(GRID_ROWS * 16, 64)
    from PIL import Image

    assert np.array_equal(picture, np.asarray(Image.open(tmp_path / "grids" / f"{TINY.key}.png")))


def test_claims_are_drawn_and_not_computed_twice(
    tmp_path: Path, store: ResultsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Drawn(tmp_path / "scratch")
    names = ("theorem6", "q-growth", "clip")
    first = {name: figures.FIGURES[name][1](store, place, tmp_path) for name in names}
    for function in ("theorem6", "q_growth", "clip_effect"):
        monkeypatch.setattr(figures, function, None)
    for name in names:
        assert figures.FIGURES[name][1](ResultsStore(store.path), place, tmp_path) == first[name]
        assert first[name].rows
    assert (tmp_path / "theorem6.png").exists()


def test_nothing_is_computed_where_only_drawing_was_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "results.jsonl"
    with pytest.raises(NotRun):
        figures.draw_q_growth(ResultsStore(store, read_only=True), Workplace(tmp_path), tmp_path)
    store.touch()
    assert main(["reproduce", "q-growth", "--draw", "--store", str(store)]) == 0
    assert "q-growth: not run" in capsys.readouterr().err
    assert store.read_bytes() == b""


def test_every_figure_says_how_it_was_made(tmp_path: Path, store: ResultsStore) -> None:
    place = Drawn(tmp_path / "scratch")
    for name in ("theorem6", "q-growth", "clip", "figure4"):
        said = " ".join(figures.FIGURES[name][1](store, place, tmp_path).notes)
        assert "seed" in said.lower() and len(said) > 100, name


def test_the_list_names_every_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "--list", "--store", str(tmp_path / "results.jsonl")]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in figures.FIGURES)
    assert Study("q-growth").key != Study("clip").key


@pytest.mark.parametrize("asked", ["nope", "mnist,nope", "mnist, shapes"])
def test_an_unknown_data_set_is_refused_for_figures_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: str
) -> None:
    store = tmp_path / "results.jsonl"
    assert (
        main(["reproduce", next(iter(figures.FIGURES)), "--draw", "--store", str(store), "--data-set", asked])
        == 2
    )
    assert "is unknown; known: mnist" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
