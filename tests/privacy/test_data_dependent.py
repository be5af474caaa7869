from __future__ import annotations

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from datalens.errors import ConfigError, NotPrivateError
from datalens.privacy.data_dependent import (
    DataDependentCost,
    data_dependent_cost,
    likeliest_outcome,
    log_miss_probability,
    log_outcome_chances,
    log_outcome_probability,
    rdp_bound,
    summary,
)
from datalens.privacy.ledger import Ledger


def test_chances_agree_with_high_precision_in_every_tail():
    tally = np.array([-4000.0, -300.0, -1.0, 0.0, 2.0, 250.0, 4000.0])
    for noise in (2.0, 40.0, 5000.0):
        found = log_outcome_chances(tally, 100, 0.7, noise)
        for column, value in enumerate(tally):
            with mpmath.workdps(400):
                upper, lower = (70 - mpmath.mpf(value)) / noise, (-70 - mpmath.mpf(value)) / noise
                ends = (lower, upper) if value < 0 else (-upper, -lower)  # where both erfc are small
                between = (mpmath.erfc(ends[0] / mpmath.sqrt(2)) - mpmath.erfc(ends[1] / mpmath.sqrt(2))) / 2
                chances = (mpmath.ncdf(lower), between, mpmath.erfc(upper / mpmath.sqrt(2)) / 2)
                expected = [float(mpmath.log(chance)) for chance in chances]
            assert found[:, column] == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_chances_of_a_coordinate_sum_to_one():
    chances = np.exp(log_outcome_chances(np.linspace(-200, 200, 41), 100, 0.7, 50.0))
    assert chances.sum(axis=0) == pytest.approx(np.ones(41))


@pytest.mark.parametrize("rounded", [False, True])
def test_chances_agree_with_drawing(rounded):
    rng = np.random.default_rng(3)
    tally, noise, cut = np.array([3.0, -2.0, 0.0, 9.0]), 2.5, 4.2
    drawn = rng.normal(0, noise, (200_000, 4))
    noisy = tally + (np.rint(drawn) if rounded else drawn)
    found = np.exp(log_outcome_chances(tally, 10, cut / 10, noise, rounded=rounded))
    seen = np.stack([noisy <= -cut, abs(noisy) < cut, noisy >= cut]).mean(axis=1)
    assert abs(found - seen).max() < 0.005


def test_theorem_5_as_printed_is_wrong_away_from_zero():
    """The printed erf for a 0 and the printed factor of a -1 differ from the true chances where f is not
    0."""
    found = np.exp(log_outcome_chances(np.array([30.0, 0.0]), 100, 0.7, 50.0))
    printed_zero = [math.erf((70 - f) / (math.sqrt(2) * 50)) for f in (30.0, 0.0)]
    assert printed_zero[1] == pytest.approx(found[1, 1])
    assert abs(printed_zero[0] - found[1, 0]) > 0.05
    printed_minus = 0.5 * math.erfc(-(70 - 30.0) / 50 / math.sqrt(2))
    assert printed_minus > 0.7 > 0.1 > found[0, 0]


def test_the_likeliest_outcome_is_the_likeliest_of_all():
    chances = log_outcome_chances(np.array([60.0, -75.0, 2.0]), 100, 0.7, 30.0)
    every = np.array(np.meshgrid(*[[-1, 0, 1]] * 3)).reshape(3, -1).T
    logs = [log_outcome_probability(chances, outcome) for outcome in every]
    best = likeliest_outcome(chances)
    assert log_outcome_probability(chances, best) == max(logs)
    assert math.fsum(math.exp(log) for log in logs) == pytest.approx(1.0)


def test_a_whole_step_does_not_underflow():
    chances = log_outcome_chances(np.zeros(15 * 784), 4000, 0.7, 5000.0)
    log_hit = log_outcome_probability(chances, likeliest_outcome(chances))
    assert -20_000 < log_hit < -5_000
    assert log_miss_probability(log_hit) == 0.0
    assert log_miss_probability(-1e-30) == pytest.approx(math.log(1e-30))
    assert log_miss_probability(0.0) == -math.inf


def true_divergence(order: float, log_chances: np.ndarray, log_other: np.ndarray) -> float:
    return float(np.logaddexp.reduce(order * log_chances + (1 - order) * log_other)) / (order - 1)


def test_the_bound_holds_for_a_mechanism_small_enough_to_sum_over():
    """One coordinate, one teacher of 20 turned over: the true Rényi divergence of the thresholded release."""
    tightened = 0
    for noise in (1.5, 2.0, 4.0, 10.0):
        for tally in (20.0, 18.0, 0.0, -20.0, 7.0):
            chances = log_outcome_chances(np.array([tally]), 20, 0.4, noise).ravel()
            log_q = float(np.logaddexp.reduce(np.delete(chances, chances.argmax())))
            for moved in (-2.0, 2.0):
                other = log_outcome_chances(np.array([tally + moved]), 20, 0.4, noise).ravel()
                for order in (1.5, 2.0, 5.0, 20.0):
                    bound = rdp_bound(order, 2.0 / noise, log_q)
                    assert true_divergence(order, chances, other) <= bound * (1 + 1e-9) + 1e-15
                    tightened += bound < 0.5 * order * (2.0 / noise) ** 2 / 2
    assert tightened > 10


def test_the_bound_never_exceeds_the_independent_one_and_falls_with_q():
    for order in (1.1, 2.0, 10.0, 50.0):
        bounds = [rdp_bound(order, 0.5, log_q) for log_q in (0.0, -1e-3, -1.0, -5.0, -20.0, -100.0, -1000.0)]
        assert bounds[0] == order * 0.125
        assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(bounds))
        assert bounds[-1] < (0.5 if order > 10 else 1e-3) * bounds[0]
    assert rdp_bound(2.0, 0.5, -math.inf) == 0.0
    assert rdp_bound(2.0, 0.0, -3.0) == 0.0


@pytest.mark.parametrize(("order", "mu", "log_q"), [(2.0, 0.05, -5.0), (3.0, 0.1, -8.0), (1.2, 0.02, -20.0)])
def test_the_bound_is_theorem_4_at_its_best_orders(order: float, mu: float, log_q: float):
    """Written out in many digits, with mu_2 = sqrt(2L)/mu and mu_1 one more, above the order asked."""
    with mpmath.workdps(60):
        root = mpmath.sqrt(-2 * mpmath.mpf(log_q)) / mu
        order_1, order_2, q = 1 + root, root, mpmath.exp(log_q)
        cost_1, cost_2 = (one * mpmath.mpf(mu) ** 2 / 2 for one in (order_1, order_2))
        factor_a = (1 - q) / (1 - (q * mpmath.exp(cost_2)) ** ((order_2 - 1) / order_2))
        factor_b = mpmath.exp(cost_1) / q ** (1 / (order_1 - 1))
        total = (1 - q) * factor_a ** (order - 1) + q * factor_b ** (order - 1)
        expected = float(mpmath.log(total) / (order - 1))
    assert order < 1 + float(root)
    assert rdp_bound(order, mu, log_q) == pytest.approx(expected, rel=1e-9)


def test_theorem_4_needs_more_than_its_printed_condition():
    """With alpha_2 large the printed condition allows any q, though q exp(alpha_2) > 1 leaves A without
    meaning."""
    q, order_2, alpha_2, order_1 = 0.5, 2.0, 5.0, 3.0
    ratio = order_1 / (order_1 - 1) * order_2 / (order_2 - 1)
    assert q <= math.exp((order_2 - 1) * alpha_2) / ratio**order_2
    assert 1 - (q * math.exp(alpha_2)) ** ((order_2 - 1) / order_2) < 0
    assert rdp_bound(2.0, 2.0, math.log(0.5)) == 4.0  # ours falls back to the data-independent bound


def test_many_coordinates_gain_nothing_and_few_sure_ones_do():  # the paper's Figure 2
    mu = 2 * math.sqrt(200) / 5000
    wide = log_outcome_chances(np.zeros(784), 4000, 0.7, 5000.0)
    log_q = log_miss_probability(log_outcome_probability(wide, likeliest_outcome(wide)))
    cost = data_dependent_cost([(mu, log_q)] * 20, 1e-5)
    assert cost.epsilon == cost.independent_epsilon > 0
    narrow = log_outcome_chances(np.array([20.0]), 20, 0.4, 2.0)
    log_q = log_miss_probability(log_outcome_probability(narrow, likeliest_outcome(narrow)))
    cost = data_dependent_cost([(1.0, log_q)] * 20, 1e-5)
    assert cost.epsilon < 0.2 * cost.independent_epsilon


def test_it_cannot_be_published():
    cost = data_dependent_cost([(0.5, -30.0)], 1e-5)
    assert DataDependentCost.publishable is False
    with pytest.raises(NotPrivateError, match="may not be published"):
        cost.to_json()
    with pytest.raises(Exception, match="cannot hold"):
        Ledger.in_memory({}).append("note", {"cost": cost})
    assert summary(cost)["publishable"] is False


def test_impossible_settings_are_refused():
    tally = np.zeros(2)
    for call in (
        lambda: log_outcome_chances(tally, 10, 0.5, 0.0),
        lambda: log_outcome_chances(tally, 10, -0.5, 1.0),
        lambda: log_outcome_chances(tally, 10, 0.0, 1.0, rounded=True),
        lambda: log_outcome_probability(log_outcome_chances(tally, 10, 0.5, 1.0), np.array([0, 2])),
        lambda: log_outcome_probability(log_outcome_chances(tally, 10, 0.5, 1.0), np.array([0])),
        lambda: rdp_bound(1.0, 1.0, -1.0),
        lambda: rdp_bound(2.0, 1.0, 0.1),
        lambda: data_dependent_cost([], 0.0),
    ):
        with pytest.raises(ConfigError):
            call()
