"""Lower bounds on what a mechanism leaks, from counts of an attacker's hits; each with its own error rate.

An attacker names a set S of outputs before looking at the trials that are counted. ``hits`` are trials with the
output in S. Nothing is assumed about the outputs; trials of one neighbour must be independent of each other.
"""

from __future__ import annotations

import math

from scipy.special import ndtri
from scipy.stats import beta

from datalens.errors import ConfigError


def upper_probability(hits: int, trials: int, rate: float) -> float:
    """The true probability is at most this, but for a chance of ``rate`` (Clopper and Pearson 1934).

    >>> round(upper_probability(0, 100, 0.05), 4)
    0.0295
    """
    _check_counts(hits, trials, rate)
    return 1.0 if hits == trials else float(beta.isf(rate, hits + 1, trials - hits))


def lower_probability(hits: int, trials: int, rate: float) -> float:
    """The true probability is at least this, but for a chance of ``rate``.

    >>> lower_probability(100, 100, 0.05) == 1 - upper_probability(0, 100, 0.05)
    True
    """
    _check_counts(hits, trials, rate)
    return 1.0 - upper_probability(trials - hits, trials, rate)


def mu_bound(hits: int, false_hits: int, trials: int, rate: float) -> float:
    """Lower bound on mu of a mechanism that is mu-Gaussian-private for some mu; 0 where nothing shows.

    Every test of such a mechanism has ``TPR <= Phi(Phi^-1(FPR) + mu)``, so mu is at least
    ``Phi^-1(TPR) - Phi^-1(FPR)``, taken at the pessimistic end of both.

    Args:
        hits: trials of one neighbour in S.
        false_hits: trials of the other neighbour in S.
        trials: trials of each neighbour.
        rate: chance that the bound is above the truth.

    Source: Dong, Roth and Su 2022, definition 2.6; Nasr et al. 2023, section 4.2, for its use in an audit.

    >>> 0.9 < mu_bound(8413, 5000, 10_000, 0.05) < 1.0
    True
    """
    seen = lower_probability(hits, trials, rate / 2)
    false = upper_probability(false_hits, trials, rate / 2)
    return max(0.0, float(ndtri(seen) - ndtri(false))) if seen > 0 and false < 1 else 0.0


def epsilon_bound(hits: int, false_hits: int, trials: int, delta: float, rate: float) -> float:
    """Lower bound on epsilon at ``delta``, whatever the mechanism is; 0 where nothing shows.

    (epsilon, delta)-privacy says ``P(S) <= e^epsilon Q(S) + delta``, so epsilon is at least
    ``log((P(S) - delta) / Q(S))``, taken at the pessimistic end of both.

    >>> epsilon_bound(50, 50, 100, 0.0, 0.05)
    0.0
    """
    seen = lower_probability(hits, trials, rate / 2) - delta
    false = upper_probability(false_hits, trials, rate / 2)
    return max(0.0, math.log(seen / false)) if seen > 0 else 0.0


def largest_epsilon(trials: int, delta: float, rate: float) -> float:
    """What :func:`epsilon_bound` says of an attacker who is never wrong: so many trials can show no more.

    >>> round(largest_epsilon(1_000_000, 1e-5, 1e-5), 2)
    11.31
    """
    return epsilon_bound(trials, 0, trials, delta, rate)


def _check_counts(hits: int, trials: int, rate: float) -> None:
    if not (trials >= 1 and 0 <= hits <= trials and 0 < rate < 1):
        raise ConfigError(
            f"{hits} hits of {trials} trials at rate {rate!r}: need 0 to {trials} hits of 1 trial or more, and a "
            "rate between 0 and 1"
        )
