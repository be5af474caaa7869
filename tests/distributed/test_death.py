"""A rank that dies: the others end at once with one line, nothing is lost or uncharged, and a restart goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from datalens import DataLens
from datalens.audit.verify import verify_run
from datalens.cli.main import main
from datalens.privacy.ledger import Ledger
from datalens.training.directions import read_directions
from datalens.training.run_folder import RunFolder

SOURCES = Path(__file__).resolve().parents[2] / "src"
STEPS = 60
SETTINGS = f"""
recipe = "custom"
[privacy]
epsilon = 50.0
num_records = 60
insecure_seed = 7
[voting]
num_teachers = 10
top_k = 5
batch_size = 3
num_steps = {STEPS}
[teachers]
kind = "matching"
steps = 1
first_steps = 1
[student]
latent_dim = 4
hidden_units = 8
channels = 4
[performance]
chunk_size = 3
checkpoint_every = 4
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """``train`` with a set of 60 images of 8x8."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "data.npz", x=images, y=np.arange(60) % 2)
    (tmp_path / "settings.toml").write_text(SETTINGS)
    return [
        "train",
        str(tmp_path / "data.npz"),
        "--classes",
        "2",
        "--config",
        str(tmp_path / "settings.toml"),
    ]


def _start(words: list[str], restarts: int) -> subprocess.Popen[str]:
    """Two ranks under torchrun, slowed down so that a signal finds them at work."""
    program = (
        "import sys, time\nfrom datalens.cli.main import main\n"
        "from datalens.teachers.matching import MatchingTeachers as Teachers\n"
        "ask = Teachers.input_gradient\n"
        "def slow(*words):\n    time.sleep(0.02)\n    return ask(*words)\n"
        "Teachers.input_gradient = slow\nsys.exit(main(sys.argv[1:]))\n"
    )
    script = Path(words[1]).with_name("slow.py")
    script.write_text(program)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    return subprocess.Popen(
        [*launcher, "--max-restarts", str(restarts), str(script), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCES)},
    )


def _rank_of(launcher: int, rank: int) -> int:
    """The process of a rank under its launcher."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            place = (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if parent == launcher and f"RANK={rank}".encode() in place:
            return int(path.name)
    raise LookupError(f"no rank {rank}")


def _wait(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        assert process.poll() is None, process.communicate()[1][-2000:]
        time.sleep(0.05)


def _steps(root: Path) -> int:
    run = RunFolder(root, publishable=False)
    return len(read_directions(run.directions)) if run.directions.is_file() else 0


def _all_is_charged(root: Path) -> None:
    run = RunFolder(root, publishable=False)
    paid = {line.hash for line in Ledger.read(run.ledger).lines}
    records = read_directions(run.directions)
    assert records
    assert {record.line_hash for record in records} <= paid


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds its processes in /proc")
def test_kill_a_rank_then_restart_then_kill_the_other(tmp_path: Path, words: list[str]) -> None:
    """One restart is allowed: it goes on with the run; the second death ends it; a single process finishes."""
    assert main([*words, "--out", str(tmp_path / "straight"), "--quiet"]) == 0
    root = tmp_path / "run"
    process = _start([*words, "--out", str(root)], restarts=1)
    try:
        _wait(lambda: _steps(root) >= 6, process)
        os.kill(_rank_of(process.pid, 1), signal.SIGKILL)
        before = _steps(root)
        _wait(lambda: _steps(root) >= before + 6, process)
        _all_is_charged(root)
        os.kill(_rank_of(process.pid, 0), signal.SIGKILL)
        died = time.monotonic()
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert time.monotonic() - died < 20
    assert process.returncode != 0
    assert "error: another process of this run than rank 0 of 2 has ended" in errors
    _all_is_charged(root)
    assert main(["train", words[1], "--classes", "2", "--resume", str(root), "--quiet"]) == 0
    straight, resumed = DataLens.load(tmp_path / "straight"), DataLens.load(root)
    charged = [line for line in resumed.ledger.lines if line.kind == "release"]
    assert len(charged) == STEPS
    assert verify_run(root, replay=True).agrees
    for mine, theirs in zip(straight.generator.parameters(), resumed.generator.parameters(), strict=True):
        if _steps(root) == STEPS:  # no step was charged and lost between ledger and record
            assert mine.equal(theirs)


@pytest.mark.slow
def test_a_second_run_on_the_folder_is_refused_and_its_others_end(tmp_path: Path, words: list[str]) -> None:
    """Not after a restart, ``--out`` that exists is a mistake; all ranks end with status 2."""
    assert main([*words, "--out", str(tmp_path / "run"), "--num-steps", "2", "--quiet"]) == 0
    process = _start([*words, "--out", str(tmp_path / "run")], restarts=0)
    output, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert output == ""
    assert f"\nerror: --out {tmp_path / 'run'}: exists already" in "\n" + errors


def test_only_a_restart_with_the_same_settings_goes_on(tmp_path: Path, words: list[str]) -> None:
    from datalens.cli.resuming import as_resumed, is_restarted
    from datalens.cli.train import train

    root = tmp_path / "run"
    assert main([*words, "--out", str(root), "--num-steps", "2", "--quiet"]) == 0
    context = train.make_context("train", [*words[1:], "--out", str(root), "--num-steps", "2"])
    options = {name: value for name, value in context.params.items() if name != "source"}
    assert is_restarted(root, words[1], options, 1)
    assert not is_restarted(root, words[1], options, 0)
    assert not is_restarted(root, words[1], {**options, "num_steps": 3}, 1)
    assert not is_restarted(root, words[1], {**options, "budget_file": "other.json"}, 1)
    assert not is_restarted(tmp_path / "other", words[1], options, 1)
    half = RunFolder.create(tmp_path / "half", publishable=False)
    assert not is_restarted(half.root, words[1], options, 0)
    assert half.root.exists()
    assert not is_restarted(half.root, words[1], options, 1)
    assert not half.root.exists()
    resumed = as_resumed(root, options)
    assert (resumed["resume"], resumed["out"], resumed["num_steps"], resumed["classes"]) == (
        str(root),
        None,
        None,
        options["classes"],
    )
