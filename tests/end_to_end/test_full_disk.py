"""A disk that is full at any file: one line, exit status 2, nothing broken under a final name, all of it goes on.

Whoever may mount small disks meets a real one. Everybody else meets a limit on the size of files (RLIMIT_FSIZE),
under which a write fails half-way as on a full disk. It falls when a file of a given name is opened for writing, so
that each file of a run is the one that does not fit in one of the cases.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import TOML

from datalens import DataLens
from datalens.audit.verify import verify_run
from datalens.data import load
from datalens.privacy.dataset_budget import create_dataset_budget, open_dataset_budget
from datalens.privacy.events import GaussianEvent
from datalens.privacy.ledger import Ledger
from datalens.training.checkpoint import latest_checkpoint
from datalens.training.directions import read_directions

SOURCES = Path(__file__).parents[2] / "src"
SETTINGS = TOML.replace("num_steps = 3\n", "num_steps = 4\nnoise_stddev = 10.0\n")
CALLS = """
import contextlib, io, json, os, resource, signal, sys
import torch
from datalens.cli.main import main
torch.set_num_threads(1)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
full_at = None

def allow(most):
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

def watch(event, args):
    if event != "open" or full_at is None or not isinstance(args[0], (str, os.PathLike)):
        return
    path = os.fspath(args[0])
    if args[2] & (os.O_WRONLY | os.O_RDWR) and os.path.basename(path).lstrip(".").startswith(full_at):
        allow((os.stat(path).st_size if os.path.exists(path) else 0) + 40)

sys.addaudithook(watch)
answers = []
for limit, words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    if isinstance(limit, int):
        allow(limit)
    else:
        full_at = limit
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    full_at = None
    allow(resource.RLIM_INFINITY)
    answers.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""
Call = tuple[int | str | None, Sequence[object]]
"""Where the disk is full (a file by its name, or every file beyond a size, or nowhere), and a command."""


def ask(calls: Sequence[Call]) -> list[tuple[int, str, str]]:
    """Commands one after the other in a process of their own."""
    process = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", CALLS],
        input=json.dumps([(limit, [str(word) for word in words]) for limit, words in calls]),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1"},
        timeout=250,
    )
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return [tuple(answer) for answer in json.loads(process.stdout)]


class Place:
    """Where the runs of one test lie, and the words that make and resume them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.settings, self.budget = folder / "own.npz", folder / "s.toml", folder / "own.budget"
        rng = np.random.default_rng(0)
        np.savez(self.data, x=rng.integers(0, 256, (60, 8, 8), dtype=np.uint8), y=np.arange(60) % 2)
        self.settings.write_text(SETTINGS)
        create_dataset_budget(self.budget, "ours", 10_000.0, 1e-5)

    def train(self, run: Path) -> list[object]:
        how = ("--config", self.settings, "--epsilon", 50, "--num-records", 60, "--classes", 2, "--quiet")
        return ["train", self.data, "--out", run, *how, "--budget-file", self.budget]

    def resume(self, run: Path) -> list[object]:
        return ["train", self.data, "--resume", run, "--classes", 2, "--quiet"]


def complains_in_one_line(answer: tuple[int, str, str]) -> None:
    status, out, err = answer
    assert status == 2, (out, err)
    lines = [line for line in err.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1, err
    assert lines[0].startswith("error: ")
    assert any(reason in lines[0] for reason in ("File too large", "No space left"))


def charged(run: Path) -> list[str]:
    """Hashes of what the ledger has charged, after checking that every file under a final name is whole."""
    assert not [path for path in run.rglob("*") if path.name.endswith(".tmp")]
    for path in run.rglob("*.json"):
        json.loads(path.read_bytes())
    release = run / "release"
    if not (release / "ledger.jsonl").exists():
        return []
    ledger = Ledger.read(release / "ledger.jsonl")
    assert not ledger.was_cut_off
    lines = [line.hash for line in ledger.lines]
    if (release / "directions.bin").exists():
        records = read_directions(release / "directions.bin")
        assert {record.line_hash for record in records} <= set(lines)
    if (run / "private" / "checkpoints").exists():
        newest = latest_checkpoint(run / "private" / "checkpoints")
        assert newest is None or not newest.passed_over
    if (release / "generator.safetensors").exists():
        assert DataLens.load(run).sample(1)[0].shape == (1, 1, 8, 8)
    return lines


def goes_on(place: Place, run: Path, before: list[str]) -> Call:
    """The command that is right where a run failed with so much charged: resumed, or begun as if nothing were."""
    assert run.exists() is bool(before), "a folder without a ledger is left behind"
    return (None, place.resume(run) if before else place.train(run))


def is_whole(run: Path, before: list[str]) -> None:
    """The run went to its end, and what was charged before still is."""
    ledger = Ledger.read(run / "release" / "ledger.jsonl")
    after = [line.hash for line in ledger.lines]
    assert after[: len(before)] == before
    certificate = json.loads((run / "release" / "certificate.json").read_bytes())
    assert certificate["ledger"]["head"] == ledger.head[1]
    assert sum(event.count for event in ledger.events()) == 4
    assert 3 <= len(read_directions(run / "release" / "directions.bin")) <= 4
    assert DataLens.load(run).sample(1)[0].shape == (1, 1, 8, 8)


FILES = (
    "secrets.json", "partition.safetensors", "ledger.jsonl", "config.json", "directions.bin", "diagnostics.jsonl",
    "state.safetensors", "teachers-00000000-00000009.safetensors", "meta.json", "generator.safetensors",
    "load_generator.py", "certificate.json", "README.md", 2500,
)  # fmt: skip
"""Every file of a run, and a size that the ledger reaches after some steps."""


def test_r17_every_file_of_a_run_may_be_the_one_that_does_not_fit(tmp_path: Path) -> None:
    place = Place(tmp_path)
    runs = [tmp_path / f"run-{number}" for number in range(len(FILES))]
    before = []
    first = ask([(full_at, place.train(run)) for full_at, run in zip(FILES, runs, strict=True)])
    for run, answer in zip(runs, first, strict=True):
        complains_in_one_line(answer)
        before.append(charged(run))
    assert [bool(lines) for lines in before] == [False] * 4 + [True] * 10
    again = ask([(40, place.resume(run)) for run in runs[4:]])  # the disk is as full as it was
    for number, answer in enumerate(again, 4):
        complains_in_one_line(answer)
        assert charged(runs[number])[: len(before[number])] == before[number]
        before[number] = charged(runs[number])
    last = ask([goes_on(place, run, lines) for run, lines in zip(runs, before, strict=True)])
    for run, lines, (status, _, err) in zip(runs, before, last, strict=True):
        assert status == 0, err
        is_whole(run, lines)
    found = verify_run(runs[FILES.index("meta.json")], replay=True)
    assert found.agrees, found.differences
    names = {path.name for path in runs[0].rglob("*") if path.is_file()}
    names.remove("report.html")  # drawn last, from the others: without room for it there is a warning
    assert names == {name for name in FILES if isinstance(name, str)}, "a new file: add it above"
    _all_is_in_the_budget(place, runs)


def _all_is_in_the_budget(place: Place, runs: list[Path]) -> None:
    """The data set's budget holds at least what the ledgers of all runs hold."""
    spent = Ledger.read(place.budget)
    assert not spent.was_cut_off
    mu = sum(event.mu**2 * event.count for event in spent.events())
    own = [event for run in runs for event in Ledger.read(run / "release" / "ledger.jsonl").events()]
    assert mu >= sum(event.mu**2 * event.count for event in own) * (1 - 1e-9)


def test_r17_a_budget_file_that_may_not_grow_stops_the_run_and_stays_whole(tmp_path: Path) -> None:
    place, run = Place(tmp_path), tmp_path / "run"
    budget = open_dataset_budget(place.budget)
    while place.budget.stat().st_size < 30_000:  # longer than any file of a run
        budget.budget.charge(GaussianEvent(1e-6, 1.0, 1))
    budget.close()
    lines = len(Ledger.read(place.budget).lines)
    [answer] = ask([(place.budget.stat().st_size + 900, place.train(run))])
    complains_in_one_line(answer)
    before = charged(run)
    assert len(Ledger.read(place.budget).lines) > lines
    [(status, _, err)] = ask([goes_on(place, run, before)])
    assert status == 0, err
    is_whole(run, before)
    _all_is_in_the_budget(place, [run])


def test_other_commands_that_write_leave_nothing_broken_either(tmp_path: Path) -> None:
    place, run = Place(tmp_path), tmp_path / "run"
    np.savez(tmp_path / "test.npz", x_test=load(place.data, classes=2).images, y_test=np.arange(60) % 2)
    candidates = tmp_path / "candidates.toml"
    candidates.write_text("[[candidate]]\nvoting = {top_k = 5}\n[[candidate]]\nvoting = {top_k = 6}\n")
    tuned = tmp_path / "tuned.toml"
    tuned.write_text(SETTINGS.replace("noise_stddev = 10.0\n", ""))
    [(status, _, err)] = ask([(None, place.train(run))])
    assert status == 0, err
    fast = ("--classifier", "logistic", "-n", 30, "--epochs", 1, "--quiet")
    tune = [
        "tune",
        place.data,
        "--candidates",
        candidates,
        "--config",
        tuned,
        "--epsilon",
        50,
        "--num-records",
        60,
    ]
    calls: list[Call] = [
        (300, ["sample", run, "-n", 50, "--out", tmp_path / "s.npz"]),
        (50, ["sample", run, "-n", 50, "--out", tmp_path / "pictures"]),
        (50, ["sample", run, "-n", 50, "--out", tmp_path / "like-mnist", "--format", "idx"]),
        *(
            [
                (300, ["sample", run, "-n", 50, "--out", tmp_path / name, "--format", form])
                for name, form in (("s.parquet", "parquet"), ("rows", "datasets"))
            ]
            if find_spec("pyarrow")
            else []
        ),
        (100, ["sample", run, "-n", 1, "--out", tmp_path / "t.npz", "--json", tmp_path / "t.json"]),
        (100, ["evaluate", run, "--data", tmp_path / "test.npz", *fast]),
        (100, ["verify", run, "--json", tmp_path / "v.json"]),
        (100, ["budget", "create", tmp_path / "b.budget", "--data-name", "a", "--epsilon", 1]),
        ("try.json", [*tune, "--out", tmp_path / "tuned", "--classes", 2, *fast]),
    ]
    kept = sorted(str(path) for path in tmp_path.rglob("*"))
    for answer in ask(calls):
        complains_in_one_line(answer)
    made = set(map(str, tmp_path.rglob("*"))) - set(kept)
    assert not [path for path in made if path.endswith(".tmp")]
    assert {Path(path).relative_to(tmp_path).parts[0] for path in made} <= {"tuned", "run"}


# -- a real small disk ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of so many bytes, mounted on ``folder``."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        refused = subprocess.run(command, capture_output=True, text=True).stderr.strip()
    except OSError as error:
        refused = str(error)
    if refused:
        pytest.skip(
            f"no small disk can be mounted here ({refused:.80}); file sizes are limited above instead"
        )
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_r17_a_full_small_disk_leaves_no_broken_file_and_the_run_goes_on(tmp_path: Path) -> None:
    """On 2 MB, with ever less of it left."""
    with small_disk(tmp_path / "disk", "2m") as disk:
        place = Place(disk)
        for number, left in enumerate((32, 96)):
            run = disk / f"run-{number}"
            free = shutil.disk_usage(disk).free
            (disk / "ballast").write_bytes(b"x" * (free - left * 1024))
            answers: list[Any] = ask([(None, place.train(run))])
            complains_in_one_line(answers[0])
            before = charged(run)
            (disk / "ballast").unlink()
            [(status, _, err)] = ask([goes_on(place, run, before)])
            assert status == 0, err
            is_whole(run, before)
            shutil.rmtree(run)
