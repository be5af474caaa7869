"""A sweep goes on past what cannot run here, and keeps what the product refuses."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_cell import TINY

from datalens.errors import ConfigError
from datalens.experiments.baseline_cells import BaselineCell
from datalens.experiments.cells import Cell
from datalens.experiments.store import ResultsStore
from datalens.experiments.sweep import Work, run
from datalens.experiments.workplace import Workplace


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path / "scratch", None, tmp_path / "grids")


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
