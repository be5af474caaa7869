"""One cell from training to a score, at the smallest size; and the command that does it for tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_cell import TINY

from datalens.cli.main import main
from datalens.experiments.grids import GRID_ROWS
from datalens.experiments.measure import measure
from datalens.experiments.store import ResultsStore
from datalens.experiments.variants import Variant
from datalens.experiments.workplace import Workplace


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path / "scratch", None, tmp_path / "grids")


@pytest.mark.parametrize("variant", Variant)
def test_a_cell_is_trained_scored_and_explained(tmp_path: Path, place: Workplace, variant: Variant) -> None:
    cell = replace(TINY, variant=variant)
    store = ResultsStore(tmp_path / "results.jsonl")
    told: list[str] = []
    measure(cell, ["logistic-40"], store, place, told.append)
    score, result = store.score(cell, "logistic-40"), store.run(cell)
    assert score is not None and result is not None
    assert score["num_train"] == 40 and score["num_test"] == 1000 and 0 <= score["last_accuracy"] <= 1
    # the sampler's slack differs a little at another noise, so the last step may be one too many for the plan
    assert result["steps"] == 2 or (variant is Variant.FIXED_POINT and result["steps"] == 1)
    assert result["privacy"]["spent_epsilon"]["exact"] <= result["privacy"]["authorised_epsilon"] <= 10.0
    assert result["config"]["privacy"]["insecure_seed"] == 0
    assert {"torch", "python", "cores", "threads"} <= set(result["environment"])
    assert told == ["training", "logistic-40"]
    picture = np.asarray(Image.open(tmp_path / "grids" / f"{cell.key}.png"))
    assert picture.shape == (GRID_ROWS * 16, 4 * 16)


def test_a_generator_at_hand_is_not_trained_again_and_draws_the_same(
    tmp_path: Path, place: Workplace
) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    measure(TINY, ["logistic-40"], store, place)
    told: list[str] = []
    measure(TINY, ["logistic-40", "logistic-30"], store, place, told.append)
    assert told == ["logistic-30"]
    other = ResultsStore(tmp_path / "other.jsonl")
    measure(TINY, ["logistic-40"], other, place)
    one, again = store.score(TINY, "logistic-40"), other.score(TINY, "logistic-40")
    assert one is not None and again is not None
    assert one["last_accuracy"] == again["last_accuracy"]


def test_the_command_draws_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "r" / "results.jsonl"
    store.parent.mkdir()
    store.touch()
    assert main(["reproduce", "table7", "--draw", "--store", str(store)]) == 0
    said = capsys.readouterr().out
    assert "without top-k" in said and "no files" in said and "10 cells left to run" not in said
    drawn = {path.name for path in store.parent.iterdir()} - {store.name}
    assert drawn == {"table7.txt", "table7.md", "table7.csv"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "name what to reproduce: table1"),
        (["table99"], "'table99' is no table or figure here; known: table1"),
        (["table1", "--data-set", "svhn"], "--data-set 'svhn' is unknown; known: mnist"),
        (["table1", "--seeds", "0"], "0 is too small"),
        (["q-growth", "--data-set", "mnist,svhn"], "--data-set 'svhn' is unknown; known: mnist"),
        (
            ["table1", "--draw"],
            "results.jsonl: no such file, so nothing to draw; give another, or leave out --draw",
        ),
    ],
)
def test_a_mistake_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    assert main(["reproduce", *words, "--store", str(tmp_path / "results.jsonl")]) == 2
    error = capsys.readouterr().err.strip()
    assert expected in error and len(error.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("absent", "state"), [(frozenset(), "to run"), (frozenset({"mnist"}), "no files")])
def test_the_list_says_what_is_left_and_what_has_no_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent, state: str
) -> None:
    monkeypatch.setattr(Workplace, "absent", lambda *_: absent)
    words = ["reproduce", "table2", "--list", "--data-set", "mnist", "--store", str(tmp_path / "r.jsonl")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.count(f"{state}: MNIST") == 8 + 4 * 8 + 1 and "Fashion" not in said
    assert ("for mnist: run `datalens data fetch mnist`" in said) == bool(absent)
