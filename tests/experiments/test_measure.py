"""One cell from training to a score, at the smallest size; and the command that does it for tables."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_cell import TINY

from datalens import data
from datalens.cli.main import main
from datalens.errors import ConfigError, NotPrivateError
from datalens.experiments.baseline_cells import BaselineCell
from datalens.experiments.cells import Cell
from datalens.experiments.grids import GRID_ROWS
from datalens.experiments.measure import measure
from datalens.experiments.scorer import Scorer, images_of
from datalens.experiments.store import ResultsStore
from datalens.experiments.sweep import Work, run
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


def test_inception_score_and_fid_compare_with_the_real_images(tmp_path: Path) -> None:
    train, test = data.load("shapes"), data.load("shapes", split="test")
    few = replace(train, images=train.images[:300], labels=train.labels[:300])
    scorer = Scorer(few, test, tmp_path)
    real = scorer.score("fid-300", few.images, few.labels, seed=0)
    noise = np.random.default_rng(0).integers(0, 256, (300, 1, 16, 16), dtype=np.uint8)
    far = scorer.score("fid-300", noise, few.labels, seed=0)
    assert real["value"] < 0.01 < far["value"]
    assert scorer.score("is-300", few.images, few.labels, seed=0)["mean"] >= 1
    assert real["extractor"] == far["extractor"]
    with pytest.raises(ConfigError, match="'kid-10' is unknown"):
        scorer.score("kid-10", noise, few.labels, seed=0)


@pytest.mark.parametrize("name", ["cnn", "cnn-", "cnn-0", "-5", "cnn-x"])
def test_a_score_names_its_number_of_images(name: str) -> None:
    with pytest.raises(ConfigError, match="write a kind and a number of images"):
        images_of(name)


def test_experiments_are_for_published_data(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    people = replace(data.load("shapes"), public=False)
    monkeypatch.setattr(data, "load", lambda *_, **__: people)
    with pytest.raises(NotPrivateError, match="published data"):
        place.data_of("shapes")


def test_absent_files_are_named_once_and_other_cells_go_on(tmp_path: Path) -> None:
    place = Workplace(tmp_path / "scratch", str(tmp_path / "empty"))
    store = ResultsStore(tmp_path / "results.jsonl")
    mnist = [Work(Cell("mnist", 1.0, seed), ("cnn-10",)) for seed in (0, 1)]
    absent = run([*mnist, Work(TINY, ("logistic-40",))], store, place)
    assert len(absent) == 1 and absent[0].startswith("mnist: no files")
    assert store.missing(TINY, ["logistic-40"]) == []


def test_a_plan_that_is_refused_is_a_result_and_other_cells_go_on(tmp_path: Path, place: Workplace) -> None:
    dear = replace(TINY, changes=(*TINY.changes, ("voting__noise_stddev", 10.0)))
    store = ResultsStore(tmp_path / "results.jsonl")
    told: list[str] = []
    work = [Work(dear, ("logistic-40",)), Work(TINY, ("logistic-40",))]
    assert run(work, store, place, tell=told.append) == []
    reason = ResultsStore(store.path).refusal(dear)
    assert reason is not None and "epsilon=10 is too small for one step" in reason
    assert f"{dear.title}: refused: {reason}" in told
    assert store.refusal(TINY) is None and store.missing(TINY, ["logistic-40"]) == []


def test_a_package_that_is_not_installed_is_no_refusal_and_other_cells_go_on(
    tmp_path: Path, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opacus.grad_sample", None)
    cell = BaselineCell("shapes", "dp-gan", 10.0)
    store = ResultsStore(tmp_path / "results.jsonl")
    work = [Work(item, ("logistic-40",)) for item in (cell, cell.with_seed(1), TINY)]
    (line,) = run(work, store, place)
    assert line.startswith("dp-gan: passed over (") and "pip install 'datalens-dp[dpsgd]'" in line
    assert store.run(cell) is None and store.refusal(cell) is None, (
        "it is tried again once the package is there"
    )
    assert store.missing(TINY, ["logistic-40"]) == []


def test_a_mistake_in_a_table_is_no_refusal(tmp_path: Path, place: Workplace) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    misspelt = replace(TINY, changes=(("voting__topk", 3),))
    with pytest.raises(ConfigError, match="topk"):
        run([Work(misspelt, ("logistic-40",))], store, place)


def test_a_sweep_stops_between_cells(tmp_path: Path, place: Workplace) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    assert run([Work(TINY, ("logistic-40",))], store, place, stop=lambda: True) == []
    assert store.run(TINY) is None


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


def test_the_list_says_what_is_left(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["reproduce", "table2", "--list", "--data-set", "mnist", "--store", str(tmp_path / "r.jsonl")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.count("to run: MNIST") == 8 + 4 * 6 + 1 and "Fashion" not in said
