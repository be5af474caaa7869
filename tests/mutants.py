"""Do the tests notice? A seeded sample of small edits of the code that the guarantee rests on.

    python tests/mutants.py --minutes 60 --seed 0 --out docs/results/mutants.md

Every mutant of the five rooms (:mod:`mutant_edits`) is listed, the list is shuffled by the seed, and as many as the
minutes allow are tried from its front, so that equal seeds try the same ones. The edit is made in a copy of ``src``
and ``tests`` in a temporary folder, never in the tree. First the tests that mirror the module run, then, if all pass,
a fixed further list. A mutant that outlasts several times the measured duration is counted as timed out, one whose
tests do not pass without it as not applicable.

Each result is a line of JSON beside the page (``mutants.jsonl``) as soon as it is known: the same command goes on
where it was cut off, and tries anew what was edited since. ``--again`` tries the survivors anew, after tests were
added. The page keeps what people wrote into its last column. It runs on systems that fork.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from mutant_edits import Mutant, mutants_of
from mutant_page import explanations, page

REPOSITORY = Path(__file__).resolve().parents[1]
ROOMS = ("privacy", "mechanisms", "noise", "compression")
PRELOADED = ["numpy", "scipy.stats", "torch", "pydantic", "dp_accounting"]
"""What most tests import and no mutant changes: read once, then inherited by every process of pytest."""
PASSED, NO_TESTS, ELSEWHERE = 0, 5, 99
FACTOR, SPARE = 5.0, 60.0
"""A mutant may take so many times the time of the unchanged tests, and so many seconds more."""

ELSEWHERE_TESTED = {
    "compression/topk_value.py": ("tests/experiments/test_variants.py",),
    "mechanisms/critic_round.py": ("tests/baselines/test_gs_wgan.py",),
    "mechanisms/gaussian_sum.py": ("tests/training/test_charged_score.py",),
    "mechanisms/vote_sum.py": ("tests/mechanisms/test_topagg.py", "tests/mechanisms/test_compared.py"),
    "noise/__init__.py": ("tests/noise/test_sources.py", "tests/noise/test_entropy.py"),
    "noise/base.py": ("tests/noise/test_sources.py",),
    "noise/discrete_gaussian.py": ("tests/noise/test_sources.py", "tests/noise/test_entropy.py"),
    "noise/gaussian.py": ("tests/noise/test_sources.py", "tests/noise/test_entropy.py"),
    "noise/none.py": ("tests/noise/test_sources.py",),
    "privacy/authorisation.py": ("tests/privacy/test_budget.py", "tests/privacy/test_guarantee.py"),
    "privacy/baseline_card.py": ("tests/privacy/test_card.py", "tests/baselines/test_runs.py"),
    "privacy/card_subject.py": ("tests/privacy/test_card.py", "tests/privacy/test_sampled_events.py"),
    "privacy/card_words.py": ("tests/privacy/test_card.py", "tests/privacy/test_certificate.py"),
    "privacy/dataset_card.py": ("tests/cli/test_export.py",),
    "privacy/durable.py": ("tests/privacy/test_ledger.py",),
    "privacy/events.py": ("tests/privacy/test_ledger.py", "tests/privacy/test_accountant.py"),
    "privacy/ledger_file.py": ("tests/privacy/test_ledger.py",),
    "privacy/ledger_format.py": ("tests/privacy/test_ledger.py",),
    "privacy/neighbours.py": ("tests/privacy/test_certificate.py",),
    "privacy/promises.py": ("tests/privacy/test_public_start.py", "tests/privacy/test_certificate.py"),
    "privacy/public_start.py": ("tests/training/test_public_init.py",),
}
"""Modules whose tests have neither their name nor an import of them in the mirrored folder, or too many."""
FURTHER = {
    "privacy": (
        "tests/privacy/test_sampled_events.py",
        "tests/golden",
        "tests/properties/test_accountant.py",
    ),
    "mechanisms": ("tests/properties/test_neighbours.py", "tests/contracts"),
    "noise": ("tests/statistics", "tests/mechanisms/test_topagg.py"),
    "compression": ("tests/properties/test_neighbours.py", "tests/contracts"),
    "teachers": (
        "tests/properties/test_partition.py",
        "tests/properties/test_neighbours.py",
        "tests/contracts",
    ),
}
"""Tried on what survives the mirrored tests, by room."""


@dataclass(frozen=True)
class Result:
    """What became of a mutant: killed (and by which stage), survived, timed out or not applicable."""

    key: str
    file: str
    line: int
    kind: str
    before: str
    after: str
    outcome: str
    stage: str
    seconds: float
    digest: str


def files(root: Path) -> list[Path]:
    """The files whose mutants are drawn."""
    source = root / "src" / "datalens"
    found = [path for room in ROOMS for path in (source / room).glob("*.py")]
    return sorted([*found, *(source / "teachers").glob("partition*.py")])


def drawn(root: Path, seed: int) -> list[Mutant]:
    """Every mutant, in the order in which the seed tries them."""
    found = [
        mutant for path in files(root) for mutant in mutants_of(str(path.relative_to(root)), path.read_text())
    ]
    random.Random(seed).shuffle(found)
    return found


def mirrored(root: Path, file: str) -> tuple[str, ...]:
    """The tests tried first: of the module's name, or that import it, and its docstring's examples."""
    room, name = file.split("/")[2:4]
    stem, module = name.removesuffix(".py"), f"datalens.{room}.{name.removesuffix('.py')}"
    first = root / "tests" / room / f"test_{stem}.py"
    if first.is_file():
        tests: tuple[str, ...] = (str(first.relative_to(root)),)
    elif (elsewhere := ELSEWHERE_TESTED.get(f"{room}/{name}")) is not None:
        tests = elsewhere
    else:
        folder = sorted((root / "tests" / room).glob("test_*.py"))
        tests = tuple(str(path.relative_to(root)) for path in folder if module in path.read_text())
        tests = tests or (f"tests/{room}",)
    if ">>> " in (root / file).read_text():
        tests = (f"tests/architecture/test_doctests.py::test_docstring_examples[{module}]", *tests)
    return tests


def copied(root: Path, target: Path) -> Path:
    """A copy of what tests need; the tree itself is only read."""
    for part in ("src", "tests", "scripts", "benchmarks"):
        shutil.copytree(root / part, target / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", target)
    return target


def _pytest(copy: str, tests: tuple[str, ...], log: str) -> None:
    """In a process of its own: these tests of the copy, up to the first that fails."""
    os.setsid()
    with open(log, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(copy)
    sys.path.insert(0, str(Path(copy) / "src"))
    os.environ.update(PYTHONPATH=sys.path[0], PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1")
    sys.dont_write_bytecode = True
    sys.argv[:] = ["pytest"]
    import datalens

    if not str(datalens.__file__).startswith(copy):
        os._exit(ELSEWHERE)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", "--hypothesis-seed=0"]
    os._exit(int(pytest.main([*options, *tests])))


class Runner:
    """Runs tests on a copy, and knows how long they take unchanged."""

    def __init__(self, root: Path, copy: Path) -> None:
        self.copy = copied(root, copy.resolve())
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)
        self._usual: dict[str, float | None] = {}

    def run(self, tests: tuple[str, ...], limit: float) -> int | None:
        """Exit status of pytest, None where it took longer than ``limit`` seconds."""
        shutil.rmtree(self.copy / ".hypothesis", ignore_errors=True)
        log = str(self.copy / "pytest.log")
        process = self._context.Process(target=_pytest, args=(str(self.copy), tests, log))
        process.start()
        process.join(limit)
        status = process.exitcode
        if process.pid is not None and _exists(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
        if status == ELSEWHERE:
            raise SystemExit(
                "the tests do not import the copy: run this with a Python that has no datalens of its own"
            )
        return status

    def usual(self, test: str) -> float | None:
        """Seconds that a file of tests takes unchanged, None where it does not pass; measured once."""
        if test not in self._usual:
            started = time.monotonic()
            passed = self.run((test,), 1200.0) == PASSED
            self._usual[test] = time.monotonic() - started if passed else None
        return self._usual[test]

    def outcome(self, mutant: Mutant, stages: dict[str, tuple[str, ...]]) -> tuple[str, str]:
        """(outcome, stage) of one mutant; the copy is afterwards as before."""
        path = self.copy / mutant.file
        text = path.read_text()
        applicable = False
        for stage, tests in stages.items():
            usual = {test: seconds for test in tests if (seconds := self.usual(test)) is not None}
            if not usual:
                continue
            applicable = True
            path.write_text(mutant.apply(text))
            try:
                status = self.run(tuple(usual), FACTOR * sum(usual.values()) + SPARE)
            finally:
                path.write_text(text)
            if status is None:
                return "timed out", stage
            if status not in (PASSED, NO_TESTS):
                return "killed", stage
        return "survived" if applicable else "not applicable", ""


def _exists(group: int) -> bool:
    """Whether a process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def digest_of(path: Path) -> str:
    """A short name of a file's content: a result is of this text."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def recorded(log: Path) -> dict[str, Result]:
    """Results by key; of several of a mutant the last."""
    if not log.is_file():
        return {}
    lines = [Result(**json.loads(line)) for line in log.read_text().splitlines()]
    return {result.key: result for result in lines}


def sample(root: Path, seed: int, minutes: float, log: Path, only: str = "", again: bool = False) -> None:
    """Try mutants until the time is over, and append each result to ``log``."""
    until = time.monotonic() + 60 * minutes
    known, digests = recorded(log), {str(path.relative_to(root)): digest_of(path) for path in files(root)}
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(root, Path(folder) / "copy")
        for mutant in drawn(root, seed):
            last = known.get(mutant.key)
            outcome = last.outcome if last is not None and last.digest == digests[mutant.file] else "untried"
            if only not in mutant.file or outcome != ("survived" if again else "untried"):
                continue
            if time.monotonic() > until:
                break
            started = time.monotonic()
            stages = {"mirrored": mirrored(root, mutant.file), "further": FURTHER[mutant.file.split("/")[2]]}
            outcome, stage = runner.outcome(mutant, stages)
            made = {
                name: value for name, value in asdict(mutant).items() if name in Result.__dataclass_fields__
            }
            seconds = round(time.monotonic() - started, 1)
            result = Result(
                **made, outcome=outcome, stage=stage, seconds=seconds, digest=digests[mutant.file]
            )
            with log.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
            sys.stdout.write(f"{outcome:<10} {seconds:>6} s  {mutant.file}:{mutant.line}  {mutant.kind}\n")
            sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """Sample, and draw the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="no mutant is begun after so many; 0: the page alone"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs" / "results" / "mutants.md")
    parser.add_argument("--only", default="", help="files whose name holds this")
    parser.add_argument("--again", action="store_true", help="try recorded survivors anew, and nothing else")
    given = parser.parse_args(arguments)
    log = given.out.with_suffix(".jsonl")
    if given.minutes > 0:
        sample(REPOSITORY, given.seed, given.minutes, log, given.only, given.again)
    digests = {str(path.relative_to(REPOSITORY)): digest_of(path) for path in files(REPOSITORY)}
    known = recorded(log)
    order = drawn(REPOSITORY, given.seed)
    current = [
        known[one.key] for one in order if one.key in known and known[one.key].digest == digests[one.file]
    ]
    said = explanations(given.out.read_text()) if given.out.is_file() else {}
    places = {one.key: one.line for one in order}
    given.out.write_text(page(current, places, said, seed=given.seed, num_mutants=len(order)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
