"""A training that is interrupted at once says what is left of it."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path

import pytest
from small_baselines import MERF_TOML

from datalens.cli.progress import TrainingProgress

MERF = MERF_TOML.replace("num_steps = 3", "num_steps = 6")


@pytest.fixture(params=["datalens", "dp-merf", "dpsgd"])
def words(request: pytest.FixtureRequest, quick: tuple[str, ...], tmp_path: Path) -> tuple[str, ...]:
    """A command with the options of a short training, by each way that there is."""
    if request.param == "datalens":
        return "train", *quick
    if request.param == "dpsgd":
        return "dpsgd", "--model", "linear", "--num-steps", "3", "--batch-size", "50", "--epsilon", "5"
    (tmp_path / "merf.toml").write_text(MERF)
    return "train", "--method", "dp-merf", "--epsilon", "2", "--config", str(tmp_path / "merf.toml")


def test_a_second_signal_says_how_to_go_on(
    call, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: TrainingProgress, progress: object) -> None:
        raise KeyboardInterrupt

    run = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(TrainingProgress, "tell", interrupt)
        answer = call(words[0], "shapes", "--image-size", 12, "--out", run, *words[1:])
    assert answer.status == 130 and "Traceback" not in answer.err
    last = answer.err.strip().splitlines()[-1]
    assert (
        last == f"error: interrupted; resume with: datalens {words[0]} shapes --resume {run} --image-size 12"
    )
    assert call(*shlex.split(last.partition("resume with: ")[2])[1:]).status == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_before_anything_was_kept_says_so(
    call, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def interrupt(self: TrainingProgress) -> TrainingProgress:
        signal.raise_signal(number)
        signal.raise_signal(number)
        raise AssertionError("the second one was not heard")

    monkeypatch.setattr(TrainingProgress, "__enter__", interrupt)
    answer = call(words[0], "shapes", "--image-size", 12, "--out", tmp_path / "run", *words[1:])
    assert answer.status == 128 + number
    assert answer.err.strip().splitlines()[-1] == "error: interrupted; nothing was kept"


def test_a_quickstart_that_is_interrupted_says_how_its_training_goes_on(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: TrainingProgress, progress: object) -> None:
        raise KeyboardInterrupt

    run = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(TrainingProgress, "tell", interrupt)
        answer = call("quickstart", "shapes", "--out", run)
    assert answer.status == 130
    last = answer.err.strip().splitlines()[-1]
    assert last == f"error: interrupted; resume with: datalens train shapes --resume {run}"
    assert call(*shlex.split(last.partition("resume with: ")[2])[1:]).status == 0
