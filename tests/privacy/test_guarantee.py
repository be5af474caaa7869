"""What is promised at any delta: what was authorised, whatever was spent of it."""

from __future__ import annotations

import math

import pytest

from datalens.errors import ConfigError, LedgerError
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.authorisation import Authorisation
from datalens.privacy.budget import Budget
from datalens.privacy.events import GaussianEvent, times
from datalens.privacy.guarantee import _as_one_release, counted, guaranteed_epsilon, planned_events
from datalens.privacy.ledger import Ledger

STEP = GaussianEvent(2 * math.sqrt(10), 200.0, coordinates=784)
DELTAS = (1e-12, 1e-7, 1e-5, 1e-3)


def _ledger(authorisation: Authorisation, charged: int, **header: object) -> Ledger:
    ledger = Ledger.in_memory({"authorisation": authorisation.to_json(), **header})
    budget = Budget(ledger)
    for _ in range(charged):
        budget.charge(STEP)
    return ledger


@pytest.mark.parametrize("kind", list(AccountantKind))
@pytest.mark.parametrize("charged", [0, 1, 20])
def test_an_early_stop_lowers_nothing_at_any_delta(kind: AccountantKind, charged: int) -> None:
    ledger = _ledger(Authorisation(2.0, 1e-5, kind, num_releases=20, planned=STEP), charged)
    for delta in DELTAS:
        assert guaranteed_epsilon(ledger, delta) == Accountant(kind).epsilon(times(STEP, 20), delta)


@pytest.mark.parametrize("kind", list(AccountantKind))
def test_a_bare_ceiling_covers_every_run_that_it_allows(kind: AccountantKind) -> None:
    ledger = _ledger(Authorisation(0.5, 1e-5, kind), 3)
    allowed = Budget(ledger).remaining_releases(STEP) + 3
    assert guaranteed_epsilon(ledger, 1e-5) == 0.5
    for delta in DELTAS:
        most = Accountant(kind).epsilon(times(STEP, allowed), delta)
        assert most <= guaranteed_epsilon(ledger, delta) <= 1.3 * most


def test_the_larger_of_two_authorisations_counts_whichever_came_first() -> None:
    for second in (0.4, 0.9):
        ledger = _ledger(Authorisation(0.7, 1e-5), 1)
        Budget(ledger).authorise(Authorisation(second, 1e-5), "after looking")
        assert guaranteed_epsilon(ledger, 1e-5) == max(0.7, second)


def test_more_spent_than_authorised_is_said() -> None:
    ledger = _ledger(Authorisation(0.5, 1e-5), 0)
    ledger.charge(times(STEP, 100))
    assert guaranteed_epsilon(ledger, 1e-5) == Accountant().epsilon(ledger.events(), 1e-5) > 0.5


def test_without_noise_nothing_is_promised_even_before_the_first_step() -> None:
    assert guaranteed_epsilon(_ledger(Authorisation.not_private(), 0), 1e-5) == math.inf


def test_nonsense_is_refused() -> None:
    ledger = _ledger(Authorisation(0.5, 1e-5), 0)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(ConfigError):
            guaranteed_epsilon(ledger, delta)
    with pytest.raises(LedgerError, match="authorises nothing"):
        guaranteed_epsilon(Ledger.in_memory(), 1e-5)


def test_the_plan_in_a_ledgers_first_line_is_what_other_deltas_are_priced_by() -> None:
    planned = (times(STEP, 7), GaussianEvent(1.0, 50.0, 1))
    terms = Authorisation(2.0, 1e-5)
    ledger = _ledger(terms, 0, planned_events=[event.to_json() for event in planned])
    assert planned_events(ledger, terms) == planned
    assert guaranteed_epsilon(ledger, 1e-7) == Accountant().epsilon(planned, 1e-7)


def test_a_ceiling_below_the_first_look_is_found_from_above() -> None:
    least = Authorisation(1e-9, 1e-300)
    found = Accountant().epsilon(_as_one_release(least), 1e-300)
    assert 1e-9 <= found <= 1e-9 * (1 + 1e-6)


def test_only_what_promises_nothing_is_told_of_a_release_without_noise() -> None:
    assert counted((STEP,), Authorisation(2.0, 1e-5)) == (STEP,)
    assert Accountant().epsilon(counted((STEP,), Authorisation.not_private()), 1e-5) == math.inf
