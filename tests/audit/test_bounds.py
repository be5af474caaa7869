"""The bounds hold as often as they say, and are as large as they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from datalens.audit.bounds import (
    epsilon_bound,
    largest_epsilon,
    lower_probability,
    mu_bound,
    upper_probability,
)
from datalens.audit.canary_bound import canary_epsilon, guess_p_value
from datalens.errors import ConfigError
from datalens.privacy.gaussian import epsilon_of


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (57, 1000)])
def test_clopper_pearson_is_where_the_tail_is_the_rate(hits: int, trials: int) -> None:
    upper, lower = upper_probability(hits, trials, 0.01), lower_probability(hits, trials, 0.01)
    if hits < trials:
        assert binom.cdf(hits, trials, upper) == pytest.approx(0.01)
    else:
        assert upper == 1
    if hits > 0:
        assert binom.sf(hits - 1, trials, lower) == pytest.approx(0.01)
    else:
        assert lower == 0


@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_bounds_are_above_the_truth_no_oftener_than_they_say(mu: float) -> None:
    rng = np.random.default_rng(5)
    rounds, trials, rate = 500, 400, 0.1
    hits = rng.binomial(trials, norm.cdf(mu / 2), rounds)
    false = rng.binomial(trials, norm.cdf(-mu / 2), rounds)
    wrong = sum(mu_bound(int(a), int(b), trials, rate) > mu for a, b in zip(hits, false, strict=True))
    assert wrong < binom.isf(1e-6, rounds, rate)
    epsilon = epsilon_of(0.05, mu)
    wrong = sum(
        epsilon_bound(int(a), int(b), trials, 0.05, rate) > epsilon for a, b in zip(hits, false, strict=True)
    )
    assert wrong < binom.isf(1e-6, rounds, rate)


def test_bounds_come_close_to_the_truth_with_many_trials() -> None:
    trials = 10**8
    hits, false = round(trials * norm.cdf(1)), round(trials * norm.cdf(-1))
    assert 1.995 < mu_bound(hits, false, trials, 1e-3) < 2
    place = epsilon_of(1e-2, 1.0) - 0.5  # where the likelihood ratio is e^epsilon
    hits, false = round(trials * norm.sf(place)), round(trials * norm.sf(place + 1))
    assert epsilon_bound(hits, false, trials, 1e-2, 1e-3) / epsilon_of(1e-2, 1.0) > 0.99


def test_an_attacker_without_a_clue_shows_nothing() -> None:
    assert mu_bound(500, 500, 1000, 0.05) == epsilon_bound(500, 500, 1000, 0.0, 0.05) == 0
    assert mu_bound(0, 1000, 1000, 0.05) == epsilon_bound(0, 1000, 1000, 0.0, 0.05) == 0
    assert epsilon_bound(5, 0, 1000, 0.9, 0.05) == 0


def test_nobody_shows_more_than_the_largest_bound() -> None:
    assert epsilon_bound(999, 0, 1000, 1e-5, 0.01) < largest_epsilon(1000, 1e-5, 0.01) < math.inf


@pytest.mark.parametrize(("hits", "trials", "rate"), [(-1, 5, 0.1), (6, 5, 0.1), (1, 0, 0.1), (1, 5, 0.0)])
def test_impossible_counts_are_refused(hits: int, trials: int, rate: float) -> None:
    with pytest.raises(ConfigError, match="hits of"):
        upper_probability(hits, trials, rate)


def slow_p_value(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The theorem, term by term."""
    chance = math.exp(epsilon) / (1 + math.exp(epsilon))
    tail = sum(math.comb(guesses, w) * chance**w * (1 - chance) ** (guesses - w)
               for w in range(correct, guesses + 1))  # fmt: skip
    excess = 0.0
    for i in range(1, canaries + 1):
        window = sum(math.comb(guesses, w) * chance**w * (1 - chance) ** (guesses - w)
                     for w in range(max(0, correct - i), correct))  # fmt: skip
        excess = max(excess, window / i)
    return min(1.0, tail + 2 * canaries * delta * excess)


@pytest.mark.parametrize(("correct", "guesses", "canaries"), [(0, 4, 9), (3, 4, 9), (7, 7, 7), (20, 30, 50)])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-2])
def test_guesses_are_bounded_as_the_theorem_says(
    correct: int, guesses: int, canaries: int, epsilon: float, delta: float
) -> None:
    ours = guess_p_value(correct, guesses, canaries, epsilon, delta)
    assert ours == pytest.approx(slow_p_value(correct, guesses, canaries, epsilon, delta), rel=1e-9)


def test_guessing_bound_holds_for_randomised_response() -> None:
    rng = np.random.default_rng(6)
    epsilon, canaries, rate, rounds = 1.0, 100, 0.1, 60
    right = rng.binomial(canaries, math.exp(epsilon) / (1 + math.exp(epsilon)), rounds)
    bounds = [canary_epsilon(int(v), canaries, canaries, 0.0, rate) for v in right]
    assert sum(bound > epsilon for bound in bounds) < binom.isf(1e-6, rounds, rate)
    assert np.median(bounds) > 0.5


def test_delta_takes_from_the_guessing_bound() -> None:
    assert canary_epsilon(180, 200, 200, 1e-3, 0.05) < canary_epsilon(180, 200, 200, 0.0, 0.05)


def test_guesses_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="right of"):
        guess_p_value(5, 4, 9, 0.0, 0.0)
