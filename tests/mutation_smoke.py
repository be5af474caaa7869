"""Do the tests notice? Break one line of privacy-relevant code at a time and see a named test fail.

    python tests/mutation_smoke.py

Works on a copy of ``src`` and ``tests`` in a temporary folder. A mutation whose text is no longer found exactly
once is an error: renew it. Exit status 0 where the named tests pass as they are and every mutation turns one red.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PASSED, RED = 0, 1


@dataclass(frozen=True)
class Mutation:
    """One edit: in ``file``, ``old`` (found exactly once) becomes ``new``, and ``test`` must fail."""

    name: str
    file: str
    old: str
    new: str
    test: str


MUTATIONS = (
    Mutation(
        "a record that is left out moves all that follow it",
        "teachers/partition.py",
        "slots = permutation[places].astype(np.int64)",
        "slots = permutation[:num_present].astype(np.int64)",
        "tests/teachers/test_partition.py",
    ),
    Mutation(
        "sensitivity without its factor 2",
        "privacy/sensitivity.py",
        "group_size * 2.0 * math.sqrt(top_k * images)",
        "group_size * 1.0 * math.sqrt(top_k * images)",
        "tests/mechanisms/test_topagg.py",
    ),
    Mutation(
        "half the noise",
        "mechanisms/vote_sum.py",
        "self.noise.sample(tuple(summed.shape), self.noise_stddev)",
        "self.noise.sample(tuple(summed.shape), self.noise_stddev / 2)",
        "tests/mechanisms/test_topagg.py",
    ),
    Mutation(
        "noise drawn before the charge",
        "mechanisms/vote_sum.py",
        "        line = budget.charge(event, note)\n"
        "        direction_BD = self.direction_of(self.noisy_tally(tally_BD), dim)\n",
        "        direction_BD = self.direction_of(self.noisy_tally(tally_BD), dim)\n"
        "        line = budget.charge(event, note)\n",
        "tests/mechanisms/test_topagg.py",
    ),
    Mutation(
        "padded coordinates are not counted",
        "mechanisms/d2p_fed.py",
        "d2p_fed_sensitivity(self.levels, width, images",
        "d2p_fed_sensitivity(self.levels, dim, images",
        "tests/mechanisms/test_compared.py",
    ),
    Mutation(
        "top-k keeps all ties",
        "compression/topk_sign.py",
        "    if bool(crowded.any()):",
        "    if False:",
        "tests/compression/test_topk_sign.py",
    ),
    Mutation(
        "a group's teacher follows from its place among the groups",
        "teachers/groups.py",
        "for value in distinct.tolist()]",
        "for value in range(len(distinct))]",
        "tests/teachers/test_groups.py",
    ),
    Mutation(
        "a full teacher chooses by the places of all records",
        "teachers/groups.py",
        "pairs = zip(ids.tolist(), place_R.tolist(), strict=True)",
        "pairs = zip(ids.tolist(), range(len(ids)), strict=True)",
        "tests/teachers/test_groups.py",
    ),
    Mutation(
        "a slot taken twice is accepted",
        "teachers/partition.py",
        "if np.count_nonzero(record_of_any != EMPTY) != len(slots):",
        "if False:",
        "tests/teachers/test_partition.py",
    ),
    Mutation(
        "teachers share one place in the store",
        "teachers/ensemble.py",
        "self.family.train(self._store.load(start, stop), shards",
        "self.family.train(self._store.load(0, stop - start), shards",
        "tests/teachers/test_ensemble.py",
    ),
    Mutation(
        "the budget is overdrawn by half",
        "privacy/budget.py",
        "if after > self.authorised_epsilon():",
        "if after > 1.5 * self.authorised_epsilon():",
        "tests/privacy/test_budget.py",
    ),
    Mutation(
        "a resumed budget starts at zero",
        "privacy/budget.py",
        "        events = self._ledger.events()\n",
        "        self._start = getattr(self, '_start', len(self._ledger.events()))\n"
        "        events = self._ledger.events()[self._start :]\n",
        "tests/privacy/test_budget.py",
    ),
    Mutation(
        "a cut-off line is not charged",
        "privacy/ledger_format.py",
        '        return [event_from_json(event) for event in line.body["events"]]\n',
        "        return []\n",
        "tests/privacy/test_ledger.py",
    ),
    Mutation(
        "n releases cost what one does",
        "privacy/accountant.py",
        "mu_squared.append(event.mu**2 * event.count)\n            only_continuous &=",
        "mu_squared.append(event.mu**2)\n            only_continuous &=",
        "tests/privacy/test_accountant.py",
    ),
    Mutation(
        "noise from a constant instead of the system",
        "noise/entropy.py",
        "os.urandom(_WORD_BYTES * count)",
        "hashlib.shake_256(b'0').digest(_WORD_BYTES * count)",
        "tests/noise/test_entropy.py",
    ),
    Mutation(
        "every step has the same seeded noise",
        "training/assembly.py",
        'streams.key("noise", step)',
        'streams.key("noise")',
        "tests/audit/test_self_test.py::test_sound_product_passes",
    ),
    Mutation(
        "a start learned from the records",
        "training/starting.py",
        "return lambda facts: start_of_images(facts, source, stop, tell)",
        "return lambda facts: start_of_images(facts, data, stop, tell)",
        "tests/training/test_public_init.py",
    ),
    Mutation(
        "a public start that holds most records",
        "training/starting.py",
        "if 2 * _num_shared(images, data) > data.num_records:",
        "if 1 * _num_shared(images, data) > data.num_records:",
        "tests/training/test_public_init.py",
    ),
    Mutation(
        "a start from a run on people's data",
        "training/starting.py",
        'if theirs.data_name == "private":',
        'if theirs.data_name == "nobody":',
        "tests/training/test_public_init.py",
    ),
)


def run(copy: Path, test: str) -> int:
    """Exit status of pytest on one file (or test) of the copy."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.setdefault("DATALENS_DATA", str(REPOSITORY.parent / "shared" / "data"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", test]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    return done.returncode


def mutate(copy: Path, mutation: Mutation) -> None:
    """Make the edit in the copy."""
    path = copy / "src" / "datalens" / mutation.file
    text = path.read_text()
    if text.count(mutation.old) != 1:
        raise SystemExit(
            f"{mutation.name}: the text to change occurs {text.count(mutation.old)} times in {mutation.file}; "
            "renew the mutation"
        )
    path.write_text(text.replace(mutation.old, mutation.new))


def main() -> int:
    """Print a table, one line a mutation."""
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("src", "tests", "pyproject.toml"):
            source = REPOSITORY / part
            ignore = shutil.ignore_patterns("__pycache__")
            if source.is_dir():
                shutil.copytree(source, copy / part, ignore=ignore)
            else:
                shutil.copy(source, copy / part)
        for test in dict.fromkeys(mutation.test for mutation in MUTATIONS):
            status = run(copy, test)
            sys.stdout.write(f"{'passes' if status == PASSED else f'FAILS ({status})'} unchanged  {test}\n")
            survivors += status != PASSED
        for mutation in MUTATIONS:
            path = copy / "src" / "datalens" / mutation.file
            before = path.read_text()
            started = time.monotonic()
            mutate(copy, mutation)
            status = run(copy, mutation.test)
            path.write_text(before)
            caught = status == RED
            survivors += not caught
            said = "caught" if caught else f"SURVIVED ({status})"
            sys.stdout.write(
                f"{said}  {mutation.name}  [{mutation.test}, {time.monotonic() - started:.0f} s]\n"
            )
            sys.stdout.flush()
    sys.stdout.write(f"{len(MUTATIONS)} mutations, {survivors} problems\n")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
