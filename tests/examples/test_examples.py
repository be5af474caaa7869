"""Every example runs, as a program of its own and in seconds, and says what its reader came for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import train

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))
MOST_LINES = 60
LONGER = {"own_baseline.py": 80}
"""A whole method needs more."""
CHANCE = 0.25


def run(name: str, *words: str) -> str:
    """What an example prints; warnings are errors, as in the tests."""
    answer = subprocess.run(
        [sys.executable, "-W", "error", str(REPOSITORY / "examples" / name), *words],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "OMP_NUM_THREADS": "1"},
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    return answer.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_is_short_enough_to_be_read_at_once(path: Path) -> None:
    assert len(path.read_text().splitlines()) < LONGER.get(path.name, MOST_LINES)


def test_every_example_is_run_here() -> None:
    text = Path(__file__).read_text()
    assert [path.name for path in EXAMPLES if f'run("{path.name}"' not in text] == []


def test_quickstart_learns_and_keeps_its_budget() -> None:
    printed = run("quickstart_python.py")
    promised, spent = (
        float(number) for number in re.findall(r"epsilon ([\d.]+).*spent ([\d.]+)", printed)[0]
    )
    assert 0 < spent <= promised
    accuracy = float(re.findall(r"gets ([\d.]+)% right", printed)[0]) / 100
    assert accuracy > CHANCE  # of four classes; five standard deviations of 1000 test images are 0.07


def test_own_folder_makes_a_run_that_can_be_shared() -> None:
    printed = run("own_folder.py")
    assert "drew 8 images of class disc" in printed
    assert "never to share" in printed


def test_a_release_is_loaded_without_this_package(tmp_path: Path) -> None:
    train(tmp_path / "run")
    printed = run("load_release.py", str(tmp_path / "run" / "release"))
    assert "images of shape (1, 8, 8), of the classes a, b" in printed
    assert "drew 8 images of class a" in printed
    assert "with datalens: False" in printed


def test_plan_agrees_with_the_paper_and_with_exact_accounting() -> None:
    """The paper's settings: 86 steps by its own conversion, 149 by the exact curve."""
    steps = dict(re.findall(r"^(\S+) +(\d+) steps with", run("plan_a_budget.py"), re.MULTILINE))
    assert (steps["exact"], steps["rdp-classic"]) == ("149", "86")


def test_own_mechanism_releases_until_the_budget_is_spent() -> None:
    first, second, last = run("own_mechanism.py").splitlines()
    assert first.startswith("2024 [[") and "would bring epsilon to" in second
    assert 0 < float(re.findall(r"epsilon ([\d.]+) spent", last)[0]) <= 1


def test_own_baseline_is_a_method_like_any_other(tmp_path: Path) -> None:
    made, words = (
        str(tmp_path / "run"),
        ["train", "shapes", "--method", "mean-images", "--epsilon", "1", "--out"],
    )
    assert "mean-images: epsilon 0.99" in run("own_baseline.py", *words, made)
    drawn = run("own_baseline.py", "sample", made, "-n", "100", "--out", str(tmp_path / "pictures"))
    assert "100 images of 4 classes" in drawn


def test_picture_of_samples_draws_every_class() -> None:
    assert "4 images of each of 4 classes" in run("picture_of_samples.py")
