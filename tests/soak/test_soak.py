"""The soak's short form: one fixed round of each disturbance, and its command line.

make soak MINUTES=120    the long form
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from soak.plan import Disturbance, plan_of
from soak.rounds import played

SOAK = Path(__file__).with_name("soak.py")
SEED = 1
ORDINARY = (Disturbance.KILL, Disturbance.FULL_DISK, Disturbance.DAMAGED_RUN, Disturbance.OTHER_SETTINGS)
"""The rounds of the ordinary suite; the others take as long again."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "disturbance",
    [pytest.param(kind, marks=() if kind in ORDINARY else pytest.mark.slow, id=kind) for kind in Disturbance],
)
def test_a_round_loses_nothing_and_charges_everything(disturbance: Disturbance, tmp_path: Path) -> None:
    plan = replace(plan_of(SEED, 0, disturbance), by_name=False, insecure_seed=7)
    violations, outcome = played(plan, tmp_path / "round")
    assert violations == [], outcome
    assert outcome


def test_an_existing_log_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("mine")
    ended = subprocess.run([sys.executable, str(SOAK), "--log", str(log)], capture_output=True, text=True)
    assert (ended.returncode, log.read_text()) == (2, "mine")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_command_plays_one_round_again_and_says_how_it_went(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "runs"
    words = ["--seed", str(SEED), "--round", "4", "--log", str(log), "--folder", str(folder)]
    ended = subprocess.run([sys.executable, str(SOAK), *words], capture_output=True, text=True)
    line, summary = map(json.loads, log.read_text().splitlines())
    assert ended.returncode == 0, line
    assert (line["round"], line["seed"], line["violations"]) == (4, SEED, [])
    assert (summary["rounds"], summary["violations"]) == (1, 0)
    assert summary["minutes"] * 60 >= line["seconds"] - 1
    assert list(folder.iterdir()) == []
