"""Real images are scored once, by the classifiers that score generated ones, and stand beside the paper's."""

from __future__ import annotations

from pathlib import Path

import pytest

from datalens.errors import DataError
from datalens.experiments.real import SHOWN, draw_real, real_accuracy
from datalens.experiments.settings import HEADLINE
from datalens.experiments.store import ResultsStore
from datalens.experiments.workplace import Workplace


class Scorer:
    """Knows its answers, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int, int]] = []

    def score(self, name: str, images, labels, *, seed: int) -> dict[str, float]:
        self.asked.append((name, len(images), len(labels), seed))
        return {"last_accuracy": 0.5}

    def score_real(self, kind: str) -> dict[str, float]:
        return {"is": {"mean": 9.8}, "fid": {"value": 1.25}}[kind]


class Scored(Workplace):
    """A workplace whose every data set is the drawn shapes, scored by one that knows."""

    def data_of(self, data_set: str, *, held_out: bool = False):
        return super().data_of("shapes")[0], SCORER


class Empty(Workplace):
    """A workplace without files."""

    def data_of(self, data_set: str, *, held_out: bool = False):
        raise DataError(f"{data_set}: no files")


SCORER = Scorer()


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    return ResultsStore(tmp_path / "results.jsonl")


def test_real_images_are_scored_once_and_stand_beside_the_papers(tmp_path: Path, store: ResultsStore) -> None:
    first = draw_real(store, Scored(tmp_path), tmp_path)
    assert first.rows[0] == ("MNIST", "50.0", "9.80", "1.25", "9.86 / 1.04")
    assert first.rows[-1] == ("emoji", "50.0", "9.80", "1.25", "")
    kept = ResultsStore(store.path, read_only=True)
    assert draw_real(kept, Empty(tmp_path), tmp_path) == first


def test_without_files_each_row_says_so(tmp_path: Path) -> None:
    rows = draw_real(ResultsStore(tmp_path / "none.jsonl"), Empty(tmp_path), tmp_path).rows
    assert [set(row[1:4]) for row in rows] == [{"no files"}] * len(SHOWN)


def test_the_classifier_learns_from_the_real_images_as_from_generated_ones(
    tmp_path: Path, store: ResultsStore
) -> None:
    SCORER.asked.clear()
    assert real_accuracy("mnist", store, Scored(tmp_path / "scratch")) == 0.5
    ((name, images, labels, seed),) = SCORER.asked
    assert (name, seed) == (HEADLINE, 0) and images == labels > 0
