"""The results store: what was measured is never lost, never run twice, and a crash costs one line at most."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datalens.cli.main import main
from datalens.errors import RunError
from datalens.experiments.cells import Cell
from datalens.experiments.store import ResultsStore

CELL = Cell("shapes", 10.0)
SCORE = {"last_accuracy": 0.5}


def test_a_result_is_there_for_whoever_opens_the_file_next(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "new" / "results.jsonl")
    assert store.missing(CELL, ["cnn-10", "is-10"]) == ["cnn-10", "is-10"]
    store.add(CELL, {"cnn-10": SCORE}, {"steps": 3})
    again = ResultsStore(store.path)
    assert again.score(CELL, "cnn-10") == SCORE
    assert again.missing(CELL, ["cnn-10", "is-10"]) == ["is-10"]
    run = again.run(CELL)
    assert run is not None
    assert run["steps"] == 3 and run["cell"]["data_set"] == "shapes"


def test_scores_of_several_lines_are_joined_and_the_last_word_counts(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    store.add(CELL, {"cnn-10": SCORE}, {})
    store.add(CELL, {"is-10": {"mean": 2.0}}, {})
    store.add(CELL, {"cnn-10": {"last_accuracy": 0.6}}, {})
    again = ResultsStore(store.path)
    assert again.score(CELL, "cnn-10") == {"last_accuracy": 0.6}
    assert again.score(CELL, "is-10") == {"mean": 2.0}
    assert len(store.path.read_text().splitlines()) == 3, "nothing is ever rewritten"


def test_every_cut_of_the_last_line_loses_that_line_alone(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    store.add(CELL, {"cnn-10": SCORE}, {})
    first = store.path.read_bytes()
    store.add(CELL, {"is-10": {"mean": 2.0}}, {})
    whole = store.path.read_bytes()
    for cut in range(len(first) + 1, len(whole) - 1, 7):
        store.path.write_bytes(whole[:cut])
        held = ResultsStore(store.path)
        assert held.missing(CELL, ["cnn-10", "is-10"]) == ["is-10"]
        held.add(CELL, {"is-10": {"mean": 3.0}}, {})
        again = ResultsStore(store.path)
        assert again.score(CELL, "is-10") == {"mean": 3.0}
        assert again.score(CELL, "cnn-10") == SCORE


def test_another_kind_of_file_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes\nmore\n")
    with pytest.raises(RunError, match="is not a results store"):
        ResultsStore(path)
    assert path.read_text() == "my notes\nmore\n"


def test_a_store_that_cannot_be_written_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    store = ResultsStore(tmp_path / "file" / "results.jsonl")
    with pytest.raises(RunError, match="cannot be written"):
        store.require_writable()
    assert main(["reproduce", "table1", "--store", str(store.path)]) == 2
    assert "give another --store" in capsys.readouterr().err


def test_a_damaged_line_is_run_again_and_costs_no_other(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    for name in ("cnn-10", "is-10", "fid-10"):
        store.add(CELL, {name: SCORE}, {})
    lines = store.path.read_bytes().splitlines(keepends=True)
    store.path.write_bytes(lines[0] + lines[1][:20] + b"\n" + lines[2])
    assert ResultsStore(store.path).missing(CELL, ["cnn-10", "is-10", "fid-10"]) == ["is-10"]


def test_a_number_that_is_none_never_reaches_the_file(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    with pytest.raises(ValueError, match="JSON"):
        store.add(CELL, {"is-10": {"mean": float("nan")}}, {})
    assert not store.path.exists() or not store.path.read_bytes()


def test_equal_settings_are_one_cell_and_different_ones_are_not() -> None:
    same = Cell("shapes", 10.0, changes=(("voting__num_teachers", 400), ("performance__chunk_size", 7)))
    assert same.key == CELL.key, "the recipe's own value, and a matter of speed"
    others = [
        Cell("shapes", 9.0),
        Cell("shapes", 10.0, seed=1),
        Cell("shapes", 10.0, changes=(("voting__top_k", 50),)),
        Cell("mnist", 10.0),
        Cell("mnist", 10.0, paper_networks=True),
    ]
    keys = {cell.key for cell in [CELL, *others]}
    assert len(keys) == 1 + len(others)


def test_a_line_says_how_it_was_made(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    store.add(CELL, {"cnn-10": SCORE}, {"environment": {"torch": "2"}})
    line = json.loads(store.path.read_text())
    assert line["cell"]["seed"] == 0 and line["environment"] == {"torch": "2"} and line["key"] == CELL.key
