"""``datalens evaluate``: a score, kept private, and never under release/."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from datalens.data import load

FAST = ("--classifier", "logistic", "--num-samples", "64", "--epochs", "2")


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def released(run: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_mtime_ns) for path in (run / "release").rglob("*"))


def test_headline_and_best_epoch(call, run, tmp_path) -> None:
    before = released(run)
    answer = call("evaluate", run, "--data", "shapes", *FAST, "--json", tmp_path / "score.json")
    assert answer.status == 0, answer.err
    report = json.loads((tmp_path / "score.json").read_text())
    score = report["utility"]["logistic"]
    assert score["last_accuracy"] == score["accuracy_by_epoch"][-1]
    assert (score["num_train"], score["num_test"], score["epochs"]) == (64, 1000, 2)
    assert f"accuracy {score['last_accuracy']:.2%} (last of 2 epochs" in answer.out
    assert "as the paper's code prints" in answer.out
    kept = Path(report["kept_in"])
    assert kept.parent.parent == run / "private"
    assert json.loads(kept.read_text())["utility"] == report["utility"]
    assert released(run) == before


def test_the_same_seed_gives_the_same_score(call, run) -> None:
    def score() -> float:
        report = json.loads(call("evaluate", run, "--data", "shapes", *FAST, "--json", "-").out)
        return report["utility"]["logistic"]["last_accuracy"]

    assert score() == score()


def test_private_is_made_anew_for_its_owner_alone(call, run) -> None:
    shutil.rmtree(run / "private")
    assert call("evaluate", run, "--data", "shapes", *FAST).status == 0
    assert (run / "private").stat().st_mode & 0o777 == 0o700
    assert (run / "private" / "scores").stat().st_mode & 0o777 == 0o700


def test_a_score_is_not_written_under_release(call, run) -> None:
    before = released(run)
    target = run / "private" / ".." / "release" / "score.json"
    assert (
        "not go under release/"
        in call("evaluate", run, "--data", "shapes", *FAST, "--json", target).complaint
    )
    assert released(run) == before


def test_charge_on_public_data_puts_the_accuracy_beside_the_release(call, run) -> None:
    answer = call("evaluate", run, "--data", "shapes", *FAST, "--charge", "--json", "-")
    assert answer.status == 0, answer.err
    report = json.loads(answer.out)
    (score,) = json.loads((run / "release" / "scores.json").read_text())["scores"]
    assert score["right"] == round(report["utility"]["logistic"]["last_accuracy"] * 1000)
    assert (score["classifier"], score["epochs"], score["num_train"]) == ("logistic", 2, 64)
    assert str(run / "release" / "scores.json") in answer.err


def test_charge_on_peoples_data_is_noisy_and_its_count_of_tests_is_kept(call, quick, tmp_path) -> None:
    data = load("shapes")
    own = tmp_path / "own.npz"
    np.savez(
        own, x=data.images[:2000], y=data.labels[:2000], x_test=data.images[3000:], y_test=data.labels[3000:]
    )
    run = tmp_path / "own"
    declared = ("--public-record-count", "--labels-are-public")
    made = call("train", own, "--out", run, *quick, "--score-noise", 50, *declared)
    assert made.status == 0, made.err
    answer = call("evaluate", run, "--data", own, *FAST, "--charge", "--json", "-")
    assert answer.status == 0, answer.err
    released = json.loads(answer.out)["released"]
    assert released["noise_stddev"] == 50
    assert released["num_test"] is None
    assert "with noise of 50, charged" in answer.err
    again = call("evaluate", run, "--data", own, *FAST, "--charge").complaint
    assert "was released already" in again
    assert str(run / "release" / "scores.json") in again


def test_ones_own_test_images(call, run, tmp_path) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (12, 16, 16), dtype=np.uint8), np.arange(12) % 4
    np.savez(tmp_path / "own.npz", x_test=images, y_test=labels)
    answer = call("evaluate", run, "--data", tmp_path / "own.npz", *FAST)
    assert answer.status == 0, answer.err
    assert "not to be published" in answer.out


def test_data_that_do_not_fit(call, run, tmp_path) -> None:
    def saved(name: str, **arrays: np.ndarray) -> Path:
        np.savez(tmp_path / name, **arrays)
        return tmp_path / name

    small = np.zeros((4, 8, 8), np.uint8)
    cases = {
        saved("a.npz", x=small, y=np.arange(4)): "has no test split",
        saved("b.npz", x_test=small, y_test=np.arange(4)): "give --image-size 16x16",
        saved("c.npz", x_test=small, y_test=np.arange(4) + 3): "not among the declared classes",
        tmp_path / "none.npz": "no such file",
    }
    kept = run / "private" / "scores"
    for source, said in cases.items():
        assert said in call("evaluate", run, "--data", source, *FAST).complaint
    assert not kept.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the option --data is missing"),
        (["--data", "shapes", "--epochs", 0], "--epochs: 0 is too small"),
        (["--data", "shapes", "--num-samples", "many"], "not a whole number"),
        (["--data", "shapes", "--seed", -1], "--seed: -1 is too small"),
        (["--data", "shapes", "--device", "abacus"], "device abacus: cannot be used"),
        (["--data", "mnist"], "data fetch mnist"),
        (["--data", "nothing"], "no source of that name"),
    ],
)
def test_mistakes(call, run, words, said) -> None:
    assert said in call("evaluate", run, *words).complaint
    assert not (run / "private" / "scores").exists()
