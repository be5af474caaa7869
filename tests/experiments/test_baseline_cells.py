"""A baseline's cell is trained, scored and priced like one of DataLens, and named by all that decides its result."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tiny_cell import MERF, SMALL

from datalens import data
from datalens.experiments.baseline_cells import BaselineCell
from datalens.experiments.measure import measure
from datalens.experiments.store import ResultsStore
from datalens.experiments.workplace import Workplace, without_last_sixth


def test_a_baseline_is_trained_scored_and_priced(tmp_path: Path) -> None:
    store, place = ResultsStore(tmp_path / "results.jsonl"), Workplace(tmp_path / "scratch", grids=tmp_path)
    told: list[str] = []
    measure(SMALL, ["logistic-40"], store, place, told.append)
    result, score = store.run(SMALL), store.score(SMALL, "logistic-40")
    assert result is not None and score is not None and told == ["training", "logistic-40"]
    privacy = result["privacy"]
    assert 9.9 < privacy["spent_epsilon"]["exact"] <= privacy["authorised_epsilon"] <= 10.0
    assert privacy["replace_one_epsilon"] > 2 * privacy["spent_epsilon"]["exact"], (
        "features twice as far apart"
    )
    assert result["config"]["privacy"]["insecure_seed"] == 0 and result["peak_memory_mib"] is None
    assert score["num_test"] == data.load("shapes", split="test").num_records
    assert (tmp_path / f"{SMALL.key}.png").exists()


def test_a_trial_never_sees_a_test_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    load = data.load
    monkeypatch.setattr(
        data, "load", lambda name, split, root: asked.append(split) or load(name, split=split)
    )
    cell = BaselineCell("shapes", "dp-merf", 10.0, settings=MERF, held_out=True)
    store = ResultsStore(tmp_path / "results.jsonl")
    measure(cell, ["logistic-40"], store, Workplace(tmp_path / "scratch"))
    score, result = store.score(cell, "logistic-40"), store.run(cell)
    assert asked == ["train"] and score is not None and result is not None
    records, validation = without_last_sixth(load("shapes"))
    assert score["num_test"] == validation.num_records
    assert records.num_records + validation.num_records == load("shapes").num_records
    assert (records.images[-1] != validation.images[0]).any()


def test_an_infinite_epsilon_adds_no_noise_and_promises_nothing(tmp_path: Path) -> None:
    cell = BaselineCell("shapes", "dp-merf", math.inf, settings=MERF)
    store = ResultsStore(tmp_path / "results.jsonl")
    measure(cell, ["logistic-40"], store, Workplace(tmp_path / "scratch"))
    result = store.run(cell)
    assert result is not None and result["privacy"] is None and result["cell"]["epsilon"] is None


def test_keys_hold_all_that_decides_a_result() -> None:
    cells = [
        SMALL,
        SMALL.with_seed(1),
        BaselineCell("shapes", "dp-merf", 1.0, settings=MERF),
        BaselineCell("shapes", "dp-merf", math.inf, settings=MERF),
        BaselineCell("shapes", "dp-merf", 10.0, settings=MERF, held_out=True),
        BaselineCell("shapes", "dp-merf", 10.0),
        BaselineCell("mnist", "dp-merf", 10.0, settings=MERF),
        BaselineCell("mnist", "gs-wgan", 10.0),
        BaselineCell("mnist", "gs-wgan", 10.0, as_published=True),
    ]
    assert len({cell.key for cell in cells}) == len(cells)
