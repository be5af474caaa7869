"""One record replaced by two moves: found again also where a little less delta would have no cost at all."""

from __future__ import annotations

import math

import pytest

from datalens.audit.second_sampling import two_moves


def cost(delta: float, least: float) -> float:
    """An epsilon that grows as delta shrinks, and is infinite below the slack of a sampler."""
    return math.inf if delta < least else 2 * math.sqrt(math.log(1 / delta))


@pytest.mark.parametrize("least", [0.0, 3e-11])
def test_the_least_fixed_point_is_found_short_of_the_slack(least: float) -> None:
    found = two_moves(lambda delta: cost(delta, least), 1e-6) / 2
    assert found == pytest.approx(cost(1e-6 / (1 + math.exp(found)), 0.0), rel=1e-6)


def test_beyond_the_slack_there_is_none() -> None:
    assert two_moves(lambda delta: cost(delta, 1e-7), 1e-6) == math.inf
