"""What replacing one record costs, where only the cost of adding or removing one is known.

Poisson-sampled steps are charged for one record added or removed, and no event of theirs has the pair of data sets in
which one record is exchanged for another. But those two are two moves apart, and that bounds the whole plan.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable

from datalens.privacy.accountant import Accountant
from datalens.privacy.events import Event
from datalens.privacy.gaussian import check_delta

_TOLERANCE = 1e-6
_MOST_EPSILON = 600.0


def replace_one_epsilon(accountant: Accountant, events: Event | Iterable[Event], delta: float) -> float:
    """Epsilon at ``delta`` under replace-one of events whose costs are those of add-or-remove, all of them together.

    Guarantee: with ``(e, d)`` any point of the add-or-remove curve of the whole composition and
    ``d (1 + exp(e)) <= delta``, ``2 e`` is proved (``docs/privacy.md``, section 6.2). The least such ``e`` is found
    to about one part in a million, from above, and checked; infinite where none is found.

    Args:
        accountant: whose curve.
        events: of the whole plan; a bound for each step alone would not compose to this.
        delta: in (0, 1).

    Raises:
        ConfigError: delta outside (0, 1).

    >>> from datalens.privacy.events import PoissonGaussianEvent
    >>> steps = PoissonGaussianEvent(0.01, 2.0, count=100)
    >>> Accountant().epsilon(steps, 1e-5) < replace_one_epsilon(Accountant(), steps, 1e-5) / 2
    True
    """
    check_delta(delta)
    events = [events] if isinstance(events, Event) else list(events)

    def needed(epsilon: float) -> float:
        return accountant.epsilon(events, delta / (1 + math.exp(epsilon)))

    epsilon = 0.0
    with warnings.catch_warnings():  # what is tried on the way may be far from the answer
        warnings.simplefilter("ignore")
        for _ in range(500):
            if epsilon > _MOST_EPSILON:
                break
            following = needed(epsilon)  # grows with epsilon, so this climbs to the least fixed point
            if following <= epsilon:
                return 2 * epsilon
            epsilon = following * (1 + _TOLERANCE)
    return math.inf
