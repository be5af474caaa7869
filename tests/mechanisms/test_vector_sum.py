"""Noisy sums of real vectors: never longer than promised, charged before noise, and the right noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import grid_loop
from scipy import stats

from datalens.errors import BudgetError, ConfigError
from datalens.mechanisms.vector_sum import Grid, VectorSum, fitting_units
from datalens.noise import NoiseSource, SeededEntropy, make_noise
from datalens.noise.rounded_gaussian import RoundedGaussian
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind, SamplerSlack
from datalens.privacy.ledger import Ledger

ALARM = 1e-6
AWKWARD = (0.0, -0.0, 1e-300, 0.5, 1.0, -1.0, 3.0, 1e9, -1e200, math.inf, -math.inf, math.nan)


class SpyNoise:
    """Known noise that remembers what it was asked for, and can look around while it is asked."""

    kind = NoiseKind.ROUNDED
    secure = False

    def __init__(self, value: int = 0, look: Callable[[], None] = lambda: None) -> None:
        self.value, self.look = value, look
        self.calls: list[tuple[tuple[int, ...], float]] = []

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        self.calls.append((shape, stddev))
        self.look()
        return np.full(shape, self.value, dtype=np.int64)

    def slack(self, stddev: float) -> SamplerSlack:
        return SamplerSlack()


def _budget(epsilon: float = 1.0) -> Budget:
    return Budget(Ledger.in_memory(), Authorisation(epsilon, 1e-5))


def _mechanism(noise: NoiseSource, stddev: float = 300.0, group_size: int = 1) -> VectorSum:
    return VectorSum(Grid(1.0, 64, 12), stddev, noise, group_size)


def _rows(seed: int, count: int, dim: int, length: float) -> torch.Tensor:
    rows = torch.randn(count, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return length * rows / rows.norm(dim=1, keepdim=True)


def _half_way_up(grid: Grid) -> torch.Tensor:
    """The vector that rounding makes longest: every coordinate just above the middle of two whole numbers."""
    step = math.floor(grid.scale * grid.norm_bound / math.sqrt(grid.dim)) - 0.499999
    return torch.full((1, grid.dim), step / grid.scale, dtype=torch.float64)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([8, 11, 64, 512, 4097]), st.floats(1e-6, 1e6)
)
def test_no_vector_is_longer_than_units_after_rounding(
    seed: int, dim: int, units: int, norm_bound: float
) -> None:
    grid = Grid(norm_bound, units, dim)
    rows = torch.cat(
        [_rows(seed, 20, dim, norm_bound * factor) for factor in (0.5, 1.0, 1 + 1e-9, 1.001, 1e12)]
        + [_half_way_up(grid)]
    )
    assert int(grid.put(rows).square().sum(1).max()) <= units**2


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.sampled_from(AWKWARD), min_size=5, max_size=5), min_size=1, max_size=6))
def test_awkward_numbers_neither_pass_the_bound_nor_touch_other_rows(rows: list[list[float]]) -> None:
    grid = Grid(1.0, 16, 5)
    together = grid.put(torch.tensor(rows, dtype=torch.float64))
    alone = torch.cat([grid.put(torch.tensor([row], dtype=torch.float64)) for row in rows])
    assert int(together.square().sum(1).max()) <= 16**2
    assert torch.equal(together, alone)


@pytest.mark.parametrize("norm_bound", [5e-324, 1e-310, 1e-306, 1e-300, 1e308])
def test_no_bound_is_so_small_that_numbers_beyond_integers_pass(norm_bound: float) -> None:
    rows = torch.tensor(
        [[0.0, 0.0], [0.6, 0.8], [1e-45, -1e-45], [1e-200, 1.0], [1e300, -1e300]], dtype=torch.float64
    )
    whole = Grid(norm_bound, 512, 2).put(rows)
    assert all(sum(int(value) ** 2 for value in row) <= 512**2 for row in whole.tolist())


def test_rounding_alone_does_pass_the_bound() -> None:
    """So the bound is needed: at few units plain rounding makes a vector of length R longer than R."""
    row = torch.full((1, 64), 1 / 8, dtype=torch.float64)
    assert int((row * 12).round().square().sum()) > 12**2
    assert int(Grid(1.0, 12, 64).put(row).square().sum()) <= 12**2


def test_a_vector_with_a_value_that_is_no_number_adds_nothing() -> None:
    rows = torch.tensor([[math.nan, 0.1], [0.6, 0.8], [math.inf, 0.0]])
    assert Grid(1.0, 512, 2).put(rows)[[0, 2]].abs().sum() == 0


@pytest.mark.parametrize("dim", [1, 12, 200])
def test_equals_its_slow_twin(dim: int) -> None:
    rows = torch.cat([_rows(4, 30, dim, length) for length in (0.3, 1.0, 7.0)])
    for units in (16, 512):
        grid = Grid(1.0, units, dim)
        assert grid.put(rows).tolist() == grid_loop(rows.tolist(), 1.0, units, dim)


def test_fitting_units_lose_little_to_rounding() -> None:
    for dim in (2, 1000, 10_000):
        grid = Grid(1.0, fitting_units(dim), dim)
        rows = _rows(2, 20, dim, 1.0)
        back = grid.back(grid.put(rows))
        assert float((back - rows).norm(dim=1).max()) < 0.08
        assert float((back * rows).sum(1).min()) > 0.99
        assert grid.scale > 0.99 * grid.units


@pytest.mark.parametrize(
    ("dim", "units"), [(1, 512), (16_384, 512), (16_385, 1024), (65_536, 1024), (65_537, 2048)]
)
def test_fitting_units_are_the_power_of_two_from_four_roots_of_the_dimension(dim: int, units: int) -> None:
    assert fitting_units(dim) == units
    assert units >= 4 * math.sqrt(dim)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.floats(0.1, 1e3))
def test_adversarial_neighbours_move_the_sum_by_no_more_than_the_event_says(
    seed: int, count: int, length: float
) -> None:
    mechanism = _mechanism(SpyNoise())
    rows = _rows(seed, count, 12, length)
    extremes = torch.cat([rows, _half_way_up(mechanism.grid), torch.eye(12, dtype=torch.float64)])
    total = mechanism.grid.put(rows).sum(0)
    for extra in extremes:
        added = mechanism.grid.put(torch.cat([rows, extra[None]])).sum(0)
        replaced = mechanism.grid.put(torch.cat([rows[:-1], extra[None]])).sum(0)
        assert int((added - total).square().sum()) <= mechanism.event(12).sensitivity ** 2
        assert int((replaced - total).square().sum()) <= mechanism.replace_one_event(12).sensitivity ** 2


def test_sensitivities_are_nearly_reached() -> None:
    """Half the sensitivity would be wrong: there are neighbours that far apart."""
    mechanism = VectorSum(Grid(2.0, 4096, 3), 9000.0, SpyNoise())
    one = torch.tensor([[2.0, 0.0, 0.0]])
    moved = mechanism.grid.put(one)[0]
    assert float(moved.double().norm()) > 0.99 * mechanism.event(3).sensitivity
    swapped = moved - mechanism.grid.put(-one)[0]
    assert float(swapped.double().norm()) > 0.99 * mechanism.replace_one_event(3).sensitivity


def test_events_scale_with_the_group() -> None:
    event = _mechanism(SpyNoise(), group_size=3).event(36)
    assert (event.sensitivity, event.noise_stddev, event.coordinates) == (192.0, 300.0, 36)
    assert _mechanism(SpyNoise(), group_size=3).replace_one_event(36).sensitivity == 384.0


def test_the_ledger_is_written_before_noise_is_drawn() -> None:
    budget = _budget()
    noise = SpyNoise(look=lambda: seen.append(budget.num_releases))
    seen: list[int] = []
    mechanism = _mechanism(noise, stddev=64 * 4.0)
    release = mechanism.release(torch.zeros(3, 12, dtype=torch.int64), budget, {"step": 0})
    assert seen == [1] and noise.calls == [((3, 12), 256.0)]
    assert release.event == mechanism.event(36)
    assert release.line_hash == budget.ledger.lines[-1].hash


def test_what_does_not_fit_draws_no_noise() -> None:
    noise = SpyNoise()
    with pytest.raises(BudgetError, match="authorised"):
        _mechanism(noise, stddev=64.0).release(torch.zeros(12, dtype=torch.int64), _budget(), {})
    assert noise.calls == []


def test_the_release_is_sum_plus_noise_in_real_units() -> None:
    mechanism = _mechanism(SpyNoise(7), stddev=256.0)
    sums = torch.arange(12).view(3, 4)
    value = mechanism.release(sums, _budget(), {}).value
    assert value.dtype == torch.float64
    assert torch.allclose(value * mechanism.grid.scale, (sums + 7).double())


def noise_is_right(noisy: np.ndarray, sums: np.ndarray, stddev: float) -> bool:
    """The sum of squares of what was added lies in its chi-square interval; false alarms: one in a million."""
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], noisy.size)
    return bool(low <= ((noisy - sums) ** 2).sum() / (stddev**2 + 1 / 12) <= high)


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (0.93, False), (1.07, False)])
def test_noise_is_neither_too_little_nor_too_much(factor: float, right: bool) -> None:
    class Scaled(RoundedGaussian):
        def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
            return super().sample(shape, stddev * factor)

    mechanism = _mechanism(Scaled(SeededEntropy(b"vector sum")), stddev=250.0)
    sums = torch.arange(20_000)
    noisy = mechanism.release(sums, _budget(), {}).value * mechanism.grid.scale
    assert noise_is_right(noisy.numpy(), sums.numpy(), 250.0) is right


def test_real_noise_of_every_integer_kind_is_released() -> None:
    for kind in (NoiseKind.ROUNDED, NoiseKind.NONE):
        mechanism = _mechanism(make_noise(kind), stddev=300.0)
        budget = Budget(Ledger.in_memory(), Authorisation(1.0, 1e-5, is_private=kind is not NoiseKind.NONE))
        assert mechanism.release(torch.zeros(5, dtype=torch.int64), budget, {}).event.noise is kind


def test_sums_that_are_not_whole_are_refused_before_a_charge() -> None:
    budget = _budget()
    for sums in (torch.zeros(4), torch.zeros(4, dtype=torch.int32), torch.zeros(0, dtype=torch.int64)):
        with pytest.raises(ValueError, match="int64"):
            _mechanism(SpyNoise()).release(sums, budget, {})
    assert budget.num_releases == 0


@pytest.mark.parametrize(
    ("norm_bound", "units", "dim", "message"),
    [
        (0.0, 64, 4, "norm_bound is 0.0"),
        (math.inf, 64, 4, "norm_bound is inf"),
        (1.0, 0, 4, "units is 0"),
        (1.0, 2**25, 4, "units is 33554432"),
        (1.0, 64, 0, "dim is 0"),
        (1.0, 20, 10_000, "choose 512"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(norm_bound: float, units: int, dim: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Grid(norm_bound, units, dim)


def test_a_vector_that_rounding_makes_too_long_is_shrunk() -> None:
    """On the coarsest grid equal coordinates near 0.6 all become 1: half as long again as is charged."""
    grid = Grid(norm_bound=1.0, units=20, dim=800)
    vector = torch.full((1, 800), 800**-0.5)
    assert float((vector * grid.scale).min()) > 0.5 and grid.units**2 < 800, (
        "rounded alone it would be too long"
    )
    assert int(grid.put(vector).square().sum()) <= grid.units**2
