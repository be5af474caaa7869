"""Methods side by side: each is trained, scored and priced, and the command says what is wrong in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_cell import MERF

from datalens.cli.main import main
from datalens.experiments import benchmark, trials


def test_a_method_without_privacy_has_one_row_for_all_epsilons() -> None:
    table = benchmark.benchmark_table("mnist", ["dc-gan", "dp-merf"], [1.0, 10.0], 2)
    assert [row.labels for row in table.rows] == [("dc-gan", "inf"), ("dp-merf", "1"), ("dp-merf", "10")]
    assert all(row.seeds == (0, 1) for row in table.rows)
    assert [row.printed for row in table.rows] == ["paper 96.5", "re-run 83.9", "re-run 83.2"]


def test_the_command_runs_draws_and_runs_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(trials.TRIALS, "dp-merf", (MERF,))
    monkeypatch.setitem(trials.CHOSEN, "dp-merf", 0)
    monkeypatch.setattr(benchmark, "HEADLINE", "logistic-40")
    monkeypatch.setattr(benchmark, "SHORT", "logistic-20")
    monkeypatch.setattr(benchmark, "FEATURED", ("mlp-20", "mlp-21"))
    words = ["benchmark", "shapes", "--methods", "dp-merf", "--epsilon", "10"]
    words += ["--store", str(tmp_path / "r" / "results.jsonl"), "--json", str(tmp_path / "answer.json")]
    monkeypatch.setattr(benchmark, "IMAGE_COLUMNS", ())
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "shapes" in said and "dp-merf, epsilon 10, seed 0" in said and "every cell has run" in said
    answer = json.loads((tmp_path / "answer.json").read_text())
    row = dict(zip(answer["header"], answer["rows"][0], strict=True))
    assert row["method"] == "dp-merf" and float(row["MiB"]) > 50 and float(row["seconds"]) > 0
    assert float(row["epsilon"]) <= 10 < float(row["epsilon, replacing one"])
    assert (tmp_path / "r" / "benchmark-shapes.md").exists()
    assert main([*words[:-2], "--draw"]) == 0
    assert main(words[:-2]) == 0
    assert ": training" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["svhn"], "source 'svhn' is unknown to benchmark; known: mnist, fashion-mnist, shapes"),
        (["shapes", "--methods", "dp-merf,magic"], "method 'magic' is unknown; known: datalens, dc-gan"),
        (["shapes", "--epsilon", "1,x"], "--epsilon '1,x': 'x' is not a number"),
        (["shapes", "--epsilon", "0"], "--epsilon '0': 0 is out of range; give a finite number above 0"),
        (["shapes", "--seeds", "0"], "0 is too small"),
        (
            ["shapes", "--seeds", "1000000000"],
            "--seeds 1000000000: is more than anyone can run; give at most 1000",
        ),
        (["shapes", "--draw"], "no such file, so nothing to draw"),
    ],
)
def test_a_mistake_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    assert main(["benchmark", *words, "--store", str(tmp_path / "results.jsonl")]) == 2
    error = capsys.readouterr().err.strip()
    assert expected in error and len(error.splitlines()) == 1
    assert not list(tmp_path.iterdir())
