from __future__ import annotations

import copy
import math
import time
import warnings

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp

from datalens.errors import ConfigError
from datalens.privacy import accountant, gaussian
from datalens.privacy.accountant import Accountant, AccountantKind, _integer_order
from datalens.privacy.events import GaussianEvent, NoiseKind, PoissonGaussianEvent, SamplerSlack, TuningEvent

KINDS = list(AccountantKind)
NEIGHBOURS = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE


def topagg(top_k=10, noise=200.0, count=1, **other) -> GaussianEvent:
    return GaussianEvent(2 * math.sqrt(top_k), noise, coordinates=784, count=count, **other)


@pytest.mark.parametrize("event", [topagg(count=10), topagg(4, 8.0, 5), topagg(200, 5000.0, 100)])
def test_rdp_agrees_with_dp_accounting(event):
    gap = gaussian.best_order_gap(event.mu * math.sqrt(event.count), 1e-5)
    orders = sorted({*np.geomspace(1.02, 1e4, 3000), 1 + gap})
    accountant = rdp.RdpAccountant(orders, NEIGHBOURS)
    accountant.compose(dp_accounting.GaussianDpEvent(1 / event.mu), event.count)
    assert Accountant(AccountantKind.RDP).epsilon(event, 1e-5) == pytest.approx(
        accountant.get_epsilon(1e-5), rel=1e-6
    )


@pytest.mark.parametrize(("event", "delta"), [(topagg(count=10), 1e-5), (topagg(4, 8.0, 3), 1e-6)])
def test_exact_agrees_with_dp_accounting_pld(event, delta):
    accountant = pld.PLDAccountant(NEIGHBOURS)
    accountant.compose(dp_accounting.GaussianDpEvent(1 / event.mu), event.count)
    assert Accountant().epsilon(event, delta) == pytest.approx(accountant.get_epsilon(delta), rel=0.01)


def test_defaults_to_exact_and_names_the_conversion_used():
    plain, discrete = topagg(), topagg(noise=8.0)
    discrete = GaussianEvent(discrete.sensitivity, 8.0, 784, NoiseKind.DISCRETE)
    assert Accountant().kind is AccountantKind.EXACT
    assert Accountant().used_for(plain) is AccountantKind.EXACT
    assert Accountant().used_for([plain, discrete]) is AccountantKind.RDP
    assert Accountant(AccountantKind.CLASSIC).used_for([discrete]) is AccountantKind.CLASSIC


def test_discrete_noise_in_a_sum_makes_the_whole_sum_rdp():
    events = [topagg(count=3), GaussianEvent(2.0, 50.0, 784, NoiseKind.DISCRETE, count=2)]
    total = math.sqrt(sum(event.count * event.mu**2 for event in events))
    assert Accountant().epsilon(events, 1e-5) == pytest.approx(gaussian.rdp_epsilon(total, 1e-5), rel=1e-12)
    assert Accountant().epsilon(events, 1e-5) > gaussian.epsilon_of(1e-5, total)


@pytest.mark.parametrize("kind", KINDS)
def test_no_events_cost_nothing_and_no_noise_costs_everything(kind):
    accountant = Accountant(kind)
    assert accountant.epsilon([], 1e-5) == 0.0
    assert accountant.delta([], 1.0) == 0.0
    bare = GaussianEvent(2.0, 0.0, 784, NoiseKind.NONE)
    assert accountant.epsilon([topagg(), bare], 1e-5) == math.inf
    assert accountant.delta([topagg(), bare], 5.0) == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_delta_inverts_epsilon(kind):
    accountant, events = Accountant(kind), [topagg(count=20), topagg(4, 8.0)]
    epsilon = accountant.epsilon(events, 1e-5)
    assert accountant.delta(events, epsilon) == pytest.approx(1e-5, rel=1e-5)
    assert accountant.delta(events, epsilon * 0.9) > 1.2e-5
    assert accountant.delta(events, 0.0) <= 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_r23_queries_have_no_side_effects(kind):
    accountant = Accountant(kind)
    events = [topagg() for _ in range(100)] + [topagg(noise=300.0)]
    before = copy.deepcopy(events)
    first = [accountant.epsilon(events, 1e-5) for _ in range(3)]
    assert first[0] == first[1] == first[2]
    assert events == before
    assert sum(event.count for event in events) == 101
    assert accountant == Accountant(kind)


def test_epsilon_is_fast_enough_for_every_step_of_training():
    events = [topagg(200, 5000.0, count=count) for count in range(1, 30)]
    for kind in KINDS:
        accountant = Accountant(kind)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            accountant.epsilon(events, 1e-5)
            times.append(time.perf_counter() - start)
        assert min(times) < 2e-3


# -- sampler slack -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "slack", [SamplerSlack(1e-9, 0.0), SamplerSlack(0.0, 1e-14), SamplerSlack(1e-8, 1e-15)]
)
def test_slack_holds_as_stated_and_is_tight(kind, slack):
    plain, event = topagg(4, 8.0, 10), topagg(4, 8.0, 10, slack=slack)
    draws = 10 * 784
    log_ratio, bad_mass = draws * slack.eta, draws * slack.tau
    accountant = Accountant(kind)
    epsilon = accountant.epsilon(event, 1e-5)
    base = epsilon - 2 * log_ratio
    proved = math.exp(log_ratio) * accountant.delta(plain, base) + (1 + math.exp(epsilon)) * bad_mass
    assert proved <= 1e-5 * (1 + 1e-9 if kind is AccountantKind.EXACT else 1 + 2e-6)
    assert epsilon > accountant.epsilon(plain, 1e-5)
    shorter = epsilon * (1 - 1e-5)
    base = shorter - 2 * log_ratio
    assert math.exp(log_ratio) * accountant.delta(plain, base) + (1 + math.exp(shorter)) * bad_mass > 1e-5
    assert accountant.delta(event, epsilon) == pytest.approx(1e-5, rel=1e-5)


def test_negligible_slack_changes_nothing_visible():
    event = topagg(200, 5000.0, 2000, slack=SamplerSlack(2.0**-100, 2.0**-120))
    assert Accountant().epsilon(event, 1e-5) == pytest.approx(
        Accountant().epsilon(topagg(200, 5000.0, 2000), 1e-5)
    )


def test_slack_too_large_for_delta_is_without_bound():
    event = topagg(slack=SamplerSlack(0.0, 1e-7))  # 784 draws: more bad mass than delta
    for kind in KINDS:
        assert Accountant(kind).epsilon(event, 1e-5) == math.inf
        assert Accountant(kind).delta(event, 0.0) > 1e-5


def test_a_53_bit_sampler_is_not_enough():
    """Half a unit of 2^-53 on the chance of every value is a visible share of delta where values are rare."""
    small = Accountant().epsilon(topagg(4, 8.0, slack=SamplerSlack(0.0, 2.0**-33)), 1e-5)
    assert small > Accountant().epsilon(topagg(4, 8.0), 1e-5) * 1.001


# -- Poisson sampling ----------------------------------------------------------------------------------------


def epsilon_of(rate, noise, count, kind=AccountantKind.RDP, delta=1e-5):
    return Accountant(kind).epsilon(PoissonGaussianEvent(rate, noise, count), delta)


def test_r01_poisson_steps_agree_with_known_values():
    assert epsilon_of(0.01, 1.0, 100) == pytest.approx(1.214, rel=0.01)
    assert epsilon_of(0.01, 1.0, 200) == pytest.approx(1.340, rel=0.01)


def test_r25_the_better_conversion_is_used_for_sampled_steps_and_is_named():
    """Between the tight value and that of the improved conversion, 2.608; the classic one, 2.9, is another kind."""
    steps = PoissonGaussianEvent(1024 / 50000, 1.54, 1464)
    for kind in (AccountantKind.EXACT, AccountantKind.RDP):
        assert 2.386 <= epsilon_of(1024 / 50000, 1.54, 1464, kind) <= 2.62
        assert Accountant(kind).used_for([steps]) is AccountantKind.RDP
    assert epsilon_of(1024 / 50000, 1.54, 1464, AccountantKind.CLASSIC) > 2.7
    assert Accountant(AccountantKind.CLASSIC).used_for([steps]) is AccountantKind.CLASSIC


def test_r26_a_rate_of_one_is_the_plain_gaussian():
    assert 4.98 <= epsilon_of(1.0, 2.0, 5) <= 6.0
    assert epsilon_of(1.0, 2.0, 5) == pytest.approx(5.38, rel=0.01)


def test_large_orders_agree_with_dp_accounting():
    accountant = rdp.RdpAccountant([65, 128, 500], NEIGHBOURS)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(5.0)))
    found = [_integer_order(order, 0.01, 5.0) for order in (65, 128, 500)]
    assert found == pytest.approx(list(accountant.rdp), rel=1e-8)


def test_r12_order_grid_is_wide_enough_on_both_sides():
    small = Accountant().epsilon(PoissonGaussianEvent(0.001, 10.0, 10), 1e-5)
    assert small <= 0.0036 * 1.1
    large = Accountant().epsilon(PoissonGaussianEvent(0.5, 0.5, 100), 1e-5)
    assert large <= 209.4 * 1.1
    assert Accountant().epsilon(PoissonGaussianEvent(0.00105, 1.0, 1), 1e-3) == 0.0


def test_poisson_steps_in_a_ledger_with_gaussians_are_summed_by_rdp():
    gaussian_part, sampled = topagg(count=10), PoissonGaussianEvent(1.0, 4.0, 3)
    both = Accountant().epsilon([gaussian_part, sampled], 1e-5)
    total = math.sqrt(10 * gaussian_part.mu**2 + 3 / 16)
    assert Accountant().used_for([gaussian_part, sampled]) is AccountantKind.RDP
    assert both == pytest.approx(gaussian.rdp_epsilon(total, 1e-5), rel=0.01)
    assert both >= gaussian.rdp_epsilon(total, 1e-5) * (1 - 1e-9)
    classic = Accountant(AccountantKind.CLASSIC).epsilon([gaussian_part, sampled], 1e-5)
    assert classic == pytest.approx(gaussian.rdp_classic_epsilon(total, 1e-5), rel=0.01)
    assert Accountant().delta([gaussian_part, sampled], both) == pytest.approx(1e-5, rel=1e-5)


def test_best_order_at_the_edge_is_said():
    event = [PoissonGaussianEvent(1e-4, 1000.0, 1)]
    with pytest.warns(UserWarning, match="edge"):
        Accountant().epsilon(event, 1e-12)


@pytest.mark.parametrize(
    ("event", "delta", "said"),
    [
        (
            PoissonGaussianEvent(1e-4, 0.01, 1),
            1e-2,
            {AccountantKind.RDP, AccountantKind.CLASSIC},
        ),  # first order
        (PoissonGaussianEvent(1e-4, 0.01, 1), 1e-5, set()),  # the second
        (
            PoissonGaussianEvent(1e-4, 100.0, 1),
            1e-2,
            {AccountantKind.CLASSIC},
        ),  # its last; the other comes to 0
    ],
)
def test_only_the_first_and_the_last_order_are_edges_of_the_conversion_in_use(event, delta, said):
    found = set()
    for kind in (AccountantKind.RDP, AccountantKind.CLASSIC):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Accountant(kind).epsilon(event, delta)
        found |= {kind} if any("at the edge" in str(one.message) for one in caught) else set()
    assert found == said


def test_a_tuning_is_priced_by_renyi_divergences_alone():
    assert Accountant().used_for(TuningEvent(0.1, 5.0)) is AccountantKind.RDP


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_noise_that_an_event_takes_costs_more_than_anyone_can_spend(kind):
    """Beyond the range of floats a divergence once came out as none at all: epsilon 0 for no noise to speak of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert Accountant(kind).epsilon(PoissonGaussianEvent(0.5, 1e-50, 10**50), 1e-5) > 1e100
        assert Accountant(kind).epsilon(GaussianEvent(1e50, 1e-50, 1, count=10**50), 1e-5) > 1e100
        assert Accountant(kind).epsilon(TuningEvent(1e50, 5.0), 1e-5) > 1e90


@pytest.mark.parametrize("kind", [AccountantKind.RDP, AccountantKind.CLASSIC])
@pytest.mark.parametrize("steps", [PoissonGaussianEvent(0.01, 1.0, 1000), PoissonGaussianEvent(0.2, 2.3, 60)])
def test_the_best_order_between_two_of_the_grid_is_found(kind, steps):
    """On both sides of the best of the grid: within four ten-thousandths of the least of 400 orders around it."""
    classic = kind is AccountantKind.CLASSIC
    totals = accountant._totals(steps)
    for delta in (1e-4, 1e-5, 1e-6, 1e-7, 1e-8):
        found, best = accountant._best_on_grid(totals, delta, classic=classic)
        around = np.linspace(accountant.POISSON_ORDERS[best - 1], accountant.POISSON_ORDERS[best + 1], 400)
        least = accountant._values_at(tuple(around.tolist()), totals, delta, classic=classic).min()
        assert least * (1 - 1e-9) <= found <= least * (1 + 4e-4)


def test_a_curve_that_is_no_number_is_infinite(monkeypatch):
    curve = np.full(len(accountant.POISSON_ORDERS), 0.25)
    curve[:3] = math.nan, -1.0, math.inf
    monkeypatch.setattr(accountant, "_poisson_curve", lambda *_: curve)
    totals = accountant._totals(PoissonGaussianEvent(0.5, 1.0))
    values = accountant._values_at(accountant.POISSON_ORDERS, totals, 1e-5, classic=True)
    assert np.isposinf(values[:3]).all() and np.isfinite(values[3:]).all()


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1.0, 2.0, -1e-5, math.nan])
def test_delta_outside_the_open_interval_is_refused(delta):
    for kind in KINDS:
        with pytest.raises(ConfigError):
            Accountant(kind).epsilon(topagg(), delta)


def test_unknown_accountant_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="exact, rdp, rdp-classic"):
        Accountant("moments")  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [-1e-9, math.nan])
def test_delta_at_an_epsilon_without_meaning_is_refused(epsilon):
    with pytest.raises(ConfigError, match="must be 0 or more"):
        Accountant().delta(GaussianEvent(1.0, 1.0, 1), epsilon)


@pytest.mark.parametrize("kind", list(AccountantKind))
def test_a_tuning_beside_a_release_without_noise_has_no_price(kind):
    events = [TuningEvent(0.1, 5.0), GaussianEvent(1.0, 0.0, 1, NoiseKind.NONE)]
    assert Accountant(kind).epsilon(events, 1e-5) == math.inf
    assert Accountant(kind).epsilon(events[:1], 1e-5) < math.inf
