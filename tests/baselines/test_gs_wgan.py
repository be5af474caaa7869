"""GS-WGAN: what one record can do to a round, the mistakes of the published form, and that it learns."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from baseline_scene import context_for, same_state, size_of, total_epsilon

from datalens.baselines.gs_wgan import PUBLISHED_NOISE, GSWgan, GSWganLearner, GSWganSettings
from datalens.data.images import LabelledImages
from datalens.data.shapes import draw_shapes
from datalens.errors import BudgetError, CheckpointError, ConfigError
from datalens.evaluation import evaluate_utility
from datalens.methods.method import Context
from datalens.noise import make_noise
from datalens.privacy.accountant import AccountantKind
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.privacy.gaussian import epsilon_of
from datalens.privacy.ledger import Ledger
from datalens.student.sampling import sample_images
from datalens.training.sections import Privacy

RECORDS = draw_shapes(60, image_size=8)
SIZE = size_of(RECORDS)
SMALL = GSWganSettings(
    num_steps=3,
    batch_size=4,
    num_critics=5,
    critic_steps=1,
    records_per_step=4,
    critic_channels=2,
    latent_dim=3,
    hidden_units=8,
    channels=4,
)
SEEDED = Privacy(epsilon=5.0, insecure_seed=3)
OPEN = Privacy(noise="none", insecure_seed=3)


def method(privacy: Privacy = SEEDED, **changes: object) -> GSWgan:
    return SMALL.model_copy(update=changes).plan(privacy, SIZE)


def begin(
    data: LabelledImages = RECORDS, privacy: Privacy = SEEDED, **changes: object
) -> tuple[GSWganLearner, Context]:
    context = dataclasses.replace(context_for(data, privacy, ()), size=SIZE)
    return method(privacy, **changes).begin(context), context


def an_event(planned: GSWgan) -> GaussianEvent:
    event = planned.planned()[0].event
    assert isinstance(event, GaussianEvent)
    return event


# What one record can do


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e9])
def test_a_critic_that_turns_round_moves_its_answer_by_no_more_than_charged(length: float) -> None:
    made, budget = method(), Budget(Ledger.in_memory(), Authorisation.not_private(1e-5))
    silent = make_noise(NoiseKind.NONE)
    grid = made.grid
    rows = torch.randn(4, grid.dim, generator=torch.Generator().manual_seed(1))
    rows *= length / rows.norm(dim=1, keepdim=True)
    mechanism = dataclasses.replace(made.mechanism(), noise_stddev=0.0)
    answers = [
        mechanism.charge(silent, budget, {}).release(0, sign * rows).value * grid.scale for sign in (1, -1)
    ]
    moved = float((answers[0] - answers[1]).norm())
    assert moved <= an_event(made).sensitivity * (1 + 1e-12)
    assert length < 1 or moved > 0.98 * an_event(made).sensitivity


def test_each_image_is_clipped_and_not_the_batch() -> None:
    rows = torch.zeros(4, 64)
    rows[0, 0], rows[1:, 1] = 1e6, 0.5
    whole = method().grid.back(method().grid.put(rows))
    assert whole.norm(dim=1).tolist() == pytest.approx([1.0, 0.5, 0.5, 0.5], rel=0.02)


def test_one_record_changes_the_answer_of_its_own_critic_and_of_no_other() -> None:
    learner, _ = begin()
    record = int(learner.partition.shard(2)[0])
    images = RECORDS.images.copy()
    images[record] = 255 - images[record]
    other, _ = begin(dataclasses.replace(RECORDS, images=images))
    for critic in range(5):
        for one in (learner, other):
            one._teach(critic, critic)
        mine, theirs = (one.critics[critic].state_dict() for one in (learner, other))
        assert same_state(mine, theirs) == (critic != 2)


def test_critics_share_no_record_and_no_network() -> None:
    learner, _ = begin()
    shards = [set(learner.partition.shard(critic).tolist()) for critic in range(5)]
    assert sum(map(len, shards)) == len(set.union(*shards)) == 60
    owners = [id(p) for critic in learner.critics for p in critic.parameters()]
    assert len(owners) == len(set(owners))
    first = learner.critics[0].logit.weight, learner.critics[1].logit.weight
    assert not torch.equal(*first)


def test_shards_stay_when_a_run_goes_on() -> None:
    honest = dataclasses.replace(method(), privacy=Privacy(epsilon=5.0))
    one, other = (honest.begin(context_for(RECORDS, SEEDED, ())) for _ in range(2))
    assert not np.array_equal(one.partition.slot_of_record, other.partition.slot_of_record)
    other.load_state_dict(one.state_dict())
    assert np.array_equal(one.partition.slot_of_record, other.partition.slot_of_record)


def test_labels_of_records_do_not_reach_the_generator_past_the_noise() -> None:
    learner, _ = begin()
    before = {name: value.clone() for name, value in learner._generator.state_dict().items()}
    learner._teach(0, 0)
    assert same_state(before, dict(learner._generator.state_dict()))


# Known mistakes


def test_images_of_a_step_are_not_amplified_one_by_one() -> None:
    """All of them come from one critic: a round costs 2 sqrt(B), whatever the number of critics is."""
    few, many = (method(num_critics=count, noise_multiplier=90.0) for count in (2, 20))
    for made in (few, many):
        event = an_event(made)
        assert event.mu == pytest.approx(2 * math.sqrt(4) / 90)
        assert made.planned()[0].replace_one == event
    assert an_event(many).coordinates == 20 * 4 * 64


def test_a_record_pays_for_its_own_critics_turns() -> None:
    """T turns of N critics in turn: mu = 2 sqrt(B ceil(T / N)) / sigma, which is dp-accounting's for one Gaussian."""
    import dp_accounting
    from dp_accounting import pld

    made = method(noise_multiplier=90.0, num_steps=30)
    turns = 30 * 5
    mu = 2 * math.sqrt(4 * math.ceil(turns / 5)) / 90
    mine = total_epsilon(made.planned(), 1e-5, AccountantKind.EXACT)
    assert mine == pytest.approx(epsilon_of(1e-5, mu), rel=1e-6)
    accountant = pld.PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(1 / mu))
    assert mine == pytest.approx(accountant.get_epsilon(1e-5), rel=0.01)


def test_a_critic_answers_once_a_round_and_never_without_a_charge() -> None:
    budget = Budget(Ledger.in_memory(), Authorisation(5.0, 1e-5))
    paid = method().mechanism().charge(make_noise(NoiseKind.ROUNDED, b"k"), budget, {"step": 0})
    assert budget.num_releases == 1
    paid.release(1, torch.zeros(4, 64))
    for critic in (1, 5, -1):
        with pytest.raises(ValueError, match="may not answer in this round"):
            paid.release(critic, torch.zeros(4, 64))
    with pytest.raises(ValueError, match="cannot be released"):
        paid.release(2, torch.zeros(5, 64))


PUBLISHED = Privacy(insecure_seed=3, as_published=True)


def test_the_published_form_promises_nothing_whatever_its_noise() -> None:
    published = method(PUBLISHED)
    assert published.planned() == () and not published.privacy.is_private
    assert published.noise_stddev == PUBLISHED_NOISE * published.grid.units
    assert method(PUBLISHED, noise_multiplier=2.0).noise_stddev == 2 * published.grid.units
    with pytest.raises(ConfigError, match=r"^noise_multiplier = 1e-05: .* choose one in between"):
        method(PUBLISHED, noise_multiplier=1e-5)


def watched(learner: GSWganLearner, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The critics that are asked, as they are."""
    asked: list[int] = []
    gradients = learner._gradients

    def ask(critic: int, *rest: Any) -> Any:
        asked.append(critic)
        return gradients(critic, *rest)

    monkeypatch.setattr(learner, "_gradients", ask)
    return asked


def test_the_published_form_draws_critics_in_secret_and_charges_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, context = begin(privacy=PUBLISHED)
    asked = watched(learner, monkeypatch)
    learner.step(0)
    learner.step(1)
    assert len(asked) == 10 and asked[:5] != list(range(5)) and asked[:5] != asked[5:]
    assert context.budget.num_releases == 0


def test_the_sound_form_asks_critics_in_public_order(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, context = begin()
    asked = watched(learner, monkeypatch)
    learner.step(0)
    learner.step(1)
    assert asked == [*range(5), *range(5)] and context.budget.num_releases == 2


# Plan


def test_the_plan_costs_epsilon_and_hardly_less() -> None:
    for epsilon in (1.0, 10.0):
        made = method(Privacy(epsilon=epsilon))
        assert 0.99 * epsilon < total_epsilon(made.planned(), 1e-5, AccountantKind.EXACT) <= epsilon


def test_a_person_with_more_records_reaches_as_many_critics() -> None:
    one, four = (method(Privacy(group_size=size), noise_multiplier=200.0) for size in (1, 4))
    assert an_event(four).sensitivity == pytest.approx(2 * an_event(one).sensitivity)


def test_at_the_published_settings_much_more_noise_is_needed() -> None:
    """32 images, 20,000 turns, 1000 critics: noise 25 where 1.07 was used, at epsilon 10."""
    settings = GSWganSettings(num_steps=20, batch_size=32, num_critics=1000)
    made = settings.plan(Privacy(epsilon=10.0), dataclasses.replace(SIZE, num_records=60_000))
    assert 25 < made.noise_stddev / made.grid.units < 26


@pytest.mark.parametrize(
    ("noise", "asked", "message"),
    [
        ("none", 2.0, "^noise_multiplier = 2 with noise 'none'"),
        ("rounded-gaussian", 1e6, "^noise_multiplier = 1e\\+06: .* can be drawn from 0.000488281 to 256;"),
        ("rounded-gaussian", 1.0, "cost epsilon .* with noise_multiplier 1; use"),
    ],
)
def test_noise_that_cannot_be_is_refused_by_the_setting_that_asked(
    noise: str, asked: float, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        method(Privacy(noise=NoiseKind(noise)), noise_multiplier=asked)


def test_too_many_critics_are_refused() -> None:
    with pytest.raises(ConfigError, match="num_critics = 61"):
        method(num_critics=61)


def test_a_round_that_does_not_fit_leaves_everything_as_it_was() -> None:
    learner, context = begin()
    for step in range(3):
        learner.step(step)
    before = learner.state_dict()
    with pytest.raises(BudgetError):
        learner.step(3)
    assert context.budget.num_releases == 3 and same_state(before, learner.state_dict())
    events = context.budget.ledger.events()
    assert all(isinstance(event, GaussianEvent) and event.noise is NoiseKind.ROUNDED for event in events)


def test_a_critic_without_records_answers_too() -> None:
    learner, context = begin(
        dataclasses.replace(RECORDS, images=RECORDS.images[:1], labels=RECORDS.labels[:1])
    )
    learner.step(0)
    assert context.budget.num_releases == 1


# Checkpoints


def test_a_learner_that_goes_on_is_the_one_that_never_stopped() -> None:
    (whole, _), (first, _), (second, _) = begin(), begin(), begin()
    for step in range(3):
        whole.step(step)
    first.step(0)
    second.load_state_dict(first.state_dict())
    second.step(1)
    second.step(2)
    assert same_state(whole.state_dict(), second.state_dict())


def test_a_state_of_other_settings_is_refused() -> None:
    learner, _ = begin()
    other, _ = begin(critic_channels=3)
    with pytest.raises(CheckpointError, match="use the settings it was made with"):
        other.load_state_dict(learner.state_dict())


# Learning


def test_it_learns_drawn_shapes_without_noise() -> None:
    data = draw_shapes(600, image_size=8)
    changes = {
        "num_steps": 40,
        "batch_size": 16,
        "critic_steps": 2,
        "records_per_step": 16,
        "learning_rate": 2e-3,
        "critic_channels": 8,
        "channels": 8,
        "hidden_units": 32,
    }
    made = SMALL.model_copy(update=changes).plan(OPEN, size_of(data))
    learner = made.begin(context_for(data, OPEN, ()))
    for step in range(made.num_steps):
        learner.step(step)
    images, labels = sample_images(learner.generator(), made.latent, 400, seed=1)
    test = draw_shapes(400, image_size=8, seed=9)
    result = evaluate_utility(
        images, labels, test.images, test.labels, num_classes=4, classifier="mlp", batch_size=32
    )
    assert result.last_accuracy > 0.35  # a quarter by chance
