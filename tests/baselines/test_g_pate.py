"""G-PATE: what it plans and charges, whom a record reaches, and that it learns where nothing is hidden."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from pate_cases import (
    GENERATOR,
    OPEN,
    PRIVACY,
    RECORDS,
    SIZE,
    budget_for,
    context_for,
    plan_of,
    replaced,
    shapes,
    share_of_shapes_recognised,
    without,
)

from datalens.baselines.g_pate import GPateLearner, GPateSettings
from datalens.compression.projection import draw_projection
from datalens.errors import BudgetError, CheckpointError, ConfigError
from datalens.privacy.accountant import Accountant
from datalens.privacy.events import times
from datalens.teachers.families import TeacherKind
from datalens.teachers.family import Fakes
from datalens.training.config import Teachers

SETTINGS = GPateSettings(
    num_teachers=24, batch_size=4, num_projected=6, num_bins=5, num_steps=3, generator=GENERATOR
)
PAPER = SETTINGS.model_copy(update={"teachers": Teachers(kind=TeacherKind.PAPER, steps=1, first_steps=1)})


def _learner(settings: GPateSettings = SETTINGS, privacy=PRIVACY, **context) -> GPateLearner:
    return settings.plan(privacy, SIZE).begin(context_for(privacy, **context))


def _tally(learner: GPateLearner, steps: int = 2) -> torch.Tensor:
    rng = torch.Generator().manual_seed(3)
    for step in range(steps):
        fakes = Fakes(torch.rand(4, 1, 8, 8, generator=rng), torch.arange(4))
        tally = learner.tally(fakes, draw_projection(64, 6, rng), step)
    return tally


def test_the_plan_is_what_is_charged() -> None:
    method, context = SETTINGS.plan(PRIVACY, SIZE), context_for(PRIVACY)
    learner = method.begin(context)
    for step in range(method.num_steps):
        learner.step(step)
    planned = [times(part.event, part.count) for part in method.planned()]
    assert context.budget.num_releases == 2 * 3
    accountant = Accountant(PRIVACY.accountant)
    assert context.budget.spent_epsilon() == pytest.approx(accountant.epsilon(planned, PRIVACY.delta))
    assert 0.99 * PRIVACY.epsilon < context.budget.spent_epsilon() <= PRIVACY.epsilon


def test_the_account_is_the_two_formulas_for_every_image_of_every_step() -> None:
    method = SETTINGS.plan(PRIVACY, SIZE)
    checks, answers = (
        math.sqrt(4 * 6) / (3 * method.noise_stddev),
        math.sqrt(2 * 4 * 6) / method.noise_stddev,
    )
    assert plan_of(method) == [("checks", pytest.approx(checks), 3), ("answers", pytest.approx(answers), 3)]
    assert all(part.event == part.replace_one for part in method.planned())


def test_a_step_that_does_not_fit_does_not_begin() -> None:
    method = SETTINGS.plan(PRIVACY, SIZE)
    one_step = [part.event for part in method.planned()]
    epsilon = Accountant(PRIVACY.accountant).epsilon([*one_step, one_step[0]], PRIVACY.delta) * 1.001
    budget = budget_for(PRIVACY, epsilon)
    learner = method.begin(context_for(PRIVACY, budget=budget))
    learner.step(0)
    before = learner.state_dict()
    with pytest.raises(BudgetError):
        learner.step(1)
    assert budget.num_releases == 2
    after = learner.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_shards_are_disjoint_and_stay_for_the_whole_run() -> None:
    learner = _learner()
    before = learner.partition.record_of_slot.copy()
    for step in range(2):
        learner.step(step)
    assert np.array_equal(learner.partition.record_of_slot, before)
    assert sorted(before.ravel().tolist()) == list(range(RECORDS))


def test_teachers_share_no_memory_with_each_other_or_the_generator() -> None:
    learner = _learner(PAPER)
    values = [
        (block * 100 + row, value[row])
        for block, teachers in enumerate(learner.teachers)
        for value in teachers.values()
        for row in range(len(value))
    ]
    values += [(-1, value) for value in learner._generator.generator.parameters()]
    spans = sorted((v.data_ptr(), v.data_ptr() + v.numel() * v.element_size(), owner) for owner, v in values)
    for (_, stop, owner), (start, _, other) in itertools.pairwise(spans):
        assert owner == other or stop <= start


@pytest.mark.parametrize("settings", [SETTINGS, PAPER], ids=["kernel", "paper"])
@pytest.mark.parametrize("removed", [True, False])
def test_a_record_moves_the_votes_by_no_more_than_is_charged(settings: GPateSettings, removed: bool) -> None:
    data, learner, record = shapes(), _learner(settings), 17
    if removed:
        other = _learner(settings, data=without(data, record))
        other.partition = learner.partition.without(record)
        other._records = other._gather()
    else:
        other = _learner(settings, data=replaced(data, record))
    tally, tally_of_other = _tally(learner).double(), _tally(other).double()
    checks, answers = (part.event.sensitivity for part in learner._method.planned())
    assert 0 < (tally - tally_of_other).norm() <= answers
    assert (tally.amax(2) - tally_of_other.amax(2)).norm() <= checks


def test_a_run_goes_on_from_its_state_as_if_it_had_not_stopped() -> None:
    whole, first = _learner(PAPER), _learner(PAPER)
    for step in range(3):
        whole.step(step)
    for step in range(2):
        first.step(step)
    second = _learner(PAPER)
    second.load_state_dict(first.state_dict())
    second.step(2)
    expected, found = whole.state_dict(), second.state_dict()
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_a_state_of_another_run_is_refused() -> None:
    with pytest.raises(CheckpointError, match="another kind"):
        _learner(PAPER).load_state_dict(_learner().state_dict())


def test_settings_that_do_not_fit_are_refused_before_any_data() -> None:
    for change, message in (
        ({"num_projected": 65}, "num_projected = 65"),
        ({"num_bins": 1}, "num_bins is 1"),
        ({"num_teachers": 121}, "num_teachers = 121"),
        ({"noise_stddev": 9.0}, "these releases cost epsilon"),
    ):
        with pytest.raises(ConfigError, match=message):
            SETTINGS.model_copy(update=change).plan(PRIVACY, SIZE)


def test_it_learns_more_than_chance_without_noise() -> None:
    """A quarter would be chance."""
    change = {"batch_size": 24, "num_projected": 16, "num_steps": 60, "vote_threshold": 0.3}
    learner = _learner(SETTINGS.model_copy(update=change), privacy=OPEN)
    for step in range(60):
        learner.step(step)
    assert share_of_shapes_recognised(learner.generator(), GENERATOR.latent_dim) > 0.4
