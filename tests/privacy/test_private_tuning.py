"""The price of choosing the best of a random number of tries, against brute force on tries that can be enumerated."""

from __future__ import annotations

import math
import secrets

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, norm, poisson

from datalens.audit.second_curves import epsilon_again
from datalens.errors import BudgetError, ConfigError
from datalens.privacy import gaussian, private_tuning
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import GaussianEvent, PoissonGaussianEvent, TuningEvent, event_from_json
from datalens.privacy.ledger import costliest

ETAS = (1.0, 0.0, 2.0, -0.5)


def binned(mean: float, step: float = 0.25) -> np.ndarray:
    """A mu-Gaussian try whose output is rounded to a grid: post-processing, so at most mu-Gaussian."""
    edges = np.arange(-7, 7 + step, step)
    return np.diff(np.concatenate(([0.0], norm.cdf(edges, loc=mean), [1.0])))


def best_of(try_law: np.ndarray, tries_law: np.ndarray) -> np.ndarray:
    """Law of the best of K tries, by summing over K; tries_law[k] = P(K = k), and none at all is a last outcome."""
    cumulative = np.concatenate(([0.0], np.cumsum(try_law)))
    cumulative[-1] = 1.0
    law = np.zeros(len(try_law) + 1)
    for k, chance in enumerate(tries_law):
        if k == 0:
            law[-1] += chance
        else:
            law[:-1] += chance * np.diff(cumulative**k)
    return law


def divergence(one: np.ndarray, other: np.ndarray, order: float) -> float:
    both = (one > 0) & (other > 0)
    return math.log(np.sum(np.exp(order * np.log(one[both]) + (1 - order) * np.log(other[both])))) / (
        order - 1
    )


def tries_law(expected: float, eta: float) -> np.ndarray:
    probability = private_tuning.law(expected, eta)
    return np.array([0.0, *(probability(k) for k in range(1, 400))])


@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize(("mu", "expected"), [(0.1, 5.0), (0.5, 3.0), (1.0, 2.0)])
def test_true_divergence_of_the_best_is_below_the_bound(eta, mu, expected):
    law = tries_law(expected, eta)
    for shift in (mu, -mu):
        here, there = best_of(binned(0.0), law), best_of(binned(shift), law)
        for order in (1.5, 2.0, 4.0, 8.0):
            bound = private_tuning.rdp(order, mu, expected, eta)
            assert divergence(here, there, order) <= bound
            assert divergence(there, here, order) <= bound


@pytest.mark.parametrize(("mu", "expected"), [(0.1, 5.0), (0.5, 3.0), (1.0, 2.0)])
def test_true_divergence_is_below_the_bound_for_poisson_tries(mu, expected):
    law = poisson.pmf(np.arange(80), expected)
    for shift in (mu, -mu):
        here, there = best_of(binned(0.0), law), best_of(binned(shift), law)
        for order in (1.5, 2.0, 4.0, 8.0):
            bound = private_tuning.poisson_rdp(order, mu, expected)
            assert max(divergence(here, there, order), divergence(there, here, order)) <= bound


def test_choosing_really_costs_more_than_one_try():
    """The check above can fail: the divergence of one try is no bound for the best."""
    law = tries_law(5.0, 1.0)
    two = (best_of(np.array([0.99, 0.01]), law), best_of(np.array([0.98, 0.02]), law))
    plain = divergence(np.array([0.98, 0.02]), np.array([0.99, 0.01]), 4.0)
    assert divergence(two[1], two[0], 4.0) > 1.5 * plain


@settings(max_examples=30, deadline=None)
@given(
    chances=st.lists(st.floats(0.02, 1.0), min_size=2, max_size=6),
    tilts=st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6),
    eta=st.sampled_from(ETAS),
    expected=st.floats(1.2, 20.0),
    order=st.floats(1.2, 10.0),
)
def test_theorem_2_holds_on_arbitrary_small_tries(chances, tilts, eta, expected, order):
    """On any two discrete laws, with their true divergences in the theorem: the formula, not our closed form."""
    one = np.array(chances) / np.sum(chances)
    other = one * np.exp(tilts[: len(one)])
    other = other / other.sum()
    price = private_tuning.log_inverse_gamma(expected, eta)
    law = tries_law(expected, eta)
    law[-1] += 1 - law.sum()

    def worst(at: float) -> float:
        if at == 1.0:
            return max(float(np.sum(a * np.log(a / b))) for a, b in ((one, other), (other, one)))
        return max(divergence(one, other, at), divergence(other, one, at))

    middle = min((1 + eta) * ((1 - 1 / b) * worst(b) + price / b) for b in (1.0, 1.5, 2.0, 4.0, 16.0))
    bound = worst(order) + middle + math.log(expected) / (order - 1)
    first, second = best_of(one, law), best_of(other, law)
    assert max(divergence(first, second, order), divergence(second, first, order)) <= bound + 1e-9


@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("mu", [0.01, 0.13, 1.0, 4.0])
def test_excess_is_the_minimum_over_orders(eta, mu):
    price = private_tuning.log_inverse_gamma(5.0, eta)
    orders = 1 + np.concatenate(([0.0], np.geomspace(1e-4, 1e5, 200001)))
    slow = np.min((1 + eta) * ((1 - 1 / orders) * orders * mu * mu / 2 + price / orders))
    assert private_tuning.excess(mu, 5.0, eta) == pytest.approx(slow, rel=1e-6)


@pytest.mark.parametrize("kind", [AccountantKind.RDP, AccountantKind.CLASSIC])
@pytest.mark.parametrize("eta", ETAS)
def test_epsilon_is_the_best_order_of_the_curve(kind, eta):
    mu, expected, delta = 0.2, 5.0, 1e-5
    orders = 1 + np.geomspace(1e-2, 1e4, 40001)
    curve = np.array([private_tuning.rdp(order, mu, expected, eta) for order in orders])
    values = curve - math.log(delta) / (orders - 1)
    if kind is AccountantKind.RDP:
        values = values + np.log1p(-1 / orders) - np.log(orders) / (orders - 1)
    assert Accountant(kind).epsilon(TuningEvent(mu, expected, eta), delta) == pytest.approx(
        values.min(), rel=1e-5
    )


@pytest.mark.parametrize("eta", ETAS)
def test_number_of_tries_follows_its_law(eta):
    expected, count = 4.0, 20000
    drawn = np.array([private_tuning.draw_tries(expected, eta) for _ in range(count)])
    probability = private_tuning.law(expected, eta)
    cells = 12
    hoped = count * np.array([probability(k) for k in range(1, cells)])
    hoped = np.append(hoped, count - hoped.sum())
    found = np.bincount(np.minimum(drawn, cells), minlength=cells + 1)[1:]
    assert found.sum() == count
    assert ((found - hoped) ** 2 / hoped).sum() < chi2.isf(1e-6, cells - 1)


@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("expected", [1.5, 5.0, 30.0])
def test_law_sums_to_one_and_has_its_mean(eta, expected):
    probability = private_tuning.law(expected, eta)
    chances = np.array([probability(k) for k in range(1, 100000)])
    assert chances.sum() == pytest.approx(1, abs=1e-8)
    assert (chances * np.arange(1, 100000)).sum() == pytest.approx(expected, rel=1e-5)
    gamma = math.exp(-private_tuning.log_inverse_gamma(expected, eta))
    assert chances[1] / chances[0] == pytest.approx((1 - gamma) * (1 + eta) / 2)


def test_draw_takes_the_ends_of_the_unit_interval():
    assert private_tuning.draw_tries(5.0, 1.0, lambda _: 0) == 1
    assert private_tuning.draw_tries(5.0, 1.0, lambda top: top - 1) > 50
    assert private_tuning.draw_tries(5.0, 1.0, secrets.randbelow) >= 1


@settings(max_examples=30, deadline=None)
@given(
    mu=st.floats(0.01, 0.8),
    expected=st.floats(1.1, 50.0),
    eta=st.sampled_from(ETAS),
    kind=st.sampled_from(AccountantKind),
)
def test_epsilon_rises_with_mu_tries_and_count_and_exceeds_one_try(mu, expected, eta, kind):
    accountant = Accountant(kind)
    cost = accountant.epsilon(TuningEvent(mu, expected, eta), 1e-5)
    assert cost > gaussian.epsilon_of(1e-5, mu)
    assert accountant.epsilon(TuningEvent(mu * 1.1, expected, eta), 1e-5) > cost
    assert accountant.epsilon(TuningEvent(mu, expected * 1.1, eta), 1e-5) > cost
    assert accountant.epsilon(TuningEvent(mu, expected, eta + 0.5), 1e-5) > cost
    assert accountant.epsilon(TuningEvent(mu, expected, eta, count=2), 1e-5) > cost
    assert accountant.epsilon(TuningEvent(mu, expected, eta, bad_mass=1e-9), 1e-5) > cost


@pytest.mark.parametrize("kind", AccountantKind)
@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("mu", [0.01, 0.13, 0.6])
def test_second_accountant_agrees(kind, eta, mu):
    events = [TuningEvent(mu, 5.0, eta, 1e-10, 2), GaussianEvent(1.0, 20.0, 10)]
    ours = Accountant(kind).epsilon(events, 1e-5)
    assert math.isfinite(ours)
    assert epsilon_again([event.to_json() for event in events], 1e-5, kind) == pytest.approx(ours, rel=1e-6)


def test_beside_sampled_steps_it_is_summed_on_their_orders():
    tuning, sampled = TuningEvent(0.2, 5.0), PoissonGaussianEvent(0.01, 1.0, 100)
    both = Accountant().epsilon([tuning, sampled], 1e-5)
    assert max(Accountant().epsilon(tuning, 1e-5), Accountant().epsilon(sampled, 1e-5)) < both
    nearly = Accountant().epsilon([tuning, PoissonGaussianEvent(1e-6, 100.0)], 1e-5)
    assert nearly == pytest.approx(Accountant().epsilon(tuning, 1e-5), rel=5e-3)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 10.0])
def test_calibration_does_not_overshoot(epsilon):
    def cost(mu: float) -> float:
        return Accountant().epsilon(TuningEvent(mu, 5.0, 1.0, 1e-11), 1e-5)

    mu = private_tuning.mu_for(cost, epsilon)
    assert 0.999 * epsilon < cost(mu) <= epsilon
    with pytest.raises(BudgetError, match="too small"):
        private_tuning.mu_for(cost, 1e-12)


def test_price_of_five_expected_tries_at_epsilon_one():
    """Printed in docs/privacy.md: each try could have had epsilon 0.45 alone."""
    mu = private_tuning.mu_for(lambda m: Accountant().epsilon(TuningEvent(m, 5.0), 1e-5), 1.0)
    assert mu == pytest.approx(0.1303, abs=1e-4)
    assert gaussian.epsilon_of(1e-5, mu) == pytest.approx(0.4545, abs=1e-3)


@pytest.mark.parametrize(
    ("expected", "eta"), [(1.0, 1.0), (math.nan, 1.0), (1e3, 1.0), (5.0, -1.0), (5.0, math.inf)]
)
def test_laws_out_of_range_are_refused(expected, eta):
    with pytest.raises(ConfigError):
        TuningEvent(0.1, expected, eta)


def test_event_is_read_back_grouped_and_stood_for_by_a_costlier_one():
    event = TuningEvent(0.1, 5.0, 0.0, 1e-11, 2)
    assert event_from_json(event.to_json()) == event
    other = TuningEvent(0.2, 2.0, 1.0)
    [worst] = costliest([event, other])
    assert all(
        Accountant(kind).epsilon(worst, 1e-5) >= Accountant(kind).epsilon(each, 1e-5)
        for kind in AccountantKind
        for each in (event, other)
    )


def test_bad_mass_is_what_a_worse_sampler_can_do():
    """A try within t of the ideal one, the best of K tries within E[K] t: at its worst, on two outcomes."""
    law, shift = tries_law(5.0, 1.0), 1e-3
    ideal, real = best_of(np.array([1.0, 0.0]), law), best_of(np.array([1 - shift, shift]), law)
    distance = np.abs(ideal - real).sum() / 2
    assert 0.9 * 5 * shift < distance <= 5 * shift
    assert private_tuning.sampler_mass(5.0, 1, 0.0, shift) >= distance
