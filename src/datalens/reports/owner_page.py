"""``private/report.html``: what only the owner of a run may see. Nothing of it is covered by the promise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from datalens.privacy.card_words import epsilon_words
from datalens.reports import words
from datalens.reports.charts import Line, line_chart
from datalens.reports.facts import ReleaseFacts
from datalens.reports.owner_facts import PrivateFacts, Step
from datalens.reports.page import render
from datalens.reports.sheets import Sheet, shown

if TYPE_CHECKING:
    from markupsafe import Markup

_MOST_POINTS = 400
_MOST_TEACHERS = 20


def owner_page(facts: ReleaseFacts, private: PrivateFacts, sheets: Sequence[Sheet] = ()) -> str:
    """The page for the owner, which shall not leave ``private/``.

    Args:
        facts: of the run, from ``release/``.
        private: from ``private/``.
        sheets: samples of the generator.
    """
    return render(
        "owner.html",
        {
            "facts": facts,
            "private": private,
            "method": words.method_title(facts),
            "epsilon": epsilon_words(facts.epsilon),
            "is_promised": facts.epsilon is not None,
            "spent_epsilon": epsilon_words(facts.certificate["spent"]["epsilon"]),
            "sheets": [shown(sheet) for sheet in sheets],
            "agreement": _agreement(private.steps),
            "failures": [tuple(f"{number:,}" for number in row) for row in private.failures[:_MOST_TEACHERS]],
            "failures_left_out": max(0, len(private.failures) - _MOST_TEACHERS),
        },
    )


def _agreement(steps: Sequence[Step]) -> Markup | None:
    """How much the teachers agreed, step by step."""
    if not steps:
        return None
    every = -(-len(steps) // _MOST_POINTS)
    kept = steps[::every]
    first, last = steps[0].rms_agreement, steps[-1].rms_agreement
    return line_chart(
        [
            Line(tuple((step.step + 1.0, step.max_agreement) for step in kept), "second", "largest"),
            Line(tuple((step.step + 1.0, step.rms_agreement) for step in kept), "main", "RMS"),
        ],
        title=(
            f"Agreement of the votes over {len(steps):,} steps: root mean square {first:.3g} at first, "
            f"{last:.3g} at last"
        ),
        x_label="steps",
        y_label="share of teachers",
    )
