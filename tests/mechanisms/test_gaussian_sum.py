"""A noisy sum of integers: charged before noise is drawn, and exactly the sum plus that noise."""

from __future__ import annotations

import numpy as np
import pytest

from datalens.errors import BudgetError, ConfigError
from datalens.mechanisms.gaussian_sum import GaussianSum
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import GaussianEvent, NoiseKind, SamplerSlack
from datalens.privacy.ledger import Ledger


class KnownNoise:
    """One on every number; says at which charge it was asked."""

    kind = NoiseKind.ROUNDED
    secure = False

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.asked = ledger, []

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        self.asked.append((shape, stddev, len(self.ledger.events())))
        return np.ones(shape, dtype=np.int64)

    def slack(self, stddev: float) -> SamplerSlack:
        return SamplerSlack(eta=1e-20 * stddev, tau=1e-21)


def _made(epsilon: float = 1.0) -> tuple[GaussianSum, Budget, KnownNoise]:
    ledger = Ledger.in_memory()
    noise = KnownNoise(ledger)
    return GaussianSum(2.0, 40.0, noise), Budget(ledger, Authorisation(epsilon, 1e-5)), noise


def test_it_is_charged_before_noise_is_drawn() -> None:
    mechanism, budget, noise = _made()
    release = mechanism.release(np.array([5, 7]), budget, {"score": 1})
    assert release.value.tolist() == [6, 8]
    assert noise.asked == [((2,), 40.0, 1)]
    assert release.event == GaussianEvent(2.0, 40.0, 2, slack=SamplerSlack(4e-19, 1e-21))
    assert budget.ledger.events() == (release.event,)
    assert (release.line_hash, budget.ledger.lines[-1].body["note"]) == (budget.ledger.head[1], {"score": 1})


def test_what_does_not_fit_draws_nothing() -> None:
    mechanism, budget, noise = _made(epsilon=1e-3)
    with pytest.raises(BudgetError):
        mechanism.release(np.array([5]), budget, {})
    assert noise.asked == []


@pytest.mark.parametrize(
    "sums", [np.zeros((1, 2), np.int64), np.array([0.5]), np.array([True]), np.array([], np.int64)]
)
def test_what_is_no_list_of_whole_numbers_is_not_charged(sums: np.ndarray) -> None:
    mechanism, budget, noise = _made()
    with pytest.raises(ConfigError, match=r"give whole numbers \[length\]"):
        mechanism.release(sums, budget, {})
    assert (noise.asked, budget.num_releases) == ([], 0)
