"""Whether a baseline pays before it draws: what is charged and drawn in a whole small run, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from datalens.audit.baseline_doors import DOORS
from datalens.audit.baseline_subject import BaselineSubject, events
from datalens.audit.disguise import Disguised
from datalens.audit.findings import Finding
from datalens.audit.tap import Tap
from datalens.baselines.method import Method
from datalens.errors import BudgetError
from datalens.privacy.accountant import Accountant
from datalens.privacy.authorisation import Authorisation
from datalens.privacy.events import Event, SamplerSlack, times
from datalens.privacy.ledger import Ledger

_ROOM = 1 + 1e-9


@dataclass(frozen=True)
class _Draw:
    """Noise that was drawn, and how many lines the ledger had by then."""

    stddev: float
    coordinates: int
    lines: int


@dataclass(frozen=True)
class _Watched(Disguised):
    """A source that says what is drawn from it."""

    ledger: Ledger
    draws: list[_Draw]

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        self.draws.append(_Draw(stddev, int(np.prod(shape)), len(self.ledger.events())))
        return self.inner.sample(shape, stddev)


def audit_budget(subject: BaselineSubject) -> list[Finding]:
    """A small run is planned and paid for; then another learner begins on the same budget, which has no room left."""
    method = subject.small()
    planned = [times(part.event, part.count) for part in method.planned()]
    privacy = subject.privacy
    cost = Accountant(privacy.accountant).epsilon(planned, privacy.delta)
    ledger = Ledger.in_memory()
    budget = subject.open_budget(ledger, Authorisation(cost * _ROOM, privacy.delta, privacy.accountant))
    draws: list[_Draw] = []

    def noise(what: str, number: int) -> _Watched:
        return _Watched(subject.noise_for(what, number), ledger, draws)

    context = subject.context(method, subject.records(), noise=noise, budget=budget)
    learner = Tap().begin(method, context)
    for step in range(subject.steps):
        learner.step(step)
    paid = _paid(method, ledger.events(), draws)
    drawn, lines = len(draws), len(ledger.events())
    late = Tap()
    second = late.begin(method, context)
    before = second.state_dict()
    refused = False
    try:
        second.step(0)
    except BudgetError:
        refused = True
    after = second.state_dict()
    kept = all(torch.equal(value, after[name]) for name, value in before.items())
    silent = (len(draws), len(ledger.events()), late.released) == (drawn, lines, [])
    text = "a step that could not be paid " + (
        "was refused: nothing was drawn, charged, released or learnt"
        if refused and silent and kept
        else "went on"
    )
    found = {"refused": refused, "nothing_drawn": silent, "nothing_learnt": kept}
    return [paid, Finding("budget-refuses", refused and silent and kept, text, found)]


def _paid(method: Method, charges: tuple[Event, ...], draws: list[_Draw]) -> Finding:
    """Every planned release was charged, as often as planned, before any noise was drawn for it."""
    what_of = {_bare(event): what for what, event in events(method).items()}
    stddevs = {door.what: door.stddev for door in DOORS[method.name](method)}
    names = [what_of.get(_bare(event)) for event in charges]
    wanted = {part.what: part.count for part in method.planned()}
    coordinates = {what: event.coordinates for what, event in events(method).items()}
    problem = ""
    if None in names or Counter(names) != wanted:
        problem = f"charged {_listed(Counter(map(str, names)))}, planned {_listed(wanted)}"
    spent: Counter[float] = Counter()
    for draw in draws:
        spent[draw.stddev] += draw.coordinates
        room = sum(coordinates[what] for what in names[: draw.lines] if what and stddevs[what] == draw.stddev)
        if spent[draw.stddev] > room and not problem:
            problem = (
                f"noise of {draw.stddev:g} was drawn for {spent[draw.stddev]} numbers, {room} were paid for"
            )
    unused = sum(coordinates[what] for what in names if what) - sum(spent.values())
    if unused and not problem:
        problem = f"{unused} numbers were paid for and got no noise"
    text = problem or f"{_listed(wanted)}: each charged as planned, before its noise was drawn"
    return Finding("budget-first", not problem, text, {"planned": wanted, "draws": len(draws)})


def _bare(event: Any) -> Any:
    """An event without its sampler's slack, which a plan may bound from above."""
    return replace(event, slack=SamplerSlack())


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
