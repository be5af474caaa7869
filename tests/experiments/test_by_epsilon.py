"""Accuracy over epsilon is drawn from what tables have measured, and says what has not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from datalens.experiments import by_epsilon, paper
from datalens.experiments.settings import SHORT
from datalens.experiments.store import ResultsStore
from datalens.experiments.tables import TABLES
from datalens.experiments.workplace import Workplace


def test_it_shows_the_mean_of_the_seeds_that_have_run(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    for seed, accuracy in ((0, 0.9), (2, 0.96)):
        cell = by_epsilon.OURS["moments"]("mnist", 1.0).with_seed(seed)
        store.add(cell, {SHORT: {"last_accuracy": accuracy}}, {})
    before = store.path.read_bytes()
    grid = by_epsilon.draw_by_epsilon(store, Workplace(tmp_path), tmp_path)
    rows = {row[:2]: dict(zip(grid.header[2:], row[2:], strict=True)) for row in grid.rows}
    assert rows["MNIST", "moments"]["epsilon 1"] == "93.0"
    assert rows["MNIST", "moments"]["epsilon 0.2"] == "not run"
    assert rows["MNIST", by_epsilon.PRINTED]["epsilon 10"] == "80.7"
    assert set(rows["Fashion-MNIST", "moments"].values()) == {"not run"}
    assert {path.name for path in tmp_path.glob("by-epsilon-*.png")} == {
        "by-epsilon-mnist.png", "by-epsilon-fashion-mnist.png",
    }  # fmt: skip
    assert store.path.read_bytes() == before, "drawn, never run"


@pytest.mark.parametrize("data_set", paper.TABLE_2)
def test_every_point_belongs_to_a_table(data_set: str) -> None:
    """So that what is drawn is what somebody can run again by a table's name."""
    cells = {row.cell.key for name in ("table1", "table2", "beyond") for row in TABLES[name]().rows}
    for cell_of in by_epsilon.OURS.values():
        for epsilon in by_epsilon.EPSILONS:
            assert cell_of(data_set, epsilon).key in cells
