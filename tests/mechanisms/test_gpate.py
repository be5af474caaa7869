"""Confident GNMax: both noisy vectors are charged for every question, and one teacher moves neither further."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from datalens.errors import BudgetError, ConfigError
from datalens.mechanisms.gpate import ConfidentGNMax
from datalens.noise import NoiseSource, make_noise
from datalens.privacy.accountant import Accountant
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind, SamplerSlack
from datalens.privacy.ledger import Ledger

ALARM = 1e-6


class SpyNoise:
    """Zeros, but for what a test asks for; remembers the calls."""

    kind = NoiseKind.ROUNDED
    secure = False

    def __init__(self, values: dict[float, int] | None = None) -> None:
        self.values = values or {}
        self.calls: list[tuple[tuple[int, ...], float]] = []

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        self.calls.append((shape, stddev))
        return np.full(shape, self.values.get(stddev, 0), dtype=np.int64)

    def slack(self, stddev: float) -> SamplerSlack:
        return SamplerSlack()


def _mechanism(noise: NoiseSource, **changes: object) -> ConfidentGNMax:
    base = ConfidentGNMax(10, 3, 0.5, threshold_stddev=90.0, noise_stddev=30.0, noise=noise)
    return dataclasses.replace(base, **changes)


def _budget(epsilon: float = 5.0) -> Budget:
    return Budget(Ledger.in_memory(), Authorisation(epsilon, 1e-5))


def _one_hot(bins: tuple[int, ...], num_bins: int) -> np.ndarray:
    """Votes on each question; -1 votes for nothing."""
    vote = np.zeros((len(bins), num_bins))
    for question, chosen in enumerate(bins):
        if chosen >= 0:
            vote[question, chosen] = 1
    return vote


@pytest.mark.parametrize("questions", [1, 2, 3])
def test_the_worst_change_of_a_teacher_is_what_is_charged(questions: int) -> None:
    """All pairs of votes of one teacher beside few and many others: the largest change is the sensitivity."""
    votes = [_one_hot(bins, 3) for bins in itertools.product((-1, 0, 1, 2), repeat=questions)]
    worst_bins = worst_fullest = 0.0
    for others in (np.zeros((questions, 3)), np.tile([2.0, 2.0, 0.0], (questions, 1))):
        for one, other in itertools.combinations(votes, 2):
            before, after = others + one, others + other
            worst_bins = max(worst_bins, float(np.linalg.norm(before - after)))
            worst_fullest = max(worst_fullest, float(np.linalg.norm(before.max(1) - after.max(1))))
    mechanism = _mechanism(SpyNoise())
    assert worst_bins == pytest.approx(mechanism.answer_event(questions).sensitivity)
    assert worst_fullest == pytest.approx(mechanism.threshold_event(questions).sensitivity)


def test_an_image_costs_what_the_two_formulas_say() -> None:
    mechanism = _mechanism(make_noise(NoiseKind.ROUNDED), group_size=2)
    assert mechanism.answer_event(10).sensitivity == pytest.approx(2 * math.sqrt(2 * 10))
    assert mechanism.threshold_event(10).sensitivity == pytest.approx(2 * math.sqrt(10))
    assert mechanism.answer_event(10).coordinates == 30
    assert mechanism.threshold_event(10).noise_stddev == 90.0


def test_questions_that_are_not_answered_are_charged_as_well() -> None:
    """Public code charges an unanswered question for its check alone, or reads the data to say what it cost."""
    tallies = [torch.tensor([[[10, 0, 0]] * 4]), torch.tensor([[[4, 3, 3]] * 4])]
    budgets = [_budget(), _budget()]
    values = [_mechanism(SpyNoise()).release(t, b, {}).value for t, b in zip(tallies, budgets, strict=True)]
    assert values[0].tolist() == [[0] * 4]
    assert values[1].tolist() == [[-1] * 4]
    assert budgets[0].ledger.events() == budgets[1].ledger.events()
    assert len(budgets[0].ledger.events()) == 2


def test_answers_are_drawn_for_every_question_with_noise_of_their_own() -> None:
    noise = SpyNoise()
    _mechanism(noise).release(torch.tensor([[[10, 0, 0], [4, 3, 3]]]), _budget(), {})
    assert noise.calls == [((1, 2), 90.0), ((1, 2, 3), 30.0)]


def test_the_noisy_fullest_bin_decides_whether_there_is_an_answer() -> None:
    tally = torch.tensor([[[4, 3, 3], [0, 0, 6], [1, 5, 4]]])
    assert _mechanism(SpyNoise()).release(tally, _budget(), {}).value.tolist() == [[-1, 2, 1]]
    assert _mechanism(SpyNoise({90.0: 1})).release(tally, _budget(), {}).value.tolist() == [[0, 2, 1]]
    assert _mechanism(SpyNoise({90.0: -1})).release(tally, _budget(), {}).value.tolist() == [[-1, 2, -1]]


def test_a_release_is_refused_whole_before_an_overshoot() -> None:
    """Room for the checks and not for the answers: neither is charged, and no noise is drawn."""
    noise = SpyNoise()
    mechanism = _mechanism(noise)
    checks, answers = mechanism.threshold_event(6), mechanism.answer_event(6)
    epsilon = Accountant().epsilon([checks, answers, checks], 1e-5) * 1.001
    budget, tally = _budget(epsilon), torch.zeros(2, 3, 3, dtype=torch.int32)
    release = mechanism.release(tally, budget, {"step": 0})
    assert budget.ledger.events() == (checks, answers)
    assert release.line_hash == budget.ledger.lines[-1].hash
    with pytest.raises(BudgetError):
        mechanism.release(tally, budget, {"step": 1})
    assert budget.num_releases == 2
    assert len(noise.calls) == 2


def stddev_is_right(draws: np.ndarray, stddev: float) -> bool:
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], draws.size)
    return bool(low <= (draws.astype(float) ** 2).sum() / (stddev**2 + 1 / 12) <= high)


def test_both_noises_are_neither_too_little_nor_too_much_and_not_the_same_draws() -> None:
    mechanism = _mechanism(make_noise(NoiseKind.ROUNDED))
    tally = torch.full((200, 100, 3), 3)
    fullest, bins = mechanism.noisy_fullest(tally).numpy() - 3, mechanism.noisy_bins(tally).numpy() - 3
    for draws, stddev in ((fullest, 90.0), (bins, 30.0)):
        assert stddev_is_right(draws, stddev)
        assert not stddev_is_right(draws, 1.1 * stddev)
        assert not stddev_is_right(draws, stddev / 1.1)
    for number in range(3):
        assert abs(np.corrcoef(fullest.ravel(), bins[:, :, number].ravel())[0, 1]) < 5 / math.sqrt(20_000)


@pytest.mark.parametrize(
    "tally",
    [
        torch.tensor([[[5, 5, 1]]]),
        torch.tensor([[[-1, 0, 0]]]),
        torch.zeros(1, 1, 3),
        torch.zeros(1, 3, dtype=torch.int32),
        torch.zeros(1, 1, 4, dtype=torch.int32),
    ],
)
def test_sums_of_invalid_votes_are_not_released(tally: torch.Tensor) -> None:
    noise, budget = SpyNoise(), _budget()
    with pytest.raises(ValueError, match="tally"):
        _mechanism(noise).release(tally, budget, {})
    assert not noise.calls
    assert not budget.ledger.events()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_teachers", 0),
        ("num_bins", 0),
        ("vote_threshold", 1.5),
        ("vote_threshold", math.nan),
        ("threshold_stddev", 0.0),
        ("noise_stddev", math.inf),
    ],
)
def test_settings_without_meaning_are_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"^{name} is"):
        _mechanism(SpyNoise(), **{name: value})


def test_a_threshold_is_a_fraction() -> None:
    for edge in (0.0, 1.0):
        assert _mechanism(SpyNoise(), vote_threshold=edge).vote_threshold == edge
    for beyond in (-1e-9, -1.0, 1 + 1e-9, 2.0):
        with pytest.raises(ConfigError, match=r"^vote_threshold is"):
            _mechanism(SpyNoise(), vote_threshold=beyond)
