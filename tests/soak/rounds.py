"""Rounds one after the other, a line in the log for each, and a last line for all."""

from __future__ import annotations

import json
import shutil
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from soak.disturbances import PROCEDURES
from soak.flat import Use, growth, measure, thirds
from soak.plan import Plan, draw
from soak.scene import Scene


class Soak:
    """A soak in progress.

    Args:
        seed: of all choices.
        folder: where the runs lie; a round's folder is removed unless something was violated.
        log: one JSON line a round is added to it.
    """

    def __init__(self, seed: int, folder: Path, log: Path) -> None:
        self._seed, self._folder, self._log = seed, folder, log
        self._started = time.monotonic()
        self._uses: list[Use] = []
        self._counts: Counter[str] = Counter()
        self._violations = 0

    def rounds_for(self, minutes: float) -> None:
        """Rounds from 0 on; none is begun after so many minutes."""
        number = 0
        while time.monotonic() - self._started < minutes * 60:
            self.round(number)
            number += 1

    def round(self, number: int) -> list[str]:
        """The round of that number; its violations."""
        return self.play(draw(self._seed, number))

    def play(self, plan: Plan) -> list[str]:
        """One round, its line in the log; its violations."""
        folder, started = self._folder / f"round-{plan.number:05d}", time.monotonic()
        shutil.rmtree(folder, ignore_errors=True)
        violations, outcome = played(plan, folder)
        self._counts[plan.disturbance] += 1
        self._violations += len(violations)
        self._uses.append(measure())
        self._write(
            {
                "round": plan.number,
                "seed": plan.seed,
                "seconds": round(time.monotonic() - started, 1),
                "disturbance": plan.disturbance,
                "configuration": plan.to_json(),
                "outcome": outcome,
                "violations": violations,
                "kept": str(folder) if violations else None,
                **self._uses[-1].to_json(),
            }
        )
        if not violations:
            shutil.rmtree(folder)
        return violations

    def conclude(self) -> int:
        """The last line: how long it ran, and whether memory, handles and threads were flat; number of violations."""
        grown = growth(self._uses)
        ends = thirds(self._uses)
        first, last = (None, None) if ends is None else (ends[0].to_json(), ends[1].to_json())
        total = self._violations + len(grown)
        self._write(
            {
                "summary": "soak",
                "seed": self._seed,
                "minutes": round((time.monotonic() - self._started) / 60, 2),
                "rounds": sum(self._counts.values()),
                "by_disturbance": dict(sorted(self._counts.items())),
                "violations": total,
                "grown": grown,
                "first_third": first,
                "last_third": last,
                "flat": None if ends is None else not grown,
            }
        )
        return total

    def _write(self, line: dict[str, Any]) -> None:
        with self._log.open("a") as file:
            file.write(json.dumps(line) + "\n")


def played(plan: Plan, folder: Path) -> tuple[list[str], list[str]]:
    """One round's violations and what happened in it; an error of the round itself is a violation too."""
    try:
        scene = Scene(plan, folder)
    except Exception:
        return [f"the round could not begin: {traceback.format_exc()}"], []
    try:
        PROCEDURES[plan.disturbance](scene)
    except Exception:
        scene.violations.append(f"an error within the soak's process: {traceback.format_exc()}")
    return scene.violations, scene.outcome
