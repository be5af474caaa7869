"""Epsilon as it was spent, release by release, from a ledger alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.authorisation import authorisations
from datalens.privacy.events import Event
from datalens.privacy.ledger import Ledger
from datalens.privacy.ledger_format import events_of

MOST_POINTS = 40
"""Points of a curve; more show nothing more, and each costs an account of its own."""


@dataclass(frozen=True)
class SpentPoint:
    """What had been spent after some releases.

    Attributes:
        releases: how many.
        epsilon: of all of them together.
    """

    releases: int
    epsilon: float


def spending(ledger: Ledger, accountant: str, delta: float) -> tuple[SpentPoint, ...]:
    """Points of the curve, from nothing to all that was charged; none where nothing is promised.

    Args:
        ledger: of the run.
        accountant: in which it is counted.
        delta: at which it is counted.

    >>> from datalens.privacy.events import GaussianEvent
    >>> ledger = Ledger.in_memory()
    >>> spending(ledger, "exact", 1e-5)
    ()
    """
    recorded = authorisations(ledger)
    if not recorded or not recorded[-1].authorisation.is_private:
        return ()
    charged = [events for line in ledger.lines if (events := events_of(line, charged_only=True))]
    if not charged:
        return ()
    account = Accountant(AccountantKind(accountant))
    points, so_far = [SpentPoint(0, 0.0)], list[Event]()
    wanted = {round(part * len(charged) / MOST_POINTS) for part in range(1, MOST_POINTS + 1)}
    for number, events in enumerate(charged, 1):
        so_far += events
        if number in wanted:
            points.append(SpentPoint(number, account.epsilon(so_far, delta)))
    return tuple(points) if all(math.isfinite(point.epsilon) for point in points) else ()
