"""Several processes at once: on one run's folder, on one new folder, and on one cache."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from datalens.audit.verify import verify_run
from datalens.privacy.ledger import Ledger
from datalens.training.heads import known_head

SOURCES = Path(__file__).parents[2] / "src"
COMMAND = """
import sys, torch
from datalens.cli.main import main
torch.set_num_threads(1)
sys.exit(main(sys.argv[1:]))
"""
QUICK = ("--num-teachers", "100", "--top-k", "20", "--batch-size", "4", "--epsilon", "50", "--quiet")
Process = subprocess.Popen[str]


def start(*words: object) -> Process:
    """A command in a process of its own, with the cache of this test session."""
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCES)},
    )


def end(process: Process) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=200)
    return process.returncode, out, err


def run_id(run: Path) -> str:
    return str(Ledger.read(run / "release" / "ledger.jsonl").header["run_id"])


def test_a_second_process_is_refused_and_a_crash_leaves_no_lock(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = start("train", "shapes", "--out", run, "--num-steps", 5000, *QUICK)
    while not (run / "release" / "directions.bin").exists():
        assert first.poll() is None, end(first)
        time.sleep(0.05)
    before = (run / "release" / "config.json").read_bytes()
    status, out, err = end(start("train", "shapes", "--resume", run, "--quiet"))
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1 and "is in use by another process: wait until that run ends" in err
    status, _, err = end(start("train", "shapes", "--out", run, *QUICK))
    assert status == 2 and "exists already" in err
    assert first.poll() is None, "the first goes on"
    assert (run / "release" / "config.json").read_bytes() == before
    first.send_signal(signal.SIGKILL)
    assert end(first)[0] == -signal.SIGKILL
    charged = Ledger.read(run / "release" / "ledger.jsonl").events()
    steps = sum(event.count for event in charged) + 3
    status, _, err = end(start("train", "shapes", "--resume", run, "--num-steps", steps, "--quiet"))
    assert status == 0, err
    assert verify_run(run).differences == []


def test_of_two_that_begin_in_one_folder_one_does(tmp_path: Path) -> None:
    run = tmp_path / "run"
    ends = [
        end(one) for one in [start("train", "shapes", "--out", run, "--num-steps", 3, *QUICK) for _ in "ab"]
    ]
    assert sorted(status for status, _, _ in ends) == [0, 2]
    [refused] = [err for status, _, err in ends if status == 2]
    assert refused.startswith("error: ") and len(refused.splitlines()) == 1
    assert verify_run(run).differences == []
    assert len(Ledger.read(run / "release" / "ledger.jsonl").events()) == 3


def without_seconds(answer: object) -> object:
    """What was found, less what it took and where it was written."""
    if isinstance(answer, dict):
        return {name: without_seconds(value) for name, value in answer.items() if "seconds" not in name}
    return answer


def test_runs_and_scores_that_share_a_cache_do_not_disturb_each_other(tmp_path: Path) -> None:
    runs = [tmp_path / "a", tmp_path / "b"]
    for process in [start("train", "shapes", "--out", run, "--num-steps", 3, *QUICK) for run in runs]:
        status, _, err = end(process)
        assert status == 0, err
    for run in runs:
        assert known_head(run_id(run)) == Ledger.read(run / "release" / "ledger.jsonl").head
    fid = ("--data", "shapes", "--metrics", "fid", "-n", 200, "--quiet")
    said = [tmp_path / "1.json", tmp_path / "2.json"]
    for process in [start("evaluate", runs[0], *fid, "--json", path) for path in said]:
        status, _, err = end(process)
        assert status == 0, err
    one, other = (json.loads(path.read_text()) for path in said)
    assert without_seconds(one) == without_seconds(other)
    for run in runs:
        assert verify_run(run).differences == []
