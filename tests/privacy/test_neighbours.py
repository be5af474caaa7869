"""What replacing a record costs, in each of the cases that a certificate knows."""

from __future__ import annotations

from typing import Any

import pytest

from datalens.errors import LedgerError
from datalens.privacy import promises
from datalens.privacy.accountant import Accountant
from datalens.privacy.events import Event, GaussianEvent, PoissonGaussianEvent, times
from datalens.privacy.ledger import Ledger
from datalens.privacy.neighbours import adjacency_means, replace_one
from datalens.privacy.replacing import replace_one_epsilon

EVENT, DELTA = GaussianEvent(2.0, 20.0, 8, count=5), 1e-5
PRICE = Accountant().epsilon(EVENT, DELTA)


def _cost(plan: tuple[Event, ...], events: tuple[Event, ...] = (), **header: Any) -> tuple[float | None, str]:
    found = replace_one(Ledger.in_memory(header), Accountant(), PRICE, plan, events, DELTA)
    return found["epsilon"], found["why"]


def test_teachers_make_it_the_same() -> None:
    assert _cost((EVENT,)) == (PRICE, promises.REPLACE_ONE_TEXT)


def test_two_groups_may_sit_with_two_teachers() -> None:
    group = {"adjacency": promises.ADD_OR_REMOVE_GROUP}
    twice = Accountant().epsilon(GaussianEvent(4.0, 20.0, 8, count=5), DELTA)
    assert _cost((EVENT,), **group) == (twice, promises.REPLACE_ONE_GROUP_TEXT)
    assert _cost((), **group) == (None, promises.REPLACE_ONE_GROUP_TEXT)
    with pytest.raises(LedgerError, match="a run with groups plans a PoissonGaussianEvent"):
        _cost((PoissonGaussianEvent(0.1, 1.0),), **group)


def test_sampled_steps_cost_two_moves() -> None:
    step = PoissonGaussianEvent(0.01, 2.0, 10)
    bound = replace_one_epsilon(Accountant(), (step,), DELTA)
    assert _cost((step,)) == (bound, promises.REPLACE_ONE_BY_TWO_TEXT)
    assert _cost((), (step,)) == (None, promises.REPLACE_ONE_BY_TWO_TEXT)


def test_what_was_planned_for_it_never_costs_less_than_the_promise() -> None:
    more, less = GaussianEvent(3.0, 20.0, 8, count=5), GaussianEvent(1.0, 20.0, 8)
    dearer = Accountant().epsilon(more, DELTA)
    assert _cost((EVENT,), replace_one_events=[more.to_json()]) == (dearer, promises.REPLACE_ONE_COUNTED)
    assert _cost((EVENT,), replace_one_events=[less.to_json()]) == (PRICE, promises.REPLACE_ONE_COUNTED)
    both = [less.to_json(), times(more, 2).to_json()]
    assert (_cost((EVENT,), replace_one_events=both)[0] or 0) > dearer


def test_the_relation_in_words() -> None:
    assert adjacency_means({}) == promises.ADJACENCY_TEXT[promises.BLANKED].replace(
        "{whose}", promises.ONE_RECORD
    )
    baseline = {"adjacency": promises.ADD_OR_REMOVE, "replace_one_events": []}
    assert adjacency_means(baseline) == promises.ADJACENCY_OF_BASELINES.replace(
        "{whose}", promises.ONE_RECORD
    )
    assert adjacency_means({"adjacency": promises.ADD_OR_REMOVE}) == promises.ADJACENCY_TEXT[
        promises.ADD_OR_REMOVE
    ].replace("{whose}", promises.ONE_RECORD)
    assert adjacency_means({"adjacency": "of my own"}) == "of my own"
