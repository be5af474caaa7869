"""GNMax: how far one teacher can move the counts, what is charged and when, and which labels come out."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from datalens.errors import BudgetError, ConfigError
from datalens.mechanisms.gnmax import GNMax
from datalens.noise import NoiseSource, make_noise
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind, SamplerSlack
from datalens.privacy.ledger import Ledger

ALARM = 1e-6


class SpyNoise:
    """Known noise that counts how often it was asked."""

    kind = NoiseKind.ROUNDED
    secure = False

    def __init__(self, value: int = 0) -> None:
        self.value, self.calls = value, 0

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        self.calls += 1
        return np.full(shape, self.value, dtype=np.int64)

    def slack(self, stddev: float) -> SamplerSlack:
        return SamplerSlack()


def _budget(epsilon: float = 1.0) -> Budget:
    return Budget(Ledger.in_memory(), Authorisation(epsilon, 1e-5))


def _gnmax(noise: NoiseSource, **changes: object) -> GNMax:
    return dataclasses.replace(GNMax(num_teachers=10, noise_stddev=40.0, noise=noise), **changes)


def _counts(vote_TB: np.ndarray, counts: int) -> np.ndarray:
    """Votes of 1 (yes), 0 (no) and -1 (nothing) to what is released."""
    both = np.stack([(vote_TB == 1).sum(0), (vote_TB == 0).sum(0)], 1)
    return both[:, :counts]


@pytest.mark.parametrize("counts", [1, 2])
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_the_worst_change_of_a_teacher_is_the_sensitivity_charged(counts: int, batch: int) -> None:
    """All pairs of answers of one teacher, abstentions included: none moves the counts further, one as far."""
    others = np.array([[1] * batch, [0] * batch])
    answers = [np.array(answer) for answer in itertools.product((-1, 0, 1), repeat=batch)]
    tallies = [_counts(np.vstack([others, answer]), counts) for answer in answers]
    worst = max(float(np.linalg.norm(a - b)) for a, b in itertools.product(tallies, repeat=2))
    charged = _gnmax(make_noise(NoiseKind.ROUNDED), counts=counts).event(batch).sensitivity
    assert worst == pytest.approx(charged)
    assert charged == pytest.approx(math.sqrt(counts * batch))


def test_a_teacher_that_turns_every_answer_round_moves_a_batch_by_the_sensitivity() -> None:
    vote_TB = np.random.default_rng(0).integers(0, 2, (7, 64))
    other_TB = vote_TB.copy()
    other_TB[3] = 1 - other_TB[3]
    for counts in (1, 2):
        moved = np.linalg.norm(_counts(vote_TB, counts) - _counts(other_TB, counts))
        assert moved == pytest.approx(_gnmax(SpyNoise(), counts=counts).event(64).sensitivity)


def test_a_group_of_records_may_change_as_many_teachers() -> None:
    assert _gnmax(SpyNoise(), group_size=3).event(16).sensitivity == 12.0


def test_two_counts_say_no_more_than_one_at_the_same_cost() -> None:
    """The difference of two counts at sqrt(2) the noise has the spread of twice the one count."""
    one, two = (_gnmax(make_noise(NoiseKind.ROUNDED), counts=counts) for counts in (1, 2))
    two = dataclasses.replace(two, noise_stddev=math.sqrt(2) * one.noise_stddev)
    assert one.event(8).mu == pytest.approx(two.event(8).mu)
    noisy = two.noisy_counts(torch.tensor([[6, 4]]).repeat(40_000, 1)).double()
    assert float((noisy[:, 0] - noisy[:, 1]).std() / (2 * one.noise_stddev)) == pytest.approx(1, abs=0.03)


def test_labels_are_the_noisy_majority_and_a_tie_is_a_half() -> None:
    count = torch.tensor([[6], [5], [4], [10], [0]])
    assert _gnmax(SpyNoise()).release(count, _budget(), {}).value.tolist() == [1, 0.5, 0, 1, 0]
    assert _gnmax(SpyNoise(2)).release(count, _budget(), {}).value.tolist() == [1, 1, 1, 1, 0]
    both = torch.tensor([[6, 4], [5, 5], [3, 4]])
    assert _gnmax(SpyNoise(9), counts=2).release(both, _budget(), {}).value.tolist() == [1, 0.5, 0]


def test_a_release_is_charged_before_noise_and_refused_before_an_overshoot() -> None:
    noise, budget = SpyNoise(), _budget()
    mechanism, count = _gnmax(noise, noise_stddev=60.0), torch.full((9, 1), 5)
    fits = budget.remaining_releases(mechanism.event(9))
    assert 1 < fits < 200
    for step in range(fits):
        release = mechanism.release(count, budget, {"step": step})
        assert release.line_hash == budget.ledger.lines[-1].hash
    with pytest.raises(BudgetError):
        mechanism.release(count, budget, {})
    assert noise.calls == budget.num_releases == fits
    assert budget.spent_epsilon() <= 1.0


def stddev_is_right(draws: np.ndarray, stddev: float) -> bool:
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], draws.size)
    return bool(low <= (draws.astype(float) ** 2).sum() / (stddev**2 + 1 / 12) <= high)


@pytest.mark.parametrize("stddev", [3.0, 400.0])
def test_the_noise_is_neither_too_little_nor_too_much(stddev: float) -> None:
    mechanism = _gnmax(make_noise(NoiseKind.ROUNDED), noise_stddev=stddev)
    draws = mechanism.noisy_counts(torch.full((50_000, 1), 7)).numpy() - 7
    assert stddev_is_right(draws, stddev)
    assert not stddev_is_right(draws, stddev * 1.1)
    assert not stddev_is_right(draws, stddev / 1.1)


@pytest.mark.parametrize(
    "count",
    [
        torch.tensor([[11]]),
        torch.tensor([[-1]]),
        torch.tensor([[5.0]]),
        torch.tensor([5]),
        torch.tensor([[4, 4]]),
    ],
)
def test_counts_that_teachers_cannot_give_are_not_released(count: torch.Tensor) -> None:
    noise, budget = SpyNoise(), _budget()
    with pytest.raises(ValueError, match="counts"):
        _gnmax(noise).release(count, budget, {})
    assert not noise.calls
    assert not budget.ledger.events()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_teachers", 0),
        ("noise_stddev", 0.0),
        ("noise_stddev", math.nan),
        ("counts", 3),
        ("group_size", True),
    ],
)
def test_settings_without_meaning_are_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is"):
        _gnmax(SpyNoise(), **{name: value})


@pytest.mark.parametrize("batch_size", [0, -1, True, 1.0])
def test_a_release_of_no_questions_has_no_price(batch_size: int) -> None:
    with pytest.raises(ConfigError, match=r"^batch_size is"):
        _gnmax(SpyNoise()).event(batch_size)


def test_no_noise_is_0_from_a_source_of_none_and_nothing_else() -> None:
    silent = make_noise(NoiseKind.NONE)
    assert _gnmax(silent, noise_stddev=0.0).event(1).mu == math.inf
    for noise, stddev in ((silent, -1.0), (silent, math.nan), (SpyNoise(), 0.0)):
        with pytest.raises(ConfigError, match=r"^noise_stddev is"):
            _gnmax(noise, noise_stddev=stddev)
