"""PATE-GAN: what it charges, whom a record reaches, and the mistakes of public code that it must not make."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import reference
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
from scipy import stats

from datalens.baselines.discriminators import Discriminators
from datalens.baselines.pate_gan import PateGanLearner, PateGanSettings
from datalens.baselines.vote_rule import VoteRule
from datalens.errors import BudgetError, CheckpointError, ConfigError
from datalens.privacy.accountant import Accountant
from datalens.privacy.events import times

SETTINGS = PateGanSettings(
    num_teachers=6,
    batch_size=5,
    num_steps=3,
    teacher_steps=2,
    student_steps=2,
    records_per_step=8,
    teacher_units=6,
    student_units=6,
    generator=GENERATOR,
)


def _learner(settings: PateGanSettings = SETTINGS, privacy=PRIVACY, **context) -> PateGanLearner:
    return settings.plan(privacy, SIZE).begin(context_for(privacy, **context))


def _teach(learner: PateGanLearner, steps: int = 3, fakes_of: PateGanLearner | None = None) -> torch.Tensor:
    """Votes on one batch, after the teachers learned beside the generator of ``fakes_of``."""
    shown = fakes_of or learner
    for number in range(steps):
        learner._teach(shown.propose(number))
    return learner.votes(shown.propose(99))


def _rows(parameters: dict[str, torch.Tensor], teacher: int) -> list[torch.Tensor]:
    return [value[teacher].detach() for value in parameters.values()]


def _span(value: torch.Tensor) -> range:
    return range(value.data_ptr(), value.data_ptr() + value.numel() * value.element_size())


# What is planned and paid


def test_the_plan_is_what_is_charged() -> None:
    method = SETTINGS.plan(PRIVACY, SIZE)
    context = context_for(PRIVACY)
    learner = method.begin(context)
    for step in range(method.num_steps):
        learner.step(step)
    planned = [times(part.event, part.count) for part in method.planned()]
    assert context.budget.num_releases == sum(event.count for event in planned) == 3 * 2
    accountant = Accountant(PRIVACY.accountant)
    assert context.budget.spent_epsilon() == pytest.approx(accountant.epsilon(planned, PRIVACY.delta))
    assert 0.99 * PRIVACY.epsilon < context.budget.spent_epsilon() <= PRIVACY.epsilon


def test_both_neighbouring_relations_cost_the_same() -> None:
    assert all(part.event == part.replace_one for part in SETTINGS.plan(PRIVACY, SIZE).planned())


def test_noise_that_is_asked_for_is_used_or_refused() -> None:
    assert SETTINGS.model_copy(update={"noise_stddev": 50.0}).plan(PRIVACY, SIZE).noise_stddev == 50.0
    with pytest.raises(ConfigError, match=r"epsilon = 5: these releases cost epsilon .* use"):
        SETTINGS.model_copy(update={"noise_stddev": 2.0}).plan(PRIVACY, SIZE)


def test_without_noise_nothing_is_calibrated() -> None:
    assert SETTINGS.plan(OPEN, SIZE).noise_stddev == 0.0
    assert plan_of(SETTINGS.plan(OPEN, SIZE)) == [("votes", math.inf, 6)]


def test_more_teachers_than_records_are_refused_before_any_data() -> None:
    with pytest.raises(ConfigError, match=f"num_teachers = 500.*at most {RECORDS}"):
        SETTINGS.model_copy(update={"num_teachers": 500}).plan(PRIVACY, SIZE)


# Mistakes of public implementations


def test_not_the_same_shard_for_every_teacher() -> None:
    shards = list(_learner().partition.record_of_slot)
    seen = np.concatenate(shards)
    assert len(set(seen.tolist())) == len(seen) == RECORDS


def test_not_a_fresh_partition_in_every_round() -> None:
    learner = _learner()
    before, images = learner.partition.record_of_slot.copy(), learner._shards.images_TRCHW.clone()
    for step in range(3):
        learner.step(step)
    assert np.array_equal(learner.partition.record_of_slot, before)
    assert torch.equal(learner._shards.images_TRCHW, images)


def test_no_bracket_slip_in_the_account() -> None:
    """Epsilon by hand: all votes are one Gaussian of mu = sqrt(steps * student_steps * batch) / sigma."""
    method = SETTINGS.plan(PRIVACY, SIZE)
    mu = math.sqrt(3 * 2 * 5) / method.noise_stddev

    def delta_at(epsilon: float) -> float:
        up, down = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
        return float(stats.norm.cdf(up) - math.exp(epsilon) * stats.norm.cdf(down))

    assert delta_at(PRIVACY.epsilon) <= PRIVACY.delta < delta_at(0.995 * PRIVACY.epsilon)


def test_the_callers_delta_is_used() -> None:
    smaller = PRIVACY.model_copy(update={"delta": 1e-9})
    assert SETTINGS.plan(smaller, SIZE).noise_stddev > 1.2 * SETTINGS.plan(PRIVACY, SIZE).noise_stddev


def test_the_loop_stops_before_it_overshoots_and_leaves_everything_as_it_was() -> None:
    """Enough for a step and one vote of the next: the next step does not begin."""
    method = SETTINGS.plan(PRIVACY, SIZE)
    epsilon = Accountant(PRIVACY.accountant).epsilon(times(method.event(), 3), PRIVACY.delta) * 1.001
    budget = budget_for(PRIVACY, epsilon)
    learner = method.begin(context_for(PRIVACY, budget=budget))
    learner.step(0)
    before = learner.state_dict()
    with pytest.raises(BudgetError):
        learner.step(1)
    assert budget.num_releases == 2
    assert budget.spent_epsilon() < epsilon
    after = learner.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_teachers_and_student_are_not_one_network() -> None:
    learner = _learner()
    networks = [_rows(learner.teachers.parameters, teacher) for teacher in range(6)]
    networks += [list(learner.student.parameters.values()), list(learner._generator.generator.parameters())]
    spans = [(number, _span(value)) for number, network in enumerate(networks) for value in network]
    for number, span in spans:
        for other, span_of_other in spans:
            apart = span.stop <= span_of_other.start or span_of_other.stop <= span.start
            assert number == other or apart
    ids = [id(value) for owner in (learner.teachers, learner.student) for value in owner.parameters.values()]
    assert len(set(ids)) == len(ids)
    first, second = networks[:2]
    assert not torch.equal(first[0], second[0])  # other initial weights, too


# Whom a record reaches


@pytest.mark.parametrize("record", [0, 77])
@pytest.mark.parametrize("removed", [True, False])
def test_a_record_reaches_one_teacher_and_moves_the_votes_by_no_more_than_is_charged(
    record: int, removed: bool
) -> None:
    data, seen_whole = shapes(), SETTINGS.model_copy(update={"records_per_step": 20})
    learner = _learner(seen_whole)
    if removed:
        other = _learner(seen_whole, data=without(data, record))
        other.partition = learner.partition.without(record)
        other._shards = other._gather()
    else:
        other = _learner(seen_whole, data=replaced(data, record))
    votes, votes_of_other = _teach(learner), _teach(other, fakes_of=learner)
    teacher = learner.partition.teacher_of(record)
    for number in range(6):
        same = all(
            torch.equal(a, b)
            for a, b in zip(
                _rows(learner.teachers.parameters, number),
                _rows(other.teachers.parameters, number),
                strict=True,
            )
        )
        assert same == (number != teacher)
        assert number == teacher or torch.equal(votes[number], votes_of_other[number])
    moved = (votes.sum(0) - votes_of_other.sum(0)).double().norm()
    assert moved <= learner._method.event().sensitivity


def test_a_teacher_whose_numbers_are_not_finite_says_no_and_spoils_nobody() -> None:
    learner, sound = _learner(), _learner()
    with torch.no_grad():
        learner.teachers.parameters["image"][2] = math.nan
    votes, sound_votes = _teach(learner, fakes_of=sound), _teach(sound)
    others = torch.arange(6) != 2
    assert not votes[2].any()
    assert torch.equal(votes[others], sound_votes[others])


def test_an_empty_slot_influences_nothing() -> None:
    """Whatever pixels stand in it."""
    learner, other = _learner(), _learner(data=shapes(RECORDS - 20))
    other._shards.images_TRCHW[~other._shards.present_TR] = 0.7
    again = _learner(data=shapes(RECORDS - 20))
    assert not other._shards.present_TR.all()
    assert torch.equal(_teach(other, fakes_of=learner), _teach(again, fakes_of=learner))


# The parts


def test_ranked_answers_are_yes_to_the_better_half_of_each_class() -> None:
    learner = _learner(SETTINGS.model_copy(update={"batch_size": 13}))
    fakes = learner.propose(0)
    vote_TB, logit_TB = learner.votes(fakes), learner.teachers.logits(*learner._as_batch(fakes))
    for label in range(4):
        of_class = fakes.labels_B == label
        assert (vote_TB[:, of_class].sum(1) == int(of_class.sum()) // 2).all()
        for vote_B, logit_B in zip(vote_TB[:, of_class], logit_TB[:, of_class], strict=True):
            assert not vote_B.any() or logit_B[vote_B].min() > logit_B[~vote_B].max()


def test_answers_by_belief_are_the_published_ones() -> None:
    learner = _learner(SETTINGS.model_copy(update={"vote_rule": VoteRule.BELIEF}))
    fakes = learner.propose(0)
    assert torch.equal(learner.votes(fakes), learner.teachers.logits(*learner._as_batch(fakes)) > 0)


def test_discriminators_equal_their_slow_twin() -> None:
    networks = Discriminators(3, 7, 4, 5, 1e-3, torch.Generator().manual_seed(0), torch.device("cpu"))
    rng = torch.Generator().manual_seed(1)
    images, labels = torch.rand(3, 6, 7, generator=rng), torch.randint(4, (3, 6), generator=rng)
    slow = reference.discriminator_logits_loop(networks.parameters, images, labels)
    assert torch.allclose(networks.logits(images, labels), slow, atol=1e-5)
    shared = reference.discriminator_logits_loop(
        networks.parameters, images[:1].expand(3, -1, -1), labels[:1].expand(3, -1)
    )
    assert torch.allclose(networks.logits(images[:1], labels[:1]), shared, atol=1e-5)


def test_a_run_goes_on_from_its_state_as_if_it_had_not_stopped() -> None:
    """The shards too: the second learner draws others first, and takes those of the run."""
    whole, first = _learner(), _learner()
    for step in range(3):
        whole.step(step)
    for step in range(2):
        first.step(step)
    second = SETTINGS.plan(PRIVACY, SIZE).begin(context_for(PRIVACY))
    second.load_state_dict(first.state_dict())
    second.step(2)
    expected, found = whole.state_dict(), second.state_dict()
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_shards_without_a_seed_come_from_the_system_and_from_the_state_after_that() -> None:
    secure = PRIVACY.model_copy(update={"insecure_seed": None})
    first, second = _learner(privacy=secure), _learner(privacy=secure)
    assert first.partition.from_os_entropy
    assert not np.array_equal(first.partition.record_of_slot, second.partition.record_of_slot)
    second.load_state_dict(first.state_dict())
    assert np.array_equal(first.partition.record_of_slot, second.partition.record_of_slot)
    assert torch.equal(first._shards.images_TRCHW, second._shards.images_TRCHW)


def test_a_state_of_another_run_is_refused() -> None:
    state = _learner().state_dict()
    with pytest.raises(CheckpointError, match="num_teachers 6"):
        _learner(SETTINGS.model_copy(update={"num_teachers": 5})).load_state_dict(state)
    with pytest.raises(CheckpointError, match="discriminators"):
        _learner(SETTINGS.model_copy(update={"teacher_units": 7})).load_state_dict(state)


def test_it_learns_more_than_chance_without_noise() -> None:
    """A quarter would be chance."""
    change = {
        "batch_size": 32,
        "num_steps": 110,
        "student_steps": 3,
        "teacher_units": 16,
        "student_units": 32,
        "records_per_step": 20,
        "learning_rate": 1e-2,
        "generator": GENERATOR.model_copy(update={"weight_average": 0.9}),
    }
    data, size = shapes(600), dataclasses.replace(SIZE, num_records=600)
    method = SETTINGS.model_copy(update=change).plan(OPEN, size)
    learner = method.begin(context_for(OPEN, data))
    for step in range(method.num_steps):
        learner.step(step)
    assert share_of_shapes_recognised(learner.generator(), GENERATOR.latent_dim) > 0.35
