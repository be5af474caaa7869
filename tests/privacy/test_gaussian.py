from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from datalens.errors import ConfigError
from datalens.privacy import gaussian


def reference_log_delta(epsilon: float, mu: float) -> float:
    """The curve of Balle and Wang in 80 digits."""
    with mpmath.workdps(80):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        first = mpmath.ncdf(mu / 2 - epsilon / mu)
        return float(mpmath.log(first - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)))


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.049, 0.051, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0])
def test_exact_curve_agrees_with_high_precision(mu):
    for distance in (0.0, 0.1, 1.0, 4.9, 5.1, 11.0, 31.0, 90.0):
        for epsilon in (distance * mu, mu * mu / 2 + distance * mu, max(0.0, mu * mu / 2 - distance * mu)):
            expected = reference_log_delta(epsilon, mu)
            found = gaussian.log_delta_of(epsilon, mu)
            assert found == pytest.approx(expected, rel=1e-11, abs=1e-11 if expected < -1 else 1e-13)


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.5, 5.0, 30.0, 100.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-10, 1e-5, 0.1, 0.9])
def test_epsilon_of_is_just_enough(mu, delta):
    epsilon = gaussian.epsilon_of(delta, mu)
    assert epsilon >= 0
    assert reference_log_delta(epsilon, mu) <= math.log(delta) + 1e-9
    if epsilon > 0:
        assert reference_log_delta(epsilon * (1 - 1e-7), mu) > math.log(delta)


def test_mu_of_inverts_epsilon_of_without_overshooting():
    for mu in (1e-5, 0.1, 1.0, 40.0):
        epsilon = gaussian.epsilon_of(1e-9, mu)
        found = gaussian.mu_of(epsilon, 1e-9)
        assert gaussian.log_delta_of(epsilon, found) <= math.log(1e-9)
        assert found == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize("mu", [1e-6, 0.005, 0.5, 4.0, 100.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-5, 0.3])
def test_rdp_conversion_is_the_minimum_over_a_wide_fine_grid(mu, delta):
    orders = 1 + np.exp(np.linspace(math.log(1e-8), math.log(1e12), 400_001))
    values = orders * mu * mu / 2 + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    expected = max(0.0, float(values.min()))
    found = gaussian.rdp_epsilon(mu, delta)
    assert found <= expected * (1 + 1e-9) + 1e-15
    best = gaussian.best_order_gap(mu, delta)
    if found > 0:
        assert found == pytest.approx(expected, rel=1e-6)
        assert 1e-8 < best < 1e12


def test_r12_best_order_of_one_topagg_release_is_far_beyond_common_grids():
    assert 1 + gaussian.best_order_gap(2 * math.sqrt(200) / 5000, 1e-5) == pytest.approx(571, rel=0.01)


def test_classic_conversion_is_the_minimum_over_orders():
    orders = 1 + np.geomspace(1e-3, 1e6, 200_001)
    for mu in (0.01, 1.0, 9.0):
        expected = float((orders * mu * mu / 2 + math.log(1e5) / (orders - 1)).min())
        assert gaussian.rdp_classic_epsilon(mu, 1e-5) == pytest.approx(expected, rel=1e-7)


def test_nothing_released_costs_nothing_and_no_noise_costs_everything():
    for curve in (gaussian.epsilon_of, lambda delta, mu: gaussian.rdp_epsilon(mu, delta)):
        assert curve(1e-5, 0.0) == 0.0
        assert curve(1e-5, math.inf) == math.inf
    assert gaussian.rdp_classic_epsilon(0.0, 1e-5) == 0.0
    assert gaussian.delta_of(math.inf, 1.0) == 0.0


@pytest.mark.parametrize("delta", [0, 1, 2, -1e-5, math.nan, math.inf])
def test_r28_delta_outside_the_open_interval_is_refused(delta):
    for call in (
        lambda: gaussian.epsilon_of(delta, 1.0),
        lambda: gaussian.rdp_epsilon(1.0, delta),
        lambda: gaussian.rdp_classic_epsilon(1.0, delta),
        lambda: gaussian.mu_of(1.0, delta),
    ):
        with pytest.raises(ConfigError, match="strictly between 0 and 1"):
            call()


@pytest.mark.parametrize("order", [1, 0.5, 0, -3, math.nan, math.inf])
def test_r12_orders_up_to_one_are_refused(order):  # R12; "for all lambda >= 1" of Theorem 3 needs lambda > 1
    with pytest.raises(ConfigError, match="above 1"):
        gaussian.rdp(order, 1.0)


@pytest.mark.parametrize("mu", [-1.0, math.nan])
def test_impossible_mu_is_refused(mu):
    with pytest.raises(ConfigError, match="mu="):
        gaussian.epsilon_of(1e-5, mu)


def test_r05_rdp_of_one_topagg_release_is_two_k_alpha_over_sigma_squared():
    assert gaussian.rdp(7.0, 2 * math.sqrt(10) / 200) == pytest.approx(2 * 10 * 7.0 / 200**2)


@pytest.mark.parametrize("mu", [1e-320, 1e-310, 1e-300])
def test_the_search_ends_among_the_smallest_numbers(mu):
    assert 0 <= gaussian.epsilon_of(5e-324, mu) < 1e-290


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-100), (0.0, 1e-40)])
def test_a_mu_too_small_to_be_found_is_not_overshot(epsilon, delta):
    found = gaussian.mu_of(epsilon, delta)
    assert 0 <= found <= delta * math.sqrt(2 * math.pi) * (1 + 1e-9)  # delta_of(0, mu) is mu / sqrt(2 pi)


@pytest.mark.parametrize("mu", [1e-6, 0.5, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5])
def test_the_best_order_is_the_root_of_the_derivative(mu, delta):
    gap = gaussian.best_order_gap(mu, delta)
    assert gap * gap * mu * mu / 2 + math.log1p(gap) == pytest.approx(-math.log(delta), rel=1e-8)


@pytest.mark.parametrize(
    "call", [lambda: gaussian.log_delta_of(math.nan, 1.0), lambda: gaussian.mu_of(-1.0, 0.1)]
)
def test_numbers_without_meaning_are_refused(call):
    with pytest.raises(ConfigError, match="epsilon="):
        call()


def test_the_ends_of_the_curve():
    assert gaussian.log_delta_of(0.0, 0.0) == -math.inf
    assert gaussian.delta_of(-math.log(4), 0.0) == pytest.approx(0.75)
    assert gaussian.log_delta_of(5.0, math.inf) == 0.0
    assert gaussian.log_delta_of(math.inf, 5.0) == -math.inf
    assert gaussian.log_delta_of(-1e-17, 1e-18) == -math.inf  # next to nothing is lost, and rounds to nothing
