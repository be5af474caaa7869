"""Methods side by side: each is trained, scored and priced, and the command says what is wrong in one line."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from datalens import data
from datalens.cli.main import main
from datalens.errors import ConfigError, RunError
from datalens.experiments import benchmark, training, trials
from datalens.experiments.apart import in_fresh_process, peak_memory_mib
from datalens.experiments.baseline_cells import BaselineCell
from datalens.experiments.cells import Cell
from datalens.experiments.contenders import CONTENDERS, contender
from datalens.experiments.measure import Workplace, measure, without_last_sixth
from datalens.experiments.store import ResultsStore
from datalens.experiments.training import train
from datalens.training.run_folder import RunFolder

TINY = (("num_features", 50), ("num_steps", 3), ("images_per_class", 4), ("hidden_units", 8), ("channels", 4))
SMALL = BaselineCell("shapes", "dp-merf", 10.0, settings=TINY)


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
    cell = BaselineCell("shapes", "dp-merf", 10.0, settings=TINY, held_out=True)
    store = ResultsStore(tmp_path / "results.jsonl")
    measure(cell, ["logistic-40"], store, Workplace(tmp_path / "scratch"))
    score, result = store.score(cell, "logistic-40"), store.run(cell)
    assert asked == ["train"] and score is not None and result is not None
    records, validation = without_last_sixth(load("shapes"))
    assert score["num_test"] == validation.num_records
    assert records.num_records + validation.num_records == load("shapes").num_records
    assert (records.images[-1] != validation.images[0]).any()


def test_an_infinite_epsilon_adds_no_noise_and_promises_nothing(tmp_path: Path) -> None:
    cell = BaselineCell("shapes", "dp-merf", math.inf, settings=TINY)
    store = ResultsStore(tmp_path / "results.jsonl")
    measure(cell, ["logistic-40"], store, Workplace(tmp_path / "scratch"))
    result = store.run(cell)
    assert result is not None and result["privacy"] is None and result["cell"]["epsilon"] is None


def test_keys_hold_all_that_decides_a_result() -> None:
    cells = [
        SMALL,
        SMALL.with_seed(1),
        BaselineCell("shapes", "dp-merf", 1.0, settings=TINY),
        BaselineCell("shapes", "dp-merf", math.inf, settings=TINY),
        BaselineCell("shapes", "dp-merf", 10.0, settings=TINY, held_out=True),
        BaselineCell("shapes", "dp-merf", 10.0),
        BaselineCell("mnist", "dp-merf", 10.0, settings=TINY),
    ]
    assert len({cell.key for cell in cells}) == len(cells)


def test_a_training_in_a_process_of_its_own_tells_its_own_peak_of_memory() -> None:
    mine = peak_memory_mib()
    ballast = bytearray(os.urandom(1024)) * (400 * 1024)  # 400 MiB, which the new process must not count
    theirs = in_fresh_process(peak_memory_mib)
    assert len(ballast) == 400 * 2**20 and peak_memory_mib() > max(mine, 400.0)
    assert 5 < theirs < peak_memory_mib() - 200


def test_an_error_of_a_process_of_its_own_arrives_whole() -> None:
    with pytest.raises(ConfigError, match="no trials of 'dp-sinkhorn'"):
        in_fresh_process(trials.trial_cells, "dp-sinkhorn")
    with pytest.raises(RunError, match="process was killed"):
        in_fresh_process(os.abort)


WAITS = """
import os, sys, time
from pathlib import Path
from datalens.experiments.apart import in_fresh_process

def wait(path):
    Path(path).write_text(str(os.getpid()))
    time.sleep(120)

if __name__ == "__main__":
    in_fresh_process(wait, sys.argv[1])
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_process_of_its_own_does_not_outlive_who_began_it(tmp_path: Path, sent: signal.Signals) -> None:
    script, told = tmp_path / "waits.py", tmp_path / "pid"
    script.write_text(WAITS)
    with subprocess.Popen(
        [sys.executable, str(script), str(told)], stderr=subprocess.PIPE, text=True
    ) as parent:
        _until(lambda: told.exists() and told.read_text() != "")
        parent.send_signal(sent)
        _, said = parent.communicate(timeout=60)
    _until(lambda: not _is_alive(int(told.read_text())))
    assert said.count("Traceback") == (sent == signal.SIGINT), "one process speaks of Ctrl-C"


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("ending", "content"),
    [("safetensors", b"\x08"), ("safetensors", b""), ("json", b"{"), ("json", b"[]"), ("json", b"{}")],
)
def test_a_damaged_generator_is_trained_again(tmp_path: Path, ending: str, content: bytes) -> None:
    store, place = ResultsStore(tmp_path / "results.jsonl"), Workplace(tmp_path / "scratch")
    train(SMALL, place.data_of("shapes")[0], place.scratch)
    (place.scratch / f"{SMALL.key}.{ending}").write_bytes(content)
    told: list[str] = []
    measure(SMALL, ["logistic-20"], store, place, told.append)
    assert told[0].startswith("what was kept is of no use") and told[1:] == ["training", "logistic-20"]
    assert store.score(SMALL, "logistic-20") is not None


def test_a_training_killed_before_it_began_does_not_stand_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunFolder.create(tmp_path / "run", publishable=False)
    begun: list[Path] = []
    monkeypatch.setattr(training.Session, "begin", lambda config, data, folder: begun.append(folder))
    training._begin(Cell("mnist", 1.0, paper_networks=True), data.load("shapes"), tmp_path / "run")
    assert begun == [tmp_path / "run"] and not begun[0].exists()


def test_a_method_without_privacy_has_one_row_for_all_epsilons() -> None:
    table = benchmark.benchmark_table("mnist", ["dc-gan", "dp-merf"], [1.0, 10.0], 2)
    assert [row.labels for row in table.rows] == [("dc-gan", "inf"), ("dp-merf", "1"), ("dp-merf", "10")]
    assert all(row.seeds == (0, 1) for row in table.rows)
    assert [row.paper for row in table.rows] == ["paper 96.5", "re-run 83.9", "re-run 83.2"]


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_has_settings(name: str) -> None:
    cell = contender(name, "mnist", 1.0)
    assert cell.config().privacy.insecure_seed == 0
    assert cell.config().privacy.as_published is name.endswith("as-published")


@pytest.mark.parametrize("name", trials.TRIALS)
def test_four_settings_were_tried_and_one_of_them_is_used(name: str) -> None:
    cells = trials.trial_cells(name)
    assert len({cell.key for cell in cells}) == len(cells) == 4
    assert all(cell.held_out for cell in cells)
    assert trials.chosen(name) == cells[trials.CHOSEN.get(name, 0)].settings


def test_the_command_runs_draws_and_runs_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(trials.TRIALS, "dp-merf", (TINY,))
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
