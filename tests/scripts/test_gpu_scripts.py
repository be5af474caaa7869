"""What a GPU will be asked to do runs on a CPU first, at sizes that say nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scripts_here import REPOSITORY, program, said

CHECK = REPOSITORY / "scripts" / "gpu_check.sh"


@pytest.mark.parametrize("recipe", ["mnist-paper", "mnist-quick"])
def test_votes_of_one_device_agree_with_themselves(recipe: str, monkeypatch, capsys) -> None:
    votes = program("scripts/gpu_votes.py", monkeypatch)
    words = ["--device", "cpu", "--against", "cpu", "--source", "shapes", "--recipe", recipe, "--teachers", "3",
             "--chunk", "3", "--against-chunk", "3", "--steps-before", "1"]  # fmt: skip
    assert votes.main(words) == 0
    found = said(capsys.readouterr().out)
    assert (found["agree"], found["agree_where_either_voted"]) == (1.0, 1.0)
    assert found["votes"] > 0


def test_votes_that_differ_are_found(monkeypatch, capsys) -> None:
    """The second device sees negatives of the fakes, which its teachers judge otherwise."""
    votes = program("scripts/gpu_votes.py", monkeypatch)
    take, asked = votes.Step.votes, []

    def other_fakes(step, *words):
        asked.append(words)
        if len(asked) > 1:
            step.fakes = replace(step.fakes, images_BCHW=1 - step.fakes.images_BCHW)
        return take(step, *words)

    monkeypatch.setattr(votes.Step, "votes", other_fakes)
    assert (
        votes.main(["--device", "cpu", "--source", "shapes", "--teachers", "2", "--steps-before", "1"]) == 1
    )
    assert said(capsys.readouterr().out)["agree"] < 0.999


def test_training_says_what_it_took(tmp_path: Path, monkeypatch, capsys) -> None:
    out = tmp_path / "training.json"
    words = ["shapes", "--recipe", "shapes-quick", "--device", "cpu", "--teachers", "40", "--steps", "3",
             "--samples", "50", "--out", str(out)]  # fmt: skip
    assert program("scripts/gpu_training.py", monkeypatch).main(words) == 0
    found = said(capsys.readouterr().out)
    assert found == json.loads(out.read_text())
    assert (found["steps"], found["finished"], found["failed_teachers"]) == (3, False, 0)
    assert found["seconds"]["foreseen"] > found["seconds"]["training"] > found["seconds"]["first_step"] > 0
    assert found["memory"]["resident_gib"] > 0 and found["epsilon_spent"] > 0


def test_a_cpu_makes_nobody_wait(monkeypatch, capsys) -> None:
    words = [
        "--device",
        "cpu",
        "--source",
        "shapes",
        "--recipe",
        "shapes-quick",
        "--teachers",
        "20",
        "--steps",
        "1",
    ]
    assert program("scripts/gpu_syncs.py", monkeypatch).main(words) == 0
    found = said(capsys.readouterr().out)
    assert (found["waits_a_step"], found["where"], found["steps"]) == (None, {}, 1)


def check(out: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "OUT": str(out),
        "PYTHON": sys.executable,
        "CUDA_VISIBLE_DEVICES": "",
        **settings,
    }
    return subprocess.run(
        ["bash", str(CHECK)], env=environment, capture_output=True, text=True, timeout=280, check=False
    )


def test_without_a_gpu_it_says_so_in_one_line(tmp_path: Path) -> None:
    answer = check(tmp_path / "gpu")
    assert answer.returncode == 2
    assert answer.stderr.startswith("no CUDA: ") and answer.stderr.count("\n") == 1
    assert not (tmp_path / "gpu").exists()


def test_parts_fit_into_eight_minutes() -> None:
    """Whatever the parts are given, the whole ends by its own limit."""
    assert "LIMIT=${GPU_CHECK_SECONDS:-480}" in CHECK.read_text()


@pytest.mark.slow
def test_the_whole_check_on_a_cpu(tmp_path: Path) -> None:
    answer = check(tmp_path, GPU_CHECK_DEVICE="cpu", GPU_CHECK_TINY="1")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for name in ("syncs", "votes", "mnist-paper", "mnist-quick", "peak", "teachers"):
        assert json.loads((tmp_path / f"{name}.json").read_text())
    assert "whole: " in (tmp_path / "summary.txt").read_text()


def test_no_time_leaves_parts_out_and_says_so(tmp_path: Path) -> None:
    answer = check(tmp_path, GPU_CHECK_DEVICE="cpu", GPU_CHECK_TINY="1", GPU_CHECK_SECONDS="6")
    assert answer.returncode == 1
    assert "mnist-paper: exit left out: no time" in answer.stdout


def test_a_device_that_is_not_there_is_an_error(monkeypatch) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises((RuntimeError, AssertionError)):
        program("scripts/gpu_votes.py", monkeypatch).main(["--source", "shapes", "--teachers", "2"])
