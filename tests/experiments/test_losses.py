"""Losses are differences of numbers that the store holds, and nothing is made up where it holds none."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from datalens.errors import DataError
from datalens.experiments import losses
from datalens.experiments.contenders import contender
from datalens.experiments.settings import HEADLINE, SHORT
from datalens.experiments.store import ResultsStore
from datalens.experiments.study import Study
from datalens.experiments.workplace import Workplace


class Empty(Workplace):
    """A workplace without files."""

    def data_of(self, data_set: str, *, held_out: bool = False):
        raise DataError("not here")


def _filled(path: Path) -> ResultsStore:
    """Results of MNIST: 0.99 from real images, 0.97 without noise, then 0.96, 0.95, 0.90; two points for sampling."""
    store = ResultsStore(path)
    real = Study("real-accuracy", (("data_set", "mnist"), ("score", HEADLINE)))
    store.add(real, {"result": {"last_accuracy": 0.99}}, {})
    for epsilon, accuracy in ((math.inf, 0.97), (10.0, 0.96), (1.0, 0.95), (0.2, 0.90)):
        scores = {HEADLINE: {"last_accuracy": accuracy}, SHORT: {"last_accuracy": accuracy - 0.02}}
        store.add(contender("moments", "mnist", epsilon), scores, {})
    return store


@pytest.mark.parametrize("read_only", [True, False])
def test_each_loss_is_the_number_before_less_the_number(tmp_path: Path, read_only: bool) -> None:
    _filled(tmp_path / "results.jsonl")
    store = ResultsStore(tmp_path / "results.jsonl", read_only=read_only)
    grid = losses.draw_losses(store, Empty(tmp_path / "scratch"), tmp_path)
    assert grid.rows[:3] == (
        ("MNIST", "0.2", "99.0", "2.0", "7.0", "90.0", "2.0"),
        ("MNIST", "1", "99.0", "2.0", "2.0", "95.0", "2.0"),
        ("MNIST", "10", "99.0", "2.0", "1.0", "96.0", "2.0"),
    )
    absent = "not run" if read_only else "no files"
    assert [row[1:] for row in grid.rows[3:]] == [(epsilon, *[absent] * 5) for epsilon in ("0.2", "1", "10")]
