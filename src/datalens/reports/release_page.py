"""``release/report.html``: what was trained, what is promised, what comes out. Released facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from datalens.privacy.card_words import epsilon_words
from datalens.reports import using, words
from datalens.reports.charts import Line, belief_chart, line_chart
from datalens.reports.facts import ReleaseFacts
from datalens.reports.grid import Grid
from datalens.reports.page import render
from datalens.reports.sheets import Sheet, shown

if TYPE_CHECKING:
    from markupsafe import Markup


def release_page(facts: ReleaseFacts, sheets: Sequence[Sheet] = (), printed: Grid | None = None) -> str:
    """The page for everybody.

    Args:
        facts: of the run, from ``release/``.
        sheets: samples of the released generator; those before the last show, in order, how they came about.
        printed: what papers print for the data set, where it is one of theirs.

    Guarantee:
        A function of its arguments. With sheets drawn from ``release/`` under a fixed seed, it is a function of
        ``release/`` alone, so it costs nothing more by post-processing.
    """
    promise = words.promise(facts)
    return render(
        "release.html",
        {
            "facts": facts,
            "title": "A classifier of images" if facts.is_classifier else "A generator of synthetic images",
            "method": words.method_title(facts),
            "audit": words.audit_words(facts),
            "subject": words.subject(facts),
            "epsilon": epsilon_words(facts.epsilon),
            "notion": words.notion(facts),
            "promise": promise,
            "belief_chart": None
            if promise is None
            else belief_chart(promise.belief_percent, title=promise.belief),
            "cautions": facts.certificate["guarantee"]["cautions"],
            "not_fit_because": facts.certificate["not_fit_because"],
            "making": words.making(facts),
            "releases": words.releases(facts),
            "sheets": [shown(sheet) for sheet in sheets],
            "spent": _spent_chart(facts),
            "spent_epsilon": epsilon_words(facts.certificate["spent"]["epsilon"]),
            "printed": printed,
            "public": words.public_facts(facts),
            "not_covered": facts.certificate["not_covered"],
            "shell": using.shell_lines(facts),
            "python": using.python_lines(facts),
            "citation": using.citation(facts),
            "paper": using.PAPER if facts.method in using.OF_THE_PAPER else None,
        },
    )


def _spent_chart(facts: ReleaseFacts) -> Markup | None:
    """Epsilon over releases; None where nothing is promised or nothing was released."""
    if facts.epsilon is None or len(facts.spent) < 2:
        return None
    points = tuple((float(point.releases), point.epsilon) for point in facts.spent)
    last = facts.spent[-1]
    many = f"{last.releases:,} release{'s' if last.releases > 1 else ''}"
    return line_chart(
        [Line(points, stepped=last.releases <= len(points))],
        title=f"Epsilon spent, from 0 to {epsilon_words(last.epsilon)} after {many}",
        x_label="releases",
        y_label="epsilon",
        ceiling=facts.epsilon,
        ceiling_label=f"promised: {epsilon_words(facts.epsilon)}",
    )
