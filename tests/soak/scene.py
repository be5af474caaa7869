"""A round in progress: what every disturbance needs to begin a run, hurt it, bring it to its end and judge it."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import signal
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from soak import invariants
from soak.commands import Act, Ended, Moment, at_home, start, within
from soak.place import Place
from soak.plan import Plan

from datalens import load_run
from datalens.privacy.ledger import Ledger
from datalens.training.run_folder import RunFolder

LOST = "charged and lost in a crash"
BEFORE_CHECKPOINT = "ended before its first checkpoint"
LONGEST_DELAY = 0.3
"""Seconds after a line of the ledger; a small run takes a few tenths from its first line to its last file."""
FROM_THE_START = 6.0
"""Seconds after the start of a command in which something may happen before the run has a ledger."""


class Scene:
    """One round.

    Args:
        plan: of the round.
        folder: a new one, for all of its files.

    Attributes:
        violations: one line each; none is expected.
        outcome: what happened, in words.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.place = plan, Place(folder, plan)
        self.rng: random.Random = plan.rng
        self.run, self.seen = self.place.run, invariants.Seen()
        self.violations: list[str] = []
        self.outcome: list[str] = []
        self.is_comparable = plan.insecure_seed is not None

    # -- what happens -----------------------------------------------------------------------------------------

    def moment(self, *, begun: bool = False) -> Moment:
        """A random one: soon after the start, or after a line of the ledger; ``begun``: never before the header."""
        if not begun and self.rng.random() < 0.25:
            return Moment(0, self.rng.uniform(0, FROM_THE_START))
        delay = self.rng.choice((0.0, self.rng.uniform(0, LONGEST_DELAY)))
        return Moment(self.rng.randint(1, self._most_lines()), delay)

    def _most_lines(self) -> int:
        """Lines of the ledger that the run surely comes to: some methods release but once or twice."""
        settings = self.plan.settings
        steps = (settings.get("voting") or settings["settings"]).get("num_steps")
        return 2 if steps is None or self.plan.method == "dp-merf" else min(8, steps)

    def begin(self, moment: Moment, act: Act, allowed: Collection[int]) -> Ended:
        """Begin the run, or go on with it where it has begun, and let something happen to it."""
        goes_on = RunFolder.holds_run(self.run)
        ended = start(self.place, self.place.resume() if goes_on else self.place.train(), moment, act)
        self.judge(ended, allowed)
        self.outcome.append(f"status {ended.status}{', over before it was hurt' * (ended.status == 0)}")
        return ended

    def kill(self, *, begun: bool = False) -> None:
        """Begin it and kill it; then look at what is left."""
        ended = self.begin(self.moment(begun=begun), lambda process: process.kill(), (0, -signal.SIGKILL))
        if self.is_unresumable(ended):
            return
        self.look()

    def clear_unbegun(self) -> None:
        """Remove a folder in which nothing had begun, as the user would."""
        if self.run.exists() and not RunFolder.holds_run(self.run):
            self.violations += invariants.not_begun(self.run)
            shutil.rmtree(self.run)

    def finish(self) -> bool:
        """Bring the run to its end, undisturbed; False where nothing of it was saved to go on with."""
        self.clear_unbegun()
        goes_on = RunFolder.holds_run(self.run)
        ended = start(self.place, self.place.resume() if goes_on else self.place.train())
        if self.is_unresumable(ended):
            self.violations += invariants.ended_well(ended, (2,))
            self.outcome.append("ended before its first checkpoint")
            self.look()
            return False
        self.judge(ended, (0,))
        self.outcome.append("resumed" if goes_on else "begun again")
        return ended.status == 0

    # -- what must hold ---------------------------------------------------------------------------------------

    def judge(self, ended: Ended, allowed: Collection[int]) -> None:
        """How a command ended; a resumed baseline may have nothing that it could go on with, and says so."""
        allowed = (*allowed, 2) if self.is_unresumable(ended) else allowed
        self.violations += invariants.ended_well(ended, allowed)
        if LOST in ended.err:
            self.is_comparable = False
            self.outcome.append("steps lost, and charged")

    def is_unresumable(self, ended: Ended) -> bool:
        """Whether a baseline's run was refused since its first checkpoint never came; documented."""
        return self.plan.method != "datalens" and ended.status == 2 and BEFORE_CHECKPOINT in ended.err

    def look(self) -> None:
        """At the run as it lies there."""
        self.violations += self.seen.look(self.run)

    def verify(self, allowed: Collection[int] = (0,), words: Sequence[str] = ()) -> int:
        """Ask ``datalens verify``, in this process."""
        answer = self.place.folder / "verify.json"
        ended = within(self.place, ["verify", str(self.run), "--quiet", "--json", str(answer), *words])
        differences = ""
        if answer.is_file():
            found = json.loads(answer.read_text())
            answer.unlink()
            differences = "; ".join(found["differences"])
            if found["lost_steps"]:
                self.is_comparable = False
                self.outcome.append(f"{found['lost_steps']} steps lost, and charged")
        wrong = invariants.ended_well(ended, allowed)
        self.violations += [f"verify: {line}: {differences}" for line in wrong]
        return ended.status

    def conclude(self) -> None:
        """Finish the run and ask all that must hold of a finished one."""
        if self.finish():
            self.judge_finished()

    def judge_finished(self) -> None:
        """Whole, verified, all steps charged, nothing left behind, and the same as if nothing had happened."""
        self.look()
        self.violations += invariants.nothing_half_written(self.run)
        self.violations += invariants.nothing_left(self.place.temporary)
        self.verify(words=["--replay"] if self.plan.method == "datalens" else [])
        if self.plan.method == "datalens":
            self.violations += _all_steps(self.run, self.plan.settings["voting"]["num_steps"])
        if self.is_comparable:
            self.compare()

    def compare(self) -> None:
        """The same training without a disturbance draws the same samples, to the last bit."""
        ended = within(self.place, self.place.train(self.place.twin))
        wrong = invariants.ended_well(ended, (0,))
        self.violations += [f"undisturbed twin: {line}" for line in wrong]
        if wrong:
            return
        with at_home(self.place), contextlib.redirect_stderr(io.StringIO()):
            mine, theirs = (load_run(path).sample(16, seed=1) for path in (self.run, self.place.twin))
        if not all(np.array_equal(one, other) for one, other in zip(mine, theirs, strict=True)):
            self.violations.append("samples differ from those of the same training without a disturbance")
        self.outcome.append("compared")


def _all_steps(run: Path, num_steps: int) -> list[str]:
    lines = Ledger.read(RunFolder.open(run).ledger).lines
    charged = sum(line.kind in ("release", "recovered") for line in lines)
    return [] if charged == num_steps else [f"{charged} steps charged in a finished run of {num_steps}"]
