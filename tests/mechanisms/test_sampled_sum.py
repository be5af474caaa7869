"""The sum over a sampled lot: coins that are fair, events that cover groups, and noise only after the charge."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datalens.errors import BudgetError
from datalens.mechanisms.sampled_sum import SampledSum
from datalens.mechanisms.vector_sum import Grid
from datalens.noise import OsEntropy, SeededEntropy, make_noise
from datalens.privacy.accountant import Accountant
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind, PoissonGaussianEvent
from datalens.privacy.ledger import Ledger

GRID = Grid(1.0, 512, 6)


def _sum(noise: NoiseKind = NoiseKind.ROUNDED, rate: float = 0.25, group_size: int = 1) -> SampledSum:
    return SampledSum(GRID, 1024.0, make_noise(noise, b"k"), rate, group_size)


def test_every_slot_is_in_a_lot_by_a_coin_of_its_own() -> None:
    mechanism, entropy = _sum(rate=0.3), OsEntropy()
    lots = [mechanism.lot(400, entropy) for _ in range(300)]
    sizes = np.array([len(lot) for lot in lots])
    often = np.bincount(np.concatenate(lots), minlength=400)
    assert abs(sizes.mean() - 120) < 4 and 50 < sizes.var() < 130  # 84 for coins, 0 for a shuffle
    assert abs(often - 90).max() < 6 * np.sqrt(63)


def test_a_lot_of_all_takes_everybody() -> None:
    assert _sum(rate=1.0).lot(7, SeededEntropy(b"k")).tolist() == list(range(7))


def test_whether_a_slot_is_drawn_does_not_depend_on_how_many_there_are() -> None:
    few, many = (_sum().lot(count, SeededEntropy(b"k")) for count in (50, 60))
    assert few.tolist() == many[many < 50].tolist()


def test_the_event_names_rate_noise_and_slack() -> None:
    event = _sum().event()
    assert (event.sampling_probability, event.noise_multiplier, event.coordinates) == (0.25, 2.0, 6)
    assert event.noise is NoiseKind.ROUNDED and event.slack.eta > 0
    assert _sum(NoiseKind.CONTINUOUS).event().noise is NoiseKind.CONTINUOUS


def test_a_person_with_more_records_is_drawn_oftener_and_moves_the_sum_further() -> None:
    event = _sum(rate=0.01, group_size=3).event()
    assert event.sampling_probability == pytest.approx(1 - 0.99**3, rel=1e-9)
    assert event.noise_multiplier == pytest.approx(2.0 / 3)
    assert Accountant().epsilon(event, 1e-5) > Accountant().epsilon(PoissonGaussianEvent(0.01, 2.0), 1e-5)


def test_noise_is_drawn_after_the_charge_and_never_without_it() -> None:
    poor = Budget(Ledger.in_memory(), Authorisation(1e-4, 1e-5))
    untouched, fresh = _sum().noise.sample((1,), 9.0), _sum()
    with pytest.raises(BudgetError):
        fresh.release(torch.zeros(6, dtype=torch.int64), poor, {})
    assert np.array_equal(fresh.noise.sample((1,), 9.0), untouched)
    assert poor.num_releases == 0


def test_the_released_sum_is_the_sum_with_noise() -> None:
    budget = Budget(Ledger.in_memory(), Authorisation(10.0, 1e-5))
    whole = GRID.put(torch.full((3, 6), 0.3)).sum(0)
    released = _sum(NoiseKind.ROUNDED).release(whole, budget, {"step": 0})
    noise = make_noise(NoiseKind.ROUNDED, b"k").sample((6,), 1024.0)
    assert torch.equal(released.value, GRID.back(whole + torch.from_numpy(noise)))
    assert budget.ledger.events() == (released.event,)


@pytest.mark.parametrize("wrong", [torch.zeros(6), torch.zeros(5, dtype=torch.int64)])
def test_what_the_grid_did_not_bound_is_not_released(wrong: torch.Tensor) -> None:
    budget = Budget(Ledger.in_memory(), Authorisation(10.0, 1e-5))
    with pytest.raises(ValueError, match="cannot be released"):
        _sum().release(wrong, budget, {})
    assert budget.num_releases == 0
