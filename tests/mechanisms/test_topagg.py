"""TopAgg: what it charges, in which order, and that its release is the thresholded noisy tally."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import threshold_loop

from datalens.errors import BudgetError, ConfigError
from datalens.mechanisms.base import Release
from datalens.mechanisms.topagg import TopAgg
from datalens.noise import NoiseSource, SeededEntropy, make_noise
from datalens.noise.rounded_gaussian import RoundedGaussian
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind, SamplerSlack
from datalens.privacy.ledger import Ledger

DELTA = 1e-5


class SpyNoise:
    """Known noise that remembers what it was asked for, and can look around while it is asked."""

    kind = NoiseKind.ROUNDED
    secure = False

    def __init__(self, value: int = 0, look: Callable[[], None] = lambda: None) -> None:
        self.value = value
        self.look = look
        self.calls: list[tuple[tuple[int, ...], float]] = []

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        self.calls.append((shape, stddev))
        self.look()
        return np.full(shape, self.value, dtype=np.int64)

    def slack(self, stddev: float) -> SamplerSlack:
        return SamplerSlack(1e-18, 1e-38)


def _budget(epsilon: float = 1.0) -> Budget:
    return Budget(Ledger.in_memory(), Authorisation(epsilon, DELTA))


def _topagg(noise: NoiseSource, **changes: object) -> TopAgg:
    base = TopAgg(num_teachers=10, top_k=4, noise_stddev=80.0, vote_threshold=0.5, noise=noise)
    return dataclasses.replace(base, **changes)


def test_event_is_one_joint_release_of_the_batch() -> None:
    mechanism = TopAgg(4000, 200, 5000.0, 0.7, make_noise(NoiseKind.ROUNDED))
    event = mechanism.event(batch_size=15, dim=784)
    assert event.sensitivity == 2 * math.sqrt(200 * 15)
    assert event.mu == pytest.approx(2 * math.sqrt(3000) / 5000)
    assert (event.noise_stddev, event.coordinates, event.noise) == (5000.0, 15 * 784, NoiseKind.ROUNDED)
    assert event.slack == RoundedGaussian().slack(5000.0)
    assert event.slack.eta > 0
    assert event.count == 1


def test_release_thresholds_the_noisy_tally() -> None:
    tally = torch.tensor([[4, 3, 0, -6], [-7, -8, 10, 1]], dtype=torch.int32)
    noise = SpyNoise(value=1)
    result = _topagg(noise).release(tally, _budget(), {"step": 3})
    assert isinstance(result, Release)
    assert result.value.tolist() == [[1, 0, 0, -1], [-1, -1, 1, 0]]
    assert result.value.dtype == torch.int8
    assert noise.calls == [((2, 4), 80.0)]


def test_release_charges_its_event_once_with_its_note() -> None:
    budget = _budget()
    mechanism = _topagg(SpyNoise())
    result = mechanism.release(torch.zeros(2, 9, dtype=torch.int32), budget, {"step": 3})
    assert result.event == mechanism.event(2, 9)
    assert budget.ledger.events() == (result.event,)
    assert result.line_hash == budget.ledger.lines[-1].hash
    assert '"step": 3' in json.dumps(budget.ledger.lines[-1].body)
    assert budget.spent_epsilon() > 0


def test_a_release_that_does_not_fit_draws_no_noise() -> None:
    noise = SpyNoise()
    mechanism = _topagg(noise, noise_stddev=60.0)
    budget = _budget(epsilon=1.0)
    tally = torch.zeros(3, 9, dtype=torch.int32)
    fits = budget.remaining_releases(mechanism.event(3, 9))
    assert 1 < fits < 100
    for _ in range(fits):
        mechanism.release(tally, budget, {})
    with pytest.raises(BudgetError):
        mechanism.release(tally, budget, {})
    assert len(noise.calls) == budget.num_releases == fits
    assert budget.spent_epsilon() <= 1.0


def test_all_that_teachers_can_cast_is_released_and_one_vote_more_is_not() -> None:
    """Ten teachers, four votes on an image, on two of three images each."""
    mechanism = _topagg(SpyNoise(), images_per_teacher=2)
    tally = torch.tensor([[10, -10, 10, 10, 0], [10, 10, 10, -10, 0], [0] * 5], dtype=torch.int32)
    mechanism.release(tally, _budget(), {})
    tally[2, 0] = 1
    with pytest.raises(ValueError, match="more votes than 10 teachers"):
        mechanism.release(tally, _budget(), {})


def test_the_ledger_line_is_on_disk_before_the_noise_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    seen: list[list[str]] = []
    noise = SpyNoise(
        look=lambda: seen.append([json.loads(line)["hash"] for line in path.read_text().splitlines()])
    )
    with Ledger.create(path, {}) as ledger:
        budget = Budget(ledger, Authorisation(1.0, DELTA))
        for step in range(2):
            result = _topagg(noise).release(torch.zeros(1, 9, dtype=torch.int32), budget, {"step": step})
            assert seen[step][-1] == result.line_hash


def test_every_release_has_noise_of_its_own() -> None:
    mechanism = _topagg(make_noise(NoiseKind.ROUNDED), vote_threshold=0.0)
    budget = _budget()
    tally = torch.zeros(1, 2000, dtype=torch.int32)
    first, second = (mechanism.release(tally, budget, {}).value for _ in range(2))
    assert 0.4 < (first == second).double().mean() < 0.6


def test_release_is_the_threshold_of_noisy_tally() -> None:
    """The audit attacks noisy_tally: it must be the function that release uses."""
    tally = torch.randint(-9, 10, (3, 50), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    tally = tally * (torch.arange(50) < 4)
    through, apart = (_topagg(RoundedGaussian(SeededEntropy(b"same"))) for _ in range(2))
    assert torch.equal(through.release(tally, _budget(), {}).value, apart.threshold(apart.noisy_tally(tally)))


@pytest.mark.parametrize("kind", [NoiseKind.ROUNDED, NoiseKind.CONTINUOUS, NoiseKind.DISCRETE])
def test_noisy_tally_adds_the_noise_of_the_configured_stddev(kind: NoiseKind) -> None:
    mechanism = _topagg(make_noise(kind), noise_stddev=50.0)
    tally = torch.full((4, 1000), 7, dtype=torch.int32)
    noisy = mechanism.noisy_tally(tally)
    assert noisy.dtype == (torch.float64 if kind is NoiseKind.CONTINUOUS else torch.int64)
    centred = noisy.double() - 7
    assert abs(centred.mean()) < 5 * 50 / math.sqrt(4000)
    assert abs(centred.std() / 50 - 1) < 0.06


def test_training_without_noise_needs_a_budget_that_is_not_private() -> None:
    mechanism = _topagg(make_noise(NoiseKind.NONE), noise_stddev=0.0, vote_threshold=0.0)
    tally = torch.tensor([[3, -2, 0, 1, 0]], dtype=torch.int32)
    with pytest.raises(BudgetError):
        mechanism.release(tally, _budget(epsilon=1e6), {})
    budget = Budget(Ledger.in_memory(), Authorisation.not_private())
    result = mechanism.release(tally, budget, {})
    assert result.value.tolist() == [[1, -1, 0, 1, 0]]
    assert budget.spent_epsilon() == math.inf


@settings(max_examples=40, deadline=None)
@given(
    teachers=st.integers(1, 300),
    beta=st.sampled_from([0.0, 0.07, 0.1, 0.2, 0.27, 0.5, 0.7, 0.85, 0.9, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_threshold_equals_slow_twin(teachers: int, beta: float, seed: int) -> None:
    mechanism = _topagg(SpyNoise(), num_teachers=teachers, vote_threshold=beta)
    draws = np.random.default_rng(seed).integers(-2 * teachers, 2 * teachers + 1, size=(2, 40))
    direction = mechanism.threshold(torch.from_numpy(draws))
    assert direction.dtype == torch.int8
    assert direction.tolist() == threshold_loop(draws.tolist(), teachers, beta)


def test_threshold_counts_votes_that_just_reach_it() -> None:
    """0.07 * 100 is 7.000000000000001 in floating point, but 7 votes reach 0.07 of 100 teachers."""
    mechanism = _topagg(SpyNoise(), num_teachers=100, vote_threshold=0.07)
    assert mechanism.threshold(torch.tensor([[6, 7, -6, -7, 0]])).tolist() == [[0, 1, 0, -1, 0]]


def test_threshold_of_zero_is_the_sign() -> None:
    mechanism = _topagg(SpyNoise(), vote_threshold=0.0)
    assert mechanism.threshold(torch.tensor([[-5, -1, 0, 1, 5]])).tolist() == [[-1, -1, 0, 1, 1]]
    assert mechanism.threshold(torch.tensor([[-0.25, 0.0, 0.25]])).tolist() == [[-1, 0, 1]]


def test_threshold_of_continuous_noise() -> None:
    mechanism = _topagg(SpyNoise(), num_teachers=10, vote_threshold=0.55)
    assert mechanism.threshold(torch.tensor([[5.4, 5.6, -5.4, -5.6]])).tolist() == [[0, 1, 0, -1]]
    assert mechanism.threshold(torch.tensor([[5, 6, -5, -6]])).tolist() == [[0, 1, 0, -1]]


@pytest.mark.parametrize(
    "tally",
    [
        torch.tensor([[11, 0, 0, 0, 0]]),  # more than one vote a teacher on a coordinate
        torch.full((1, 5), 9),  # more than top_k votes a teacher on an image
        torch.zeros(5, dtype=torch.int32),
        torch.zeros(1, 5),
    ],
)
def test_sums_of_invalid_votes_are_not_released(tally: torch.Tensor) -> None:
    noise, budget = SpyNoise(), _budget()
    with pytest.raises(ValueError, match="tally"):
        _topagg(noise).release(tally, budget, {})
    assert not noise.calls
    assert not budget.ledger.events()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_teachers", 0),
        ("num_teachers", 2.5),
        ("top_k", 0),
        ("top_k", True),
        ("noise_stddev", 0.0),
        ("noise_stddev", -1.0),
        ("noise_stddev", math.nan),
        ("noise_stddev", math.inf),
        ("vote_threshold", -0.1),
        ("vote_threshold", math.inf),
        ("vote_threshold", math.nan),
    ],
)
def test_settings_without_meaning_are_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is"):
        _topagg(SpyNoise(), **{name: value})


@pytest.mark.parametrize(("batch_size", "dim"), [(0, 9), (2, 0), (1, 3)])
def test_events_without_meaning_are_refused(batch_size: int, dim: int) -> None:
    with pytest.raises(ConfigError, match=r"batch_size is|dim is|top_k is"):
        _topagg(SpyNoise()).event(batch_size, dim)
