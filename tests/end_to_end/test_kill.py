"""kill -9 at random moments: whatever was released stays charged, and the run can always go on."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from datalens import DataLens
from datalens.audit.verify import verify_run
from datalens.privacy.ledger import Ledger
from datalens.training.directions import read_directions

HERE = Path(__file__).parents[1]
SOURCES = HERE.parent / "src"
NUM_STEPS = 60

TRAIN = f"""
import sys
import torch
sys.path[:0] = [{str(HERE)!r}, {str(SOURCES)!r}]
torch.set_num_threads(1)
from pathlib import Path
from datalens.training.session import Session
from datalens import DataLens
from small_runs import small_config, small_data
root, steps = Path(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
if (root / "release" / "config.json").is_file():
    DataLens.resume(root, small_data())
else:
    config = small_config(voting__num_steps=steps, performance__checkpoint_every=2)
    DataLens(config).fit(small_data(), out=root)
"""


def _start(root: Path, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", TRAIN, str(root), str(NUM_STEPS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        **options,  # type: ignore[call-overload]
    )


def _kill_in_a_loop(root: Path, kills: int, rng: random.Random) -> None:
    released: dict[int, bytes] = {}
    killed = 0
    while killed < kills:
        process = _start(root)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        code = process.wait()
        _, errors = process.communicate()
        assert code in (0, -signal.SIGKILL), errors
        killed += code != 0
        _check(root, released)
        if code == 0:  # it was done before the signal came: begin another
            assert verify_run(root).agrees
            shutil.rmtree(root)
            released.clear()
        elif root.exists() and not (root / "release" / "config.json").is_file():
            shutil.rmtree(root)  # nothing had begun


def _check(root: Path, released: dict[int, bytes]) -> None:
    """Every direction ever seen is still there, unchanged, and paid for by a line of its own."""
    if not (root / "release" / "directions.bin").is_file():
        return
    ledger = Ledger.read(root / "release" / "ledger.jsonl")
    paid = [line.hash for line in ledger.lines if line.kind == "release"]
    records = read_directions(root / "release" / "directions.bin")
    seen = {record.step: record.direction_BD.numpy().tobytes() for record in records}
    assert seen.items() >= released.items()
    released.update(seen)
    assert len({record.line_hash for record in records}) == len(records)
    assert {record.line_hash for record in records} <= set(paid)
    steps = [line.body["note"]["step"] for line in ledger.lines if line.kind == "release"]
    assert len(set(steps)) == len(steps)
    for name in ("certificate.json", "config.json"):
        path = root / "release" / name
        if path.is_file():
            json.loads(path.read_text())
    if (root / "release" / "generator.safetensors").is_file():
        DataLens.load(root).sample(1)


def _finish(root: Path) -> None:
    process = _start(root)
    _, errors = process.communicate(timeout=250)
    assert process.returncode == 0, errors
    found = verify_run(root, replay=True)
    assert found.agrees, found.differences
    model = DataLens.load(root)
    assert model.spent_epsilon(1e-5) <= 2.0
    assert sum(event.count for event in model.ledger.events()) <= NUM_STEPS


def test_killed_four_times_at_random_moments(tmp_path: Path) -> None:
    _kill_in_a_loop(tmp_path / "run", 4, random.Random(1))
    _finish(tmp_path / "run")


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_killed_fifty_times_at_random_moments(tmp_path: Path) -> None:
    _kill_in_a_loop(tmp_path / "run", 50, random.Random())
    _finish(tmp_path / "run")
