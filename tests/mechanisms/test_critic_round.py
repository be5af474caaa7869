"""A round of critics: one charge, each critic once, and no answer longer than was charged."""

from __future__ import annotations

import math

import pytest
import torch

from datalens.errors import BudgetError
from datalens.mechanisms.critic_round import CriticRound
from datalens.mechanisms.vector_sum import Grid
from datalens.noise import make_noise
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind
from datalens.privacy.ledger import Ledger

GRID = Grid(dim=6, norm_bound=1.0, units=1000)


def _round(**changes: object) -> CriticRound:
    return CriticRound(**{"grid": GRID, "batch_size": 3, "num_critics": 2, "noise_stddev": 1e5, **changes})  # type: ignore[arg-type]


def _budget(epsilon: float = 1.0) -> Budget:
    return Budget(Ledger.in_memory(), Authorisation(epsilon, 1e-5))


@pytest.mark.parametrize("group_size", [1, 4])
def test_a_changed_critic_moves_its_answer_by_the_sensitivity_and_no_further(group_size: int) -> None:
    event = _round(group_size=group_size).event(make_noise(NoiseKind.ROUNDED))
    assert event.sensitivity == 2 * GRID.units * math.sqrt(3 * group_size)
    assert event.coordinates == 2 * 3 * 6
    ahead = GRID.put(torch.eye(3, 6, dtype=torch.float64) * 50)
    back = GRID.put(-torch.eye(3, 6, dtype=torch.float64) * 50)
    moved = float((ahead - back).double().norm())
    assert 0.99 * event.sensitivity <= moved * math.sqrt(group_size) <= event.sensitivity


def test_a_round_is_charged_once_and_each_critic_answers_once() -> None:
    budget = _budget()
    opened = _round(noise_stddev=1e5).charge(make_noise(NoiseKind.ROUNDED), budget, {"round": 1})
    assert budget.num_releases == 1
    gradients = torch.zeros(3, 6)
    for critic in (1, 0):
        release = opened.release(critic, gradients)
        assert (release.line_hash, tuple(release.value.shape)) == (budget.ledger.head[1], (3, 6))
        assert bool(release.value.any())  # the noise
    assert budget.num_releases == 1
    for critic in (0, 1, 2, -1):
        with pytest.raises(ValueError, match=f"critic {critic} may not answer in this round: each of 2 once"):
            opened.release(critic, gradients)


def test_without_noise_the_answer_is_the_clipped_gradient() -> None:
    silent = make_noise(NoiseKind.NONE)
    opened = _round(noise_stddev=0.0).charge(
        silent, Budget(Ledger.in_memory(), Authorisation.not_private()), {}
    )
    gradients = torch.tensor([[3.0, 0, 0, 0, 0, 0], [0, 0.25, 0, 0, 0, 0], [0, 0, 0, 0, 0, -0.5]])
    found = opened.release(0, gradients).value
    expected = gradients.double()
    expected[0, 0] = 1.0
    assert torch.allclose(found, expected, atol=2 / GRID.units)


def test_rows_of_another_shape_are_refused_and_the_critic_may_still_answer() -> None:
    opened = _round().charge(make_noise(NoiseKind.ROUNDED), _budget(), {})
    with pytest.raises(ValueError, match=r"gradients of shape \(3, 5\) cannot be released; pass \(3, 6\)"):
        opened.release(0, torch.zeros(3, 5))
    assert opened.release(0, torch.zeros(3, 6)).value.shape == (3, 6)


def test_what_does_not_fit_opens_no_round() -> None:
    budget = _budget(1e-4)
    with pytest.raises(BudgetError):
        _round().charge(make_noise(NoiseKind.ROUNDED), budget, {})
    assert budget.num_releases == 0
