"""Death at every thing that a training does to the disk: no release unpaid for, and the run goes on to the same end.

With an insecure seed a training that went on is, bit for bit, the one that passed over the steps whose charge was on
disk and whose outcome was not.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import mortal_runs
import pytest
import torch
from mortal_runs import CASES, KILLED, STEPWISE, VOTES

from datalens.audit.verify import verify_run
from datalens.moments.measuring import STATES
from datalens.privacy.ledger import Ledger
from datalens.training.checkpoint import latest_checkpoint
from datalens.training.directions import read_directions
from datalens.training.facts import read_facts
from datalens.training.run_folder import RunFolder
from datalens.training.terms import next_step
from datalens.training.warm_file import read_tables

SOURCES = Path(__file__).parents[2] / "src"
DELTA = {case: 1e-5 if case in VOTES else 1e-3 for case in CASES}


class Server:
    """Trainings one after the other, each in a fork that may die."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.errors = folder, (folder / "errors").open("w+")
        program = str(Path(mortal_runs.__file__))
        paths = os.pathsep.join([str(Path(program).parent), str(SOURCES)])
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore::datalens.errors.PrivacyWarning", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, **one_thread, "PYTHONPATH": paths},
        )

    def train(self, case: str, root: Path, last: int | None = None) -> int:
        """Begin or go on; the exit status."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([case, str(root), last, str(self.folder / "count")]) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def count(self) -> int:
        """Things that the last training which was not killed did to the disk."""
        return int((self.folder / "count").read_text())

    def said(self) -> str:
        """All that went to standard error."""
        return (self.folder / "errors").read_text()

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()
        self.errors.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("server"))
    yield made
    made.close()


@cache
def without(case: str, lost: tuple[int, ...], num_tables: int | None) -> dict[str, torch.Tensor]:
    """What is learned where some steps are passed over, and of a warm start's tables only so many are left."""
    run = mortal_runs.begun(case, None)
    try:
        if num_tables is not None:
            release = run.warm.release

            def some(*words: Any) -> None:
                release(*words)
                run.warm.tables = dict(list(run.warm.tables.items())[:num_tables])

            run.warm.release = some
        run.run(stop=mortal_runs.skipping(run, set(lost)))
        network = run.student.finished_generator() if case in VOTES else _learned(run)
        return {name: value.clone() for name, value in network.state_dict().items()}
    finally:
        run.close()


def _learned(run: Any) -> torch.nn.Module:
    learner = run.learner
    return learner.generator() if hasattr(learner, "generator") else learner.classifier()


def lost_steps(case: str, root: Path, scratch: Path) -> set[int]:
    """Steps that are charged on disk, and whose outcome is not there."""
    if not RunFolder.holds_run(root):
        return set()
    folder = RunFolder.open(root)
    copy = scratch / "ledger.jsonl"
    shutil.copy(folder.ledger, copy)
    with Ledger.open(copy) as ledger:
        charged = next_step(ledger.lines)
    copy.unlink()
    if case in VOTES:
        there = read_directions(folder.directions) if folder.directions.is_file() else []
        return set(range(charged)) - {record.step for record in there}
    checkpoint = latest_checkpoint(folder.checkpoints)
    return set(range(0 if checkpoint is None else checkpoint.step, charged))


def tables_left(case: str, root: Path) -> int | None:
    """How many tables of a warm start are there, where one was charged and lost; else None."""
    if case != "warm-start":
        return None
    folder = RunFolder.open(root)
    ledger = Ledger.read(folder.ledger)
    tables = read_tables(folder.warm_start, read_facts(folder).measures, ledger)
    whats = [line.body["note"].get("what") for line in ledger.lines if line.kind == "release"]
    assert [what for what in whats if what is not None] == list(STATES)[: len(whats) - whats.count(None)]
    return None if len(tables) == len(STATES) else len(tables)


def charged_lines(root: Path) -> list[str]:
    """What the ledger holds, oldest first."""
    ledger = RunFolder.open(root).ledger if RunFolder.holds_run(root) else None
    return [] if ledger is None else [line.hash for line in Ledger.read(ledger).lines]


def check_shared_files(root: Path) -> None:
    """Whatever has its final name is whole, and every direction is paid for."""
    for path in root.rglob("*.json"):
        if not any(part.startswith(".") for part in path.relative_to(root).parts):
            json.loads(path.read_bytes())
    if RunFolder.holds_run(root) and (directions := RunFolder.open(root).directions).is_file():
        paid = {
            line.hash for line in Ledger.read(RunFolder.open(root).ledger).lines if line.kind == "release"
        }
        assert {record.line_hash for record in read_directions(directions)} <= paid


def survives(server: Server, case: str, root: Path, deaths: list[int], scratch: Path) -> set[int]:
    """A training that dies so often and then goes on to its end; the steps that were lost."""
    lost: set[int] = set()
    seen: list[str] = []
    for last in deaths:
        status = server.train(case, root, last)
        assert status in (KILLED, 0), server.said()
        check_shared_files(root)
        lines = charged_lines(root)
        assert lines[: len(seen)] == seen, "a line of the ledger is gone"
        seen = lines
        lost |= lost_steps(case, root, scratch)
        if status == 0:
            break
    has_no_checkpoint = (
        RunFolder.holds_run(root) and latest_checkpoint(RunFolder.open(root).checkpoints) is None
    )
    status = server.train(case, root)
    if case in STEPWISE and lost and has_no_checkpoint:
        assert status == 2
        assert "ended before its first checkpoint" in server.said().splitlines()[-1]
        return lost
    assert status == 0, server.said()
    assert charged_lines(root)[: len(seen)] == seen
    is_sound(case, root)
    got, expected = (
        mortal_runs.network_of(mortal_runs.model_of(case).load(root)),
        without(case, tuple(sorted(lost)), tables_left(case, root)),
    )
    assert got.keys() == expected.keys()
    differing = [name for name in got if not torch.equal(got[name], expected[name])]
    assert differing == [], (lost, deaths)
    return lost


def is_sound(case: str, root: Path) -> None:
    """The finished run verifies, and says what its ledger says."""
    found = verify_run(root, replay=case in VOTES)
    assert found.agrees, found.differences
    folder, model = RunFolder.open(root), mortal_runs.model_of(case).load(root)
    certificate = json.loads(folder.certificate.read_bytes())
    spent, promised = model.spent_epsilon(DELTA[case]), model.epsilon(DELTA[case])
    assert certificate["spent"]["epsilon"] == spent <= promised == certificate["guarantee"]["epsilon"]
    assert promised <= model.config.privacy.epsilon
    assert certificate["ledger"]["head"] == Ledger.read(folder.ledger).head[1]
    notes = [line.body["note"] for line in Ledger.read(folder.ledger).lines if line.kind == "release"]
    steps = [note["step"] for note in notes if "warm_start" not in note]
    assert steps == sorted(steps)
    if case in VOTES:
        assert len(set(steps)) == len(steps), "a step that was charged was taken again"
    left = [path.name for path in root.rglob("*") if path.name.endswith((".tmp", ".new"))]
    assert left == []


def points_of(server: Server, case: str, root: Path) -> int:
    """Things that an undisturbed training does to the disk; it ends as one in memory does."""
    assert survives(server, case, root, [], root.parent) == set()
    return server.count()


@pytest.mark.parametrize("case", CASES)
def test_a_training_survives_deaths_at_random_points(server: Server, tmp_path: Path, case: str) -> None:
    rng = random.Random(case)
    number = points_of(server, case, tmp_path / "whole")
    survives(server, case, tmp_path / "run", [rng.randrange(number), rng.randrange(number)], tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("case", CASES)
def test_a_training_survives_death_at_every_point(server: Server, tmp_path: Path, case: str) -> None:
    number = points_of(server, case, tmp_path / "whole")
    for last in range(number):
        root = tmp_path / f"run-{last}"
        lost = survives(server, case, root, [last], tmp_path)
        assert len(lost) <= 2, "more than stood between two checkpoints"
        if case in VOTES:
            assert len(lost) <= 1, "a direction is kept as soon as it is released"
        shutil.rmtree(root)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("case", CASES)
def test_going_on_with_a_finished_run_may_die_at_every_point_too(
    server: Server, tmp_path: Path, case: str
) -> None:
    finished = tmp_path / "finished"
    assert server.train(case, finished) == 0, server.said()
    shutil.copytree(finished, tmp_path / "again")
    assert server.train(case, tmp_path / "again") == 0, server.said()
    for last in range(server.count()):
        root = tmp_path / f"run-{last}"
        shutil.copytree(finished, root)
        assert survives(server, case, root, [last], tmp_path) == set()
        shutil.rmtree(root)
