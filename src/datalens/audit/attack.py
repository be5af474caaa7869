"""An attacker's trials of two neighbours, judged: lower bounds beside what is claimed, whatever was attacked.

A tenth of the trials chooses the attacker's set of outputs, the rest counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from datalens.audit import bounds
from datalens.audit.findings import NOT_A_PROOF, Finding
from datalens.privacy.accountant import Accountant
from datalens.privacy.events import NoiseKind, NoisyEvent, PoissonGaussianEvent

SCALES = {1.0: 0.25, 2.0: 1.0, 3.0: 0.25}
"""From the mu of one release to its part of the trials: epsilon at mu 2 is the hardest to show."""
DELTA = 1e-2
RATE = 1e-3
"""Chance that one reported bound exceeds the truth."""
ALARM_RATE = 1e-6
"""The same for the bounds that raise the alarm: two at each scale."""
DEFAULT_TRIALS = 4_000_000
SLOW_TRIALS = 20_000
"""For the discrete Gaussian, whose draws take a hundred times as long."""
CHUNK = 100_000
"""Trials drawn at once."""
_CHOOSING = 10
"""One trial in so many chooses the attacker's set; the others count."""
_GRID = np.linspace(0, 1, 101)
_TAILS = (1e-4, 1e-3, 0.01, 0.02, 0.98, 0.99, 0.999, 0.9999)


@dataclass(frozen=True)
class ScaledTrial:
    """What was measured at one scale.

    Attributes:
        claimed_mu: sensitivity over noise, as the mechanism's own event has it.
        mu: lower bound.
        claimed_epsilon: at delta 1e-2.
        epsilon: lower bound there, assuming nothing.
        epsilon_at_run: lower bound at the run's own delta.
        largest_at_run: the largest that so many trials could have shown there.
        alarm: a bound that is wrong only once in a million such audits exceeds its claim.
    """

    claimed_mu: float
    mu: float
    claimed_epsilon: float
    epsilon: float
    epsilon_at_run: float
    largest_at_run: float
    alarm: bool


def judge(scores: list[np.ndarray], event: NoisyEvent, run_delta: float) -> ScaledTrial:
    """Lower bounds from one score a trial of either neighbour, beside what ``event`` claims.

    Args:
        scores: of the one neighbour and of the other, equally many.
        event: of the release that was tried, of count 1.
        run_delta: the run's own delta.
    """
    chosen = [np.sort(part[::_CHOOSING]) for part in scores]
    counted = [np.sort(np.delete(part, slice(None, None, _CHOOSING))) for part in scores]

    def mu_at(rate: float) -> float:
        return _bound(chosen, counted, partial(bounds.mu_bound, rate=rate))

    def epsilon_at(delta: float, rate: float) -> float:
        measure = partial(bounds.epsilon_bound, delta=delta, rate=rate)
        return _bound(chosen, counted, measure)

    claimed_mu, claimed_epsilon = largest_mu(event), Accountant().epsilon(event, DELTA)
    return ScaledTrial(
        claimed_mu=claimed_mu,
        mu=mu_at(RATE),
        claimed_epsilon=claimed_epsilon,
        epsilon=epsilon_at(DELTA, RATE),
        epsilon_at_run=epsilon_at(run_delta, RATE),
        largest_at_run=bounds.largest_epsilon(len(counted[0]), run_delta, RATE),
        alarm=mu_at(ALARM_RATE) > claimed_mu or epsilon_at(DELTA, ALARM_RATE) > claimed_epsilon,
    )


def largest_mu(event: NoisyEvent) -> float:
    """Sensitivity over noise of one release; with a sampled lot, of one that the record is in."""
    return 1 / event.noise_multiplier if isinstance(event, PoissonGaussianEvent) else event.mu


def default_trials(kind: NoiseKind) -> int:
    """Trials a side where none were asked for."""
    return SLOW_TRIALS if kind is NoiseKind.DISCRETE else DEFAULT_TRIALS


def attack_finding(measured: Sequence[ScaledTrial], shown: ScaledTrial, trials: int, delta: float) -> Finding:
    """What all trials came to; fails where one of them raised the alarm.

    Args:
        measured: at every scale.
        shown: the one that the line is about where nothing is broken.
        trials: a side, at the scale that had most.
        delta: the run's own.
    """
    broken = [one for one in measured if one.alarm]
    worst = max(measured, key=lambda one: one.mu / one.claimed_mu)
    shown = broken[0] if broken else shown
    text = (
        f"mu >= {shown.mu:.3f} of {shown.claimed_mu:.3f} claimed, epsilon >= {shown.epsilon:.3f} of "
        f"{shown.claimed_epsilon:.3f} at delta {DELTA:g} ({trials} trials a side; {NOT_A_PROOF})"
    )
    numbers = {
        "trials_a_side": trials,
        "confidence_of_each_bound": 1 - RATE,
        "largest_mu_ratio": worst.mu / worst.claimed_mu,
        "scales": [one.__dict__ | {"run_delta": delta, "delta": DELTA} for one in measured],
    }
    return Finding("mechanism", not broken, text, numbers, 2 * ALARM_RATE * len(measured))


def _bound(
    chosen: list[np.ndarray], counted: list[np.ndarray], measure: Callable[[int, int, int], float]
) -> float:
    """The bound at the cut and side that look best on the chosen trials, counted on the others; both sorted."""
    tails = [np.quantile(part, _TAILS) for part in chosen]
    cuts = np.unique(np.concatenate([np.quantile(np.concatenate(chosen), _GRID), *tails]))
    options = [(cut, above) for cut in cuts for above in (True, False)]
    best = max(options, key=lambda option: _measure(chosen, *option, measure))
    return _measure(counted, *best, measure)


def _measure(
    scores: list[np.ndarray], cut: float, above: bool, measure: Callable[[int, int, int], float]
) -> float:
    """The bound for the set of scores above (or below) the cut, which points to the first neighbour (second)."""
    one, two = (int(np.searchsorted(part, cut, "right" if above else "left")) for part in scores)
    total = len(scores[0])
    return measure(total - one, total - two, total) if above else measure(two, one, total)
