"""Properties that hold for every list of events, checked on random ones."""

from __future__ import annotations

import math
from dataclasses import replace

import dp_accounting
import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.privacy import calibration
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import GaussianEvent, SamplerSlack, compact, event_from_json, times
from datalens.privacy.ledger import Ledger

quick = settings(max_examples=60, deadline=None)
kinds = st.sampled_from(list(AccountantKind))
deltas = st.floats(-25, -1).map(lambda power: 10.0**power)
mus = st.floats(-4, 0.7).map(lambda power: 10.0**power)
events = st.builds(
    lambda mu, noise, coordinates, count: GaussianEvent(mu * noise, noise, coordinates, count=count),
    mus,
    st.floats(0.5, 1e4),
    st.integers(1, 20_000),
    st.integers(1, 40),
)
lists = st.lists(events, min_size=1, max_size=5)
slacks = st.builds(SamplerSlack, st.floats(0, 1e-25), st.floats(0, 1e-40))
UP = 1 + 1e-9


@quick
@given(kinds, lists, deltas)
def test_epsilon_is_a_number_and_never_negative(kind, some, delta):
    epsilon = Accountant(kind).epsilon(some, delta)
    assert 0 <= epsilon < math.inf


@quick
@given(kinds, events, st.floats(1.0, 50.0), deltas)
def test_more_noise_never_costs_more(kind, event, factor, delta):
    accountant = Accountant(kind)
    quieter = replace(event, noise_stddev=event.noise_stddev * factor)
    assert accountant.epsilon(quieter, delta) <= accountant.epsilon(event, delta) * UP


@quick
@given(kinds, lists, events, deltas)
def test_another_release_never_costs_less(kind, some, event, delta):
    accountant = Accountant(kind)
    assert accountant.epsilon(some, delta) <= accountant.epsilon([*some, event], delta) * UP


@quick
@given(kinds, lists, deltas, st.floats(1.0, 1e6))
def test_a_smaller_delta_never_costs_less(kind, some, delta, factor):
    accountant = Accountant(kind)
    assert accountant.epsilon(some, delta) <= accountant.epsilon(some, delta / factor) * UP


@quick
@given(kinds, events, slacks, st.integers(1, 30), deltas)
def test_many_releases_cost_what_one_costs_many_times(kind, event, slack, count, delta):
    accountant, event = Accountant(kind), replace(event, slack=slack)
    together = accountant.epsilon(times(event, count), delta)
    assert accountant.epsilon([event] * count, delta) == pytest.approx(together, rel=1e-12, abs=1e-15)
    assert accountant.epsilon(compact([event] * count), delta) == together


@quick
@given(kinds, lists, deltas, st.randoms(use_true_random=False))
def test_the_order_of_releases_does_not_matter(kind, some, delta, random):
    shuffled = list(some)
    random.shuffle(shuffled)
    assert Accountant(kind).epsilon(shuffled, delta) == Accountant(kind).epsilon(some, delta)


@quick
@given(lists, slacks, deltas)
def test_exact_is_below_rdp_is_below_classic(some, slack, delta):
    some = [replace(event, slack=slack) for event in some]
    exact, rdp, classic = (Accountant(kind).epsilon(some, delta) for kind in AccountantKind)
    assert exact <= rdp <= classic


@quick
@given(kinds, events, st.floats(0, 1e-12), st.floats(0, 1e-12), deltas)
def test_slack_never_makes_it_cheaper(kind, event, eta, tau, delta):
    accountant = Accountant(kind)
    slack = SamplerSlack(eta, tau)
    assert accountant.epsilon(event, delta) <= accountant.epsilon(replace(event, slack=slack), delta) * UP


@quick
@given(kinds, lists, deltas)
def test_delta_gives_back_at_most_what_epsilon_was_asked_for(kind, some, delta):
    accountant = Accountant(kind)
    epsilon = accountant.epsilon(some, delta)
    assert accountant.delta(some, epsilon) <= delta * (1 + 1e-5)


@quick
@given(kinds, events, st.floats(0.01, 50.0), deltas)
def test_the_number_of_releases_never_overshoots(kind, event, epsilon, delta):
    count = calibration.max_releases(event, epsilon, delta, kind)
    if count:
        assert calibration.epsilon_for(event, count, delta, kind) <= epsilon
    assert calibration.epsilon_for(event, count + 1, delta, kind) > epsilon


@settings(max_examples=25, deadline=None)
@given(kinds, st.floats(0.5, 500.0), st.integers(1, 3000), st.floats(0.05, 50.0), st.floats(-15, -2))
def test_noise_never_overshoots_and_wastes_at_most_a_hundredth(kind, sensitivity, count, epsilon, power):
    event = GaussianEvent(sensitivity, 1.0, 784)
    noise = calibration.noise_for(event, count, epsilon, 10.0**power, kind)
    found = calibration.epsilon_for(replace(event, noise_stddev=noise), count, 10.0**power, kind)
    assert 0.99 * epsilon <= found <= epsilon


@settings(max_examples=4, deadline=None)
@given(st.floats(0.3, 1.2), st.integers(1, 20), st.floats(-8, -3))
def test_exact_agrees_with_pld_to_a_hundredth(mu, count, power):
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(dp_accounting.GaussianDpEvent(1 / mu), count)
    ours = Accountant().epsilon(GaussianEvent(mu, 1.0, 1, count=count), 10.0**power)
    assert ours == pytest.approx(accountant.get_epsilon(10.0**power), rel=0.01)


@quick
@given(events, st.integers(1, 10), deltas)
def test_a_group_costs_what_its_size_squared_releases_cost(event, size, delta):
    group = Accountant().epsilon(replace(event, sensitivity=size * event.sensitivity), delta)
    assert group == pytest.approx(Accountant().epsilon(times(event, size * size), delta), rel=1e-9)


@quick
@given(lists, slacks)
def test_the_ledger_gives_back_the_very_events(some, slack):
    some = [replace(event, slack=slack) for event in some]
    ledger = Ledger.in_memory({})
    for event in some:
        assert event_from_json(event.to_json()) == event
        ledger.charge(event)
    assert list(ledger.events()) == some
