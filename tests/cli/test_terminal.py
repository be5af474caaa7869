"""What a training shows: on a terminal, on a poor one, without colours, through a pipe; and Ctrl-C on a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_baselines import MERF_TOML

from datalens.cli.progress import Pace, epsilon_text
from datalens.training.progress import Progress

SOURCES = Path(__file__).resolve().parents[2] / "src"
IN_TERMINAL = """
import os, sys
os.close(os.open(os.ttyname(0), os.O_RDWR))  # a session without a terminal takes this one for its own
from datalens.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")
ESCAPE = "\x1b"


def on_terminal(words: list[str], interrupt_after: str | None = None, **env: str) -> tuple[int, str]:
    """Exit status and everything that a command shows on a terminal of its own, Ctrl-C after a text."""
    ours, theirs = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-c", IN_TERMINAL, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**clean, "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1", "COLUMNS": "120", **env},
    )
    os.close(theirs)
    shown, since = b"", time.monotonic()
    try:
        while time.monotonic() < since + 280:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other side is closed
                part = b""
            if not part:
                break
            shown += part
            if interrupt_after is not None and re.search(interrupt_after, shown.decode(errors="replace")):
                os.write(ours, b"\x03")
                interrupt_after = None
        return process.wait(20), shown.decode()
    finally:
        os.close(ours)
        process.kill()
        process.wait()


def test_a_terminal_shows_steps_epsilon_pace_and_colours(tmp_path: Path, quick: tuple[str, ...]) -> None:
    status, shown = on_terminal(
        ["train", "shapes", "--out", str(tmp_path / "run"), *quick], TERM="xterm-256color"
    )
    assert status == 0, shown
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "3/3" in plain and re.search(r"epsilon [0-9.]+ spent, 0 left, [0-9.]+ (steps/s|s/step)", plain), (
        plain
    )
    assert COLOUR.search(shown)


def test_no_color_is_obeyed_on_a_terminal(tmp_path: Path, quick: tuple[str, ...]) -> None:
    words = ["train", "shapes", "--out", str(tmp_path / "run"), *quick]
    status, shown = on_terminal(words, TERM="xterm-256color", NO_COLOR="1", FORCE_COLOR="1")
    assert status == 0 and "3/3" in shown
    assert not COLOUR.search(shown)


def test_a_poor_terminal_gets_lines(tmp_path: Path, quick: tuple[str, ...]) -> None:
    status, shown = on_terminal(["train", "shapes", "--out", str(tmp_path / "run"), *quick], TERM="dumb")
    assert status == 0 and ESCAPE not in shown
    assert re.search(r"step 3 of 3: epsilon [0-9.]+ spent, 0 left, [0-9.]+", shown), shown


def test_ctrl_c_ends_the_step_saves_and_says_how_to_resume(tmp_path: Path, quick: tuple[str, ...]) -> None:
    run = tmp_path / "run"
    words = ["train", "shapes", "--out", str(run), *quick]
    words[words.index("--num-steps") + 1] = "4000"
    status, shown = on_terminal(words, r"epsilon [0-9.]+ spent", TERM="xterm-256color")
    assert status == 130, shown
    assert "stopping after this step; once more to stop at once" in shown
    assert f"stopped early and saved; resume with: datalens train shapes --resume {run}" in shown
    assert (run / "release" / "certificate.json").is_file() and any(
        (run / "private" / "checkpoints").iterdir()
    )


@pytest.mark.parametrize("force", ["", "1"])
def test_a_pipe_gets_neither_progress_nor_colours(
    call, tmp_path: Path, quick: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, force: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", force)
    answer = call("train", "shapes", "--out", tmp_path / "run", *quick)
    assert answer.status == 0 and answer.err == "" and ESCAPE not in answer.out


TRAININGS = {
    "datalens": ("train", ()),
    "dp-merf": ("train", ("--method", "dp-merf", "--epsilon", "2")),
    "dpsgd": (
        "dpsgd",
        ("--model", "linear", "--num-steps", "3", "--batch-size", "400", "--epsilon", "2"),
    ),
}


@pytest.fixture(params=list(TRAININGS))
def words(request: pytest.FixtureRequest, quick: tuple[str, ...], tmp_path: Path) -> tuple[str, ...]:
    """A short training by each way that there is."""
    verb, options = TRAININGS[request.param]
    if request.param == "datalens":
        options = quick
    if request.param == "dp-merf":
        (tmp_path / "merf.toml").write_text(MERF_TOML)
        options = (*options, "--config", str(tmp_path / "merf.toml"))
    return (verb, "shapes", "--out", str(tmp_path / "run"), *options)


def test_verbose_says_settings_place_and_progress(call, words: tuple[str, ...]) -> None:
    answer = call(*words, "--verbose")
    assert answer.status == 0, answer.err
    assert re.search(r"step 3 of 3: epsilon [0-9.]+ spent, 0 left, [0-9.]+ ", answer.err), answer.err
    assert re.search(r"privacy\.epsilon = [0-9.]+", answer.out)
    assert re.search(r"runs on datalens .*torch .*threads [0-9]+", answer.out)


def test_quiet_says_nothing_but_warnings(call, words: tuple[str, ...]) -> None:
    answer = call(*words, "--quiet")
    assert (answer.status, answer.out) == (0, "")
    assert all(line.startswith("warning: ") for line in answer.err.splitlines())


def test_quiet_and_verbose_contradict_each_other(call, words: tuple[str, ...], tmp_path: Path) -> None:
    assert "contradict each other; give one of them" in call(*words, "-q", "-v").complaint
    assert not (tmp_path / "run").exists()


def test_the_pace_is_that_of_the_last_steps() -> None:
    times = iter([0.0, 100.0, *(100.0 + 0.5 * step for step in range(1, 60))])
    pace = Pace(lambda: next(times))
    assert pace.in_words(10) == ""
    pace.note(0)
    assert pace.per_second is None
    pace.note(1)
    assert pace.in_words(3) == "100 s/step, 0:05:00 left"
    for step in range(2, 61):
        pace.note(step)
    assert pace.in_words(100) == "2 steps/s, 0:00:50 left"
    assert pace.in_words(0) == "2 steps/s"


@pytest.mark.parametrize(
    ("spent", "said"),
    [
        (0.25, "epsilon 0.25 spent, 0.75 left"),
        (1.0000001, "epsilon 1 spent, 0 left"),
        (1 - 1e-9, "epsilon 1 spent, 0 left"),
    ],
)
def test_epsilon_is_what_is_spent_and_left(spent: float, said: str) -> None:
    assert epsilon_text(Progress(1, 2, spent, 1.0)) == said
    assert epsilon_text(Progress(1, 2, float("inf"), float("inf"))) == "no guarantee"


def test_tensorboard_without_its_package_is_refused_before_anything_is_written(
    call, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert "pip install 'datalens-dp[tensorboard]'" in call(*words, "--tensorboard", "-q").complaint
    assert not (tmp_path / "run").exists()
