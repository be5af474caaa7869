"""Studies are computed once, and the runtime paragraph times both numbers of teachers in turns."""

from __future__ import annotations

from pathlib import Path

from datalens import data
from datalens.experiments import runtime
from datalens.experiments.cells import Cell
from datalens.experiments.store import ResultsStore
from datalens.experiments.study import Study, studied


def test_a_study_is_computed_once_and_says_where(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    asked: list[int] = []

    def compute() -> dict:
        asked.append(1)
        return {"value": len(asked)}

    study = Study("small", (("a", 1),))
    assert studied(study, store, compute) == {"value": 1}
    assert studied(study, ResultsStore(store.path), compute) == {"value": 1}
    assert studied(Study("small", (("a", 2),)), store, compute) == {"value": 2}
    assert studied(Study("small", (("a", 1),), version=2), store, compute) == {"value": 3}
    run = ResultsStore(store.path).run(study)
    assert run is not None
    assert run["seconds"] >= 0 and "torch" in run["environment"] and run["cell"]["settings"] == [["a", 1]]


def test_runtime_is_measured_for_both_numbers_of_teachers(monkeypatch) -> None:
    monkeypatch.setattr(runtime, "TEACHERS", (20, 40))
    monkeypatch.setattr(runtime.paper, "RUNTIME", {20: 100.0, 40: 200.0})
    cell = Cell("shapes", 10.0, changes=(("voting__batch_size", 4), ("voting__top_k", 5)))
    result = runtime.measure_runtime(data.load("shapes"), cell, steps=2)
    assert set(result["seconds"]) == {"20", "40"} and min(result["seconds"].values()) > 0
    drawn = runtime.draw_runtime({"seconds": {"20": 1.0, "40": 3.0}})
    assert drawn.rows[0] == ("20", "1.00", "100", "100")
    assert drawn.rows[-1][1:] == ("3.00", "2.00", "")
