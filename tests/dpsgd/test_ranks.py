"""R09: several processes add the noise once, at the right scale, and stay alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


def ranks(number: int, folder: Path) -> list[dict]:
    """What each of so many processes found."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={number}"]
    subprocess.run(
        [*command, str(TESTS / "dpsgd_ranks.py"), str(folder)],
        check=True,
        timeout=280,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}", "OMP_NUM_THREADS": "1"},
    )
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(number)]


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_r09_noise_once_and_at_the_scale_of_one_process(tmp_path: Path, number: int) -> None:
    found = ranks(number, tmp_path)
    noise = [one["noise"] for one in found]
    assert noise[0]["std"] == pytest.approx(0.8 / 8, rel=0.03)  # sqrt(keep) * sigma * C over the expected lot
    assert all(one == noise[0] for one in noise)
    rare = [one["rare"] for one in found]
    assert {one["lots"] for one in rare} == {rare[0]["lots"]} and rare[0]["lots"] >= 19
    assert all(one["weights"] == rare[0]["weights"] for one in rare)
    met = [record for one in rare for record in one["met"]]
    assert len(met) == len(set(met))  # no record is met by two ranks
