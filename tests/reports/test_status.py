"""How runs stand: trained, interrupted, in training, damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from small_baselines import SMALL
from small_runs import copy, crash_after, small_data, stop_after, train

from datalens.baselines.model import Baseline
from datalens.baselines.registry import baseline
from datalens.privacy.ledger import Ledger
from datalens.reports.status import RunStatus, run_status
from datalens.training.run_folder import RunFolder


def status_of(root: Path) -> RunStatus:
    folder = RunFolder.open(root)
    return run_status(root.name, folder.release, folder.private)


def test_a_finished_run_is_trained(small: RunFolder, tmp_path: Path) -> None:
    found = status_of(small.root)
    assert (found.status, found.method, found.data, found.is_fit) == ("trained", "datalens", "private", True)
    assert found.epsilon is not None and found.epsilon <= 2 and found.delta == 1e-5
    root = copy(small.root, tmp_path / "copy")
    shutil.rmtree(root / "private")
    assert status_of(root).status == "trained, private side gone"


def test_interrupted_runs_say_where(tmp_path: Path) -> None:
    train(tmp_path / "stopped", steps=3)
    assert status_of(tmp_path / "stopped").status == "interrupted at step 3 of 8"
    crash_after(tmp_path / "crashed", 5)
    assert status_of(tmp_path / "crashed").status == "interrupted at step 5 of 8"
    shutil.rmtree(tmp_path / "crashed" / "private")
    assert status_of(tmp_path / "crashed").status == (
        "interrupted at step 5 of 8, cannot go on: private side gone"
    )


def test_a_run_in_training_is_seen_and_left_alone(small: RunFolder, tmp_path: Path) -> None:
    root = copy(small.root, tmp_path / "copy")
    with Ledger.open(root / "release" / "ledger.jsonl"):
        assert status_of(root).status == "in training, at step 8 of 8"
    with Ledger.open(root / "release" / "ledger.jsonl"):
        pass  # the question has kept no lock


def test_steps_that_release_nothing_count(tmp_path: Path) -> None:
    """DP-MERF releases once and learns for four steps; its checkpoints say how far it came."""
    config = baseline("dp-merf", SMALL["dp-merf"], epsilon=2.0, num_records=60)
    Baseline(config).fit(small_data(), out=tmp_path / "whole")
    assert status_of(tmp_path / "whole").status == "trained"
    Baseline(config).fit(small_data(), out=tmp_path / "part", stop=stop_after(2))
    assert status_of(tmp_path / "part").status == "interrupted at step 2 of 4"


@pytest.mark.parametrize("name", ["config.json", "ledger.jsonl"])
def test_damage_is_a_status_and_no_error(small: RunFolder, tmp_path: Path, name: str) -> None:
    root = copy(small.root, tmp_path / "copy")
    (root / "release" / name).write_text("{}\n")
    found = run_status("copy", root / "release", root / "private")
    assert found.status == "damaged" and found.problem and "\n" not in found.problem
