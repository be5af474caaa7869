"""No command writes anywhere but to the files and folders that it was given, and to this user's cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_baselines import MERF_TOML
from small_runs import TOML

SOURCES = Path(__file__).parents[2] / "src"
CALLS = """
import contextlib, io, json, os, sys, tempfile
import torch
from pathlib import Path
from datalens.cli.main import main

torch.set_num_threads(1)
given, calls = json.load(sys.stdin)
CHANGING = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
outside, watching = [], True

def watch(event, args):
    if not watching or event != "open" and event not in CHANGING:
        return
    if event == "open":
        flags = args[2]
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        paths = args[:1] if writes else ()
    else:
        paths = args[:2]
    below = args[1] if event in ("os.remove", "os.rmdir") else -1  # an open folder that the path is relative to
    base = os.readlink(f"/proc/self/fd/{below}") if below >= 0 else ""
    for path in paths:
        if isinstance(path, (str, bytes, os.PathLike)):
            place = os.path.abspath(os.path.join(base, os.fsdecode(path)))
            if place != os.devnull and not any(place == one or place.startswith(one + os.sep) for one in given):
                outside.append([event, place])

sys.addaudithook(watch)
answers = []
for words in calls:
    out, err = io.StringIO(), io.StringIO()
    outside.clear()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    answers.append([words[0], status, err.getvalue(), sorted({tuple(one) for one in outside})])
watching = False
print(json.dumps(answers))
"""
OF_PYTORCH = "{}/torchinductor_"
"""An empty folder that PyTorch makes for its compiler where it takes temporary files to be, compiled or not."""
NAMES = ("home", "tmp", "cwd", "config", "share", "state", "cache")


def ask(places: dict[str, Path], given: list[Path], calls: list[list[object]]) -> list[list[object]]:
    """Commands one after the other in a process whose surroundings are all empty and watched."""
    allowed = [str(path) for path in given] + [str(places["cache"] / "datalens")]
    words = [[str(word) for word in call] for call in calls]
    named = {"HOME": "home", "TMPDIR": "tmp", "XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config"}
    named |= {"XDG_DATA_HOME": "share", "XDG_STATE_HOME": "state"}
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    process = subprocess.run(
        [sys.executable, "-B", "-c", CALLS],
        input=json.dumps([allowed, words]),
        capture_output=True,
        text=True,
        cwd=places["cwd"],
        env={
            **kept,
            **{name: str(places[place]) for name, place in named.items()},
            "PYTHONPATH": str(SOURCES),
            "OMP_NUM_THREADS": "1",
        },
        timeout=280,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    made = {name: tmp_path / "around" / name for name in NAMES}
    for path in made.values():
        path.mkdir(parents=True)
    return made


def check(places: dict[str, Path], answers: list[list[object]]) -> None:
    for command, status, err, outside in answers:
        assert status == 0, (command, err)
        made = [what for what in outside if not what[-1].startswith(OF_PYTORCH.format(places["tmp"]))]
        assert made == [], command
    left = {name: sorted(str(p.relative_to(path)) for p in path.rglob("*")) for name, path in places.items()}
    cache = {name for name in left.pop("cache") if not name.startswith("datalens")}
    assert cache == set()
    left["tmp"] = [name for name in left["tmp"] if not name.startswith("torchinductor_")]
    assert left == {name: [] for name in left}


def own_data(given: Path) -> list[object]:
    """Sixty small images in a file, and what a training of them takes a second with."""
    rng = np.random.default_rng(0)
    np.savez(given / "own.npz", x=rng.integers(0, 256, (60, 8, 8), dtype=np.uint8), y=np.arange(60) % 2)
    (given / "s.toml").write_text(TOML)
    how = ("--epsilon", 50, "--num-records", 60, "--classes", 2)
    return [given / "own.npz", "--config", given / "s.toml", *how]


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """Where what a command reads lies."""
    (tmp_path / "given").mkdir()
    return tmp_path / "given"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Where it is told to write."""
    (tmp_path / "made").mkdir()
    return tmp_path / "made"


def test_commands_about_a_run(given: Path, made: Path, places: dict[str, Path]) -> None:
    own, run = own_data(given), made / "run"
    before = {path: path.read_bytes() for path in given.iterdir()}
    calls: list[list[object]] = [
        [
            "budget",
            "create",
            made / "own.budget",
            "--data-name",
            "ours",
            "--epsilon",
            1000,
            "--delta",
            "1e-5",
        ],
        ["train", *own, "--out", run, "--budget-file", made / "own.budget"],
        ["train", own[0], "--resume", run, "--classes", 2],
        ["sample", run, "-n", 6, "--out", made / "s.npz"],
        ["export", run, "--to", "imagefolder", "-n", 6, "--out", made / "hub"],
        ["report", run, "--replay"],
        ["list", made],
        ["verify", run, "--replay"],
    ]
    check(places, ask(places, [made], calls))
    assert {path: path.read_bytes() for path in given.iterdir()} == before


def test_commands_that_score_and_compare(given: Path, made: Path, places: dict[str, Path]) -> None:
    (given / "merf.toml").write_text(MERF_TOML)
    merf, sgd = made / "merf", made / "sgd"
    shapes = ["--delta", "1e-4", "--epsilon", 2]
    score = ["--data", "shapes", "-n", 40]
    calls: list[list[object]] = [
        ["train", "shapes", "--method", "dp-merf", "--config", given / "merf.toml", *shapes, "--out", merf],
        [
            "dpsgd",
            "shapes",
            "--model",
            "linear",
            "--num-steps",
            2,
            "--batch-size",
            400,
            *shapes,
            "--out",
            sgd,
        ],
        ["evaluate", merf, *score, "--classifier", "logistic", "--epochs", 1],
        ["evaluate", merf, *score, "--metrics", "fid"],
        ["evaluate", sgd, "--data", "shapes"],
        ["compare", merf, sgd, "--out", made / "compared.html"],
        ["verify", sgd],
    ]
    check(places, ask(places, [made], calls))


@pytest.mark.slow
def test_an_audit(given: Path, made: Path, places: dict[str, Path]) -> None:
    calls: list[list[object]] = [
        ["train", *own_data(given), "--out", made / "run"],
        ["audit", made / "run", "--trials", 2000, "--json", made / "audit.json"],
    ]
    # its exercise with a budget keeps a ledger of no data among temporary files, and nothing may be left of it
    check(places, ask(places, [made, places["tmp"]], calls))
