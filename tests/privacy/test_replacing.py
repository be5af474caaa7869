"""The bound for replacing a record: sound where the truth is known, and no looser than it needs to be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from datalens.errors import ConfigError
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import GaussianEvent, PoissonGaussianEvent
from datalens.privacy.replacing import replace_one_epsilon

DELTA = 1e-5
EXACT = Accountant(AccountantKind.EXACT)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("kind", list(AccountantKind))
def test_it_covers_a_gaussian_whose_replacement_is_known(mu: float, kind: AccountantKind) -> None:
    """Adding and removing move the sum by one each, in the worst case to opposite sides: by two together."""
    bound = replace_one_epsilon(Accountant(kind), GaussianEvent(mu, 1.0, 1), DELTA)
    assert EXACT.epsilon(GaussianEvent(2 * mu, 1.0, 1), DELTA) <= bound


@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_what_it_returns_satisfies_its_condition_and_nothing_much_smaller_does(mu: float) -> None:
    event = GaussianEvent(mu, 1.0, 1)
    half = replace_one_epsilon(EXACT, event, DELTA) / 2
    assert EXACT.delta(event, half) * (1 + math.exp(half)) <= DELTA * (1 + 1e-6)
    less = half * (1 - 1e-4)
    assert EXACT.delta(event, less) * (1 + math.exp(less)) > DELTA


def test_it_covers_the_worst_pair_of_one_sampled_step() -> None:
    """Sampled, a record pulls to one side or, replaced, to the other: the hockey-stick distance by integration."""
    rate, noise = 0.2, 0.9
    x = np.linspace(-30, 30, 600_001)
    density = [(1 - rate) * norm.pdf(x, 0, noise) + rate * norm.pdf(x, side, noise) for side in (1, -1)]
    bound = replace_one_epsilon(Accountant(), PoissonGaussianEvent(rate, noise), DELTA)
    excess = np.maximum(density[0] - math.exp(bound) * density[1], 0)
    assert float(excess.sum() * (x[1] - x[0])) <= DELTA


def test_it_is_for_the_whole_plan_and_a_sum_over_steps_would_not_be() -> None:
    step = PoissonGaussianEvent(0.01, 1.0)
    whole = replace_one_epsilon(Accountant(), [step] * 50, DELTA)
    assert whole == replace_one_epsilon(Accountant(), PoissonGaussianEvent(0.01, 1.0, 50), DELTA)
    assert whole < 50 * replace_one_epsilon(Accountant(), step, DELTA)


def test_nothing_costs_nothing_and_too_much_is_infinite() -> None:
    assert replace_one_epsilon(Accountant(), [], DELTA) == 0.0
    assert replace_one_epsilon(EXACT, GaussianEvent(1e4, 1.0, 1), DELTA) == math.inf
    with pytest.raises(ConfigError):
        replace_one_epsilon(EXACT, [], 0.0)


def test_a_price_that_only_creeps_up_is_given_up_as_infinite() -> None:
    """After some hundred rounds without an answer there is none, and never a number that is too small."""

    class Creeping(Accountant):
        price = 0.0

        def epsilon(self, events: object, delta: float) -> float:
            self.price += 1e-3
            return self.price

    assert replace_one_epsilon(Creeping(), GaussianEvent(1.0, 1.0, 1), DELTA) == math.inf
