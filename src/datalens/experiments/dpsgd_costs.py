"""What a training by DP-SGD costs by the paper's accountant and by the tightest, and how many steps either allows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.calibration import max_releases, require_releases
from datalens.privacy.events import PoissonGaussianEvent, times
from datalens.privacy.replacing import replace_one_epsilon

DELTA = 1e-5
PAPERS = str(AccountantKind.CLASSIC)
"""Rényi divergences of the sampled Gaussian with the conversion of 2017, which Opacus had at the time."""
TIGHTEST = "pld"
"""The distribution of the privacy loss, of steps fixed before the first."""

_FINE, _COARSE = 1e-5, 1e-4
_SMALL = 0.5


def cost_of(event: PoissonGaussianEvent) -> dict[str, Any]:
    """Epsilon of all steps under every accountant, and where one record is replaced."""
    spent = {str(kind): Accountant(kind).epsilon(event, DELTA) for kind in AccountantKind}
    return {
        "adjacency": "add-or-remove one record; replace_one_epsilon where one is replaced, by rdp",
        "delta": DELTA,
        "spent_epsilon": {**spent, TIGHTEST: tightest_epsilon(event)},
        "replace_one_epsilon": replace_one_epsilon(Accountant(AccountantKind.RDP), event, DELTA),
    }


def tightest_epsilon(event: PoissonGaussianEvent) -> float:
    """Epsilon at :data:`DELTA` by the distribution of the privacy loss, on a grid and rounded up throughout.

    Add-or-remove one record. Of the two pairs of neighbours the dearer one counts.

    >>> steps = PoissonGaussianEvent(0.01, 2.0, 100)
    >>> tightest_epsilon(steps) < Accountant(AccountantKind.RDP).epsilon(steps, DELTA)
    True
    """
    import dp_accounting
    from dp_accounting import pld

    bound = Accountant(AccountantKind.RDP).epsilon(event, DELTA)
    accountant = pld.PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        value_discretization_interval=_FINE if bound < _SMALL else _COARSE,
    )
    step = dp_accounting.PoissonSampledDpEvent(
        event.sampling_probability, dp_accounting.GaussianDpEvent(event.noise_multiplier)
    )
    accountant.compose(step, event.count)
    return min(bound, float(accountant.get_epsilon(DELTA)))


@lru_cache(maxsize=256)
def most_steps(sampling_rate: float, noise_multiplier: float, epsilon: float, accountant: str) -> int:
    """The largest number of steps that cost at most epsilon at :data:`DELTA`.

    Args:
        sampling_rate: q.
        noise_multiplier: sigma.
        epsilon: above 0.
        accountant: :data:`PAPERS`, another of the product's, or :data:`TIGHTEST`.

    Raises:
        BudgetError: not even one does.
    """
    event = PoissonGaussianEvent(sampling_rate, noise_multiplier)
    if accountant != TIGHTEST:
        return require_releases(event, epsilon, DELTA, AccountantKind(accountant))
    low = max(1, max_releases(event, epsilon, DELTA, AccountantKind.RDP))
    high = 2 * low
    while tightest_epsilon(times(event, high)) <= epsilon:
        low, high = high, 2 * high
    while high - low > max(1, low // 1000):  # a thousandth fewer than might fit
        middle = (low + high) // 2
        if tightest_epsilon(times(event, middle)) <= epsilon:
            low = middle
        else:
            high = middle
    return low
