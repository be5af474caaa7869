"""Runs side by side: what is promised, what came out, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from datalens.privacy.card_words import epsilon_words
from datalens.reports import words
from datalens.reports.facts import ReleaseFacts
from datalens.reports.grid import Grid
from datalens.reports.owner_facts import PrivateFacts
from datalens.reports.page import render
from datalens.reports.sheets import Sheet, shown

NONE = "-"


@dataclass(frozen=True, eq=False)
class Compared:
    """One run of several.

    Attributes:
        name: as the user called it.
        facts: from ``release/``.
        sheet: a few samples; None of a classifier.
        private: from ``private/``, where the owner asked for it.
    """

    name: str
    facts: ReleaseFacts
    sheet: Sheet | None
    private: PrivateFacts | None = None

    @property
    def cautions(self) -> tuple[str, ...]:
        """What is to be known of its promise before it is set beside another."""
        return tuple(map(str, self.facts.certificate["guarantee"]["cautions"]))

    @property
    def steps(self) -> str:
        """Steps taken, and planned where that is more."""
        progress = self.facts.progress
        if progress.planned is None or progress.charged == progress.planned or progress.is_paid:
            return f"{progress.planned if progress.planned is not None else progress.charged:,}"
        return f"{progress.charged:,} of {progress.planned:,}"

    @property
    def released_score(self) -> str:
        """The last score that was released."""
        if not self.facts.scores:
            return NONE
        score = self.facts.scores[-1]
        return f"{score.right:,} right" if score.accuracy is None else f"{100 * score.accuracy:.2f}%"

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """What is said of it, by name."""
        facts = self.facts
        own = () if self.private is None else self._measured()
        return (
            ("Method", words.method_title(facts)),
            ("Recipe", str(facts.config["config"]["recipe"])),
            ("Epsilon", "none" if facts.epsilon is None else epsilon_words(facts.epsilon)),
            ("Delta", f"{facts.delta:g}"),
            ("For", words.notion(facts)),
            ("Publication", "may be shared" if facts.is_fit else "not fit"),
            ("Data", facts.data_name),
            ("Images", "{2} x {1}, {0}".format(*_described(facts))),
            ("Classes", f"{len(facts.classes)}"),
            ("Steps", self.steps),
            ("Released score", self.released_score),
            *own,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        facts = self.facts
        return {
            "run": self.name,
            "method": facts.method,
            "recipe": facts.config["config"]["recipe"],
            "epsilon": facts.epsilon,
            "delta": facts.delta,
            "adjacency": facts.certificate["guarantee"]["adjacency"],
            "group_size": facts.certificate["guarantee"]["group_size"],
            "publishable": facts.is_fit,
            "cautions": list(self.cautions),
            "data": facts.data_name,
            "image_shape": list(facts.image_shape),
            "classes": list(facts.classes),
            "steps": facts.progress.charged,
            "num_steps": facts.progress.planned,
            "scores": [
                {"right": score.right, "accuracy": score.accuracy, "how": score.how} for score in facts.scores
            ],
            "measured": None if self.private is None else [
                {"data": found.data, "what": what, "value": value, "on": on}
                for found in self.private.measured
                for what, value, on in found.rows
            ],
        }  # fmt: skip

    def _measured(self) -> tuple[tuple[str, str], ...]:
        """What only the owner knows; the best epoch, chosen on the test set, is left out."""
        measured = () if self.private is None else self.private.measured
        return tuple(
            (f"{what} on {found.data}", value)
            for found in measured
            for what, value, _ in found.rows
            if "best epoch" not in what
        )


def compared_grid(runs: Sequence[Compared]) -> Grid:
    """One row a run, for a terminal and for a glance."""
    header = ("run", "method", "data", "epsilon", "delta", "steps", "released score")
    keys = ("Method", "Data", "Epsilon", "Delta", "Steps", "Released score")
    rows = [(run.name, *(dict(run.pairs())[key] for key in keys)) for run in runs]
    own = [(run, run._measured()) for run in runs]
    if any(measured for _, measured in own):
        header += ("measured by the owner",)
        rows = [
            (*row, "; ".join(f"{what}: {value}" for what, value in measured) or NONE)
            for row, (_, measured) in zip(rows, own, strict=True)
        ]
    return Grid("At a glance", header, tuple(rows))


def compared_page(runs: Sequence[Compared]) -> str:
    """A page with all of them; with private facts in it, it says that it may not be shared.

    Args:
        runs: two or more.
    """
    return render(
        "compared.html",
        {
            "runs": [(run, run.pairs(), None if run.sheet is None else shown(run.sheet)) for run in runs],
            "glance": compared_grid(runs),
            "is_private": any(run.private is not None for run in runs),
            "differences": differences(runs),
        },
    )


def differences(runs: Sequence[Compared]) -> list[str]:
    """What makes them hard to compare."""
    found = []
    if len({(run.facts.data_name, run.facts.image_shape, run.facts.classes) for run in runs}) > 1:
        found.append("they were trained on different data, or on images of different sizes or classes")
    if len({run.facts.epsilon for run in runs}) > 1 or len({run.facts.delta for run in runs}) > 1:
        found.append("they promise different epsilons or deltas")
    if len({words.notion(run.facts) for run in runs}) > 1:
        found.append("their promises are about different neighbours")
    return found


def _described(facts: ReleaseFacts) -> tuple[str, int, int]:
    channels, height, width = facts.image_shape
    return "colour" if channels == 3 else "grey", height, width
