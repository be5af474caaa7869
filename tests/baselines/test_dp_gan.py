"""DP-GAN: what one record can do to a critic's step, mistakes known from public code, and that it learns."""

from __future__ import annotations

import dataclasses
import sys
from functools import lru_cache

import numpy as np
import pytest
import torch
from baseline_scene import context_for, same_state, size_of
from torch import nn

from datalens.baselines.dp_gan import WHAT, DPGan, DPGanLearner, DPGanSettings
from datalens.baselines.per_record import per_record_gradients
from datalens.data.images import LabelledImages
from datalens.data.shapes import draw_shapes
from datalens.errors import BudgetError, CheckpointError, ConfigError, MissingExtraError
from datalens.evaluation import evaluate_utility
from datalens.methods.method import Context
from datalens.methods.pricing import replace_one_price
from datalens.privacy.accountant import Accountant
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind, PoissonGaussianEvent
from datalens.privacy.ledger import Ledger
from datalens.privacy.replacing import replace_one_epsilon
from datalens.student.sampling import sample_images
from datalens.training.sections import Privacy

RECORDS = draw_shapes(60, image_size=8)
SIZE = size_of(RECORDS)
SMALL = DPGanSettings(
    num_steps=3,
    critic_steps=2,
    batch_size=12,
    generated_batch=8,
    images_per_class=2,
    critic_channels=2,
    latent_dim=3,
    hidden_units=8,
    channels=4,
)
SEEDED = Privacy(epsilon=5.0, insecure_seed=3)


@lru_cache
def method(privacy: Privacy = SEEDED) -> DPGan:
    return SMALL.plan(privacy, SIZE)


def begin(data: LabelledImages = RECORDS, **changes: object) -> tuple[DPGanLearner, Context]:
    context = dataclasses.replace(context_for(data, SEEDED, ()), size=SIZE, **changes)
    return method().begin(context), context


def lot_of(learner: DPGanLearner, number: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    lot = learner.lot(number)
    assert len(lot[0]) > 4
    return lot


# What one record can do


def adversarial(critic: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Images with gradients as long as they come: far outside of what pixels may be."""
    return torch.where(torch.arange(len(images))[:, None, None, None] % 2 == 0, 1e6 * images + 1e6, -1e8)


def test_one_record_moves_the_sum_by_no_more_than_charged_however_wild_it_is() -> None:
    learner, _ = begin()
    images, labels, present = lot_of(learner)
    centre = learner._centres(0)
    units = method().grid.units
    wild = adversarial(learner._critic, images)
    whole = learner.clipped_sum((wild, labels, present), centre)
    for row in range(len(labels)):
        gone = present.clone()
        gone[row] = False
        moved = whole - learner.clipped_sum((wild, labels, gone), centre)
        assert int(moved.square().sum()) <= units**2
        assert float(moved.double().norm()) > 0.98 * units * bool(present[row])
    event = method().planned()[0].event
    assert isinstance(event, PoissonGaussianEvent)
    assert event.noise_multiplier == method().noise_stddev / units


def test_a_removed_record_leaves_every_other_one_in_its_row_to_the_last_bit() -> None:
    """Its slot is drawn as before and is empty; batches keep their shape, so nobody else's rounding changes."""
    learner, _ = begin()
    lot = lot_of(learner)
    gone = int(learner.slots.record_of_slot[0].max())
    kept = np.delete(np.arange(60), gone)
    fewer = dataclasses.replace(RECORDS, images=RECORDS.images[kept], labels=RECORDS.labels[kept])
    other, _ = begin(fewer)
    other.slots = learner.slots.without(gone)
    differing = 0
    for number in range(8):
        mine, theirs = learner.lot(number), other.lot(number)
        same = [bool(torch.equal(a, b)) for a, b in zip(mine[0], theirs[0], strict=True)]
        differing += same.count(False)
        assert same.count(False) <= 1
        rows = [per_record_gradients(learner._critic, *part[:2]) for part in (mine, theirs)]
        for row, is_same in enumerate(same):
            assert torch.equal(rows[0][row], rows[1][row]) == is_same
    assert differing > 0 and len(lot[0]) == len(other.lot(0)[0])


def test_the_label_of_a_record_does_not_reach_what_others_are_compared_with() -> None:
    """Batch norm of a generator that drew one image for each record would carry a label to everybody."""
    learner, _ = begin()
    other, _ = begin(dataclasses.replace(RECORDS, labels=(RECORDS.labels + 1) % 4))
    assert torch.equal(learner._centres(5), other._centres(5))


# Known mistakes


def test_gradients_are_clipped_per_record_and_not_per_batch() -> None:
    learner, _ = begin()
    images, labels, present = lot_of(learner)
    images = images.clone()
    images[0] = 1e6
    centre = learner._centres(0)
    rows = per_record_gradients(learner._critic, images, labels) - centre[labels]
    grid = method().grid
    assert torch.equal(
        learner.clipped_sum((images, labels, present), centre), (grid.put(rows) * present[:, None]).sum(0)
    )
    calm = rows[1:][present[1:]].norm(dim=1)
    assert float(calm.max()) < 1e3  # one wild record would have shrunk these to nothing
    together = grid.put((rows * present[:, None]).sum(0, keepdim=True))
    assert float(together.double().norm()) <= grid.units  # the mistake: a whole batch as long as one record


def flat_gradient(critic: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in critic.parameters() if p.grad is not None])


def test_the_noisy_sum_is_divided_by_the_expected_size_and_never_by_the_true_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Noise scaled by the true size of a lot, or a mean over it, would tell who was drawn and how many there are."""
    learner, _ = begin()
    seen = []

    critic_step = learner._optimizers["critic"]
    monkeypatch.setattr(critic_step, "step", lambda: seen.append(flat_gradient(learner._critic)))
    sizes = set()
    for number in range(4):
        sizes.add(int(learner.lot(number)[2].sum()))
        expected = learner.clipped_sum(learner.lot(number), learner._centres(number))
        noise = context_for(RECORDS, SEEDED, ()).noise_for(WHAT, number)
        drawn = torch.from_numpy(noise.sample((method().grid.dim,), method().noise_stddev))
        learner._critic_step(0, number)
        assert torch.equal(seen[-1], -(method().grid.back(expected + drawn) / 12).float())
    assert len(sizes) > 1


def test_lots_are_poisson_and_not_a_shuffled_pass() -> None:
    learner, _ = begin()
    lots = [learner.lot(number)[2] for number in range(60)]
    sizes = torch.tensor([int(present.sum()) for present in lots]).float()
    assert (
        9 < float(sizes.mean()) < 15 and float(sizes.var()) > 3
    )  # n q (1 - q) = 9.6; a shuffle's lots are alike
    event = method().planned()[0].event
    assert isinstance(event, PoissonGaussianEvent) and event.sampling_probability == 12 / 60


def test_lots_cannot_be_derived_from_anything_where_no_seed_was_asked_for() -> None:
    honest = dataclasses.replace(method(), privacy=Privacy(epsilon=5.0))
    one, other = (honest.begin(context_for(RECORDS, SEEDED, ())) for _ in range(2))
    assert [one.lot(n)[1].tolist() for n in range(6)] != [other.lot(n)[1].tolist() for n in range(6)]
    assert [one.lot(0)[1].tolist() for _ in range(6)] != [one.lot(0)[1].tolist() for _ in range(6)]


def test_an_empty_lot_is_charged_and_noised_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, context = begin()
    nobody = torch.zeros(0, 1, 8, 8), torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.bool)
    monkeypatch.setattr(learner, "lot", lambda number: nobody)
    before = learner.state_dict()
    learner.step(0)
    assert context.budget.num_releases == 2 and not same_state(before, learner.state_dict())


def test_a_gradient_that_is_no_number_adds_nothing_and_stops_nothing() -> None:
    learner, _ = begin()
    images, labels, present = lot_of(learner)
    images = images.clone()
    images[0] = float("nan")
    gone = present.clone()
    gone[0] = False
    centre = learner._centres(0)
    assert torch.equal(
        learner.clipped_sum((images, labels, present), centre),
        learner.clipped_sum((images, labels, gone), centre),
    )


def test_the_critic_is_not_handed_out_and_the_generator_sees_released_sums_only() -> None:
    """From the same state two data sets give the same generator step."""
    learner, _ = begin()
    other, _ = begin(dataclasses.replace(RECORDS, images=255 - RECORDS.images))
    learner._generator_step(1)
    other._generator_step(1)
    assert same_state(learner.state_dict(), other.state_dict())
    assert not any("critic" in name for name in learner.generator().state_dict())


# Account


def test_the_plan_costs_epsilon_and_hardly_less_and_agrees_with_dp_accounting() -> None:
    import dp_accounting
    from dp_accounting import rdp

    (planned,) = method().planned()
    event = planned.event
    assert isinstance(event, PoissonGaussianEvent) and planned.count == 6
    whole = dataclasses.replace(event, count=6)
    mine = Accountant().epsilon(whole, 1e-5)
    assert 0.99 * 5 < mine <= 5
    theirs = rdp.RdpAccountant()
    step = dp_accounting.PoissonSampledDpEvent(0.2, dp_accounting.GaussianDpEvent(event.noise_multiplier))
    theirs.compose(step, 6)
    assert mine == pytest.approx(theirs.get_epsilon(1e-5), rel=0.01)
    assert planned.replace_one is None
    assert replace_one_price([planned], Accountant(), 1e-5) == replace_one_epsilon(Accountant(), whole, 1e-5)


def test_a_run_charges_what_was_planned_and_no_more() -> None:
    learner, context = begin()
    for step in range(3):
        learner.step(step)
    (planned,) = method().planned()
    events = context.budget.ledger.events()
    assert len(events) == planned.count == 6
    (kind,) = set(events)
    assert isinstance(kind, PoissonGaussianEvent) and isinstance(planned.event, PoissonGaussianEvent)
    assert dataclasses.replace(kind, slack=planned.event.slack) == planned.event
    assert kind.slack.eta <= planned.event.slack.eta and kind.slack.tau <= planned.event.slack.tau
    with pytest.raises(BudgetError):
        for step in range(3, 40):
            learner.step(step)


def test_a_step_that_does_not_fit_leaves_everything_as_it_was() -> None:
    learner, context = begin(budget=Budget(Ledger.in_memory(), Authorisation(1e-3, 1e-5)))
    before = learner.state_dict()
    with pytest.raises(BudgetError):
        learner.step(0)
    assert context.budget.num_releases == 0 and same_state(before, learner.state_dict())


def test_floating_point_noise_says_so_in_every_event() -> None:
    floating = dataclasses.replace(method(), privacy=Privacy(epsilon=5.0, noise="continuous-gaussian"))
    event = floating.planned()[0].event
    assert isinstance(event, PoissonGaussianEvent) and event.noise is NoiseKind.CONTINUOUS


def test_what_cannot_be_planned_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="batch_size = 61: a lot cannot expect more than all 60 records"):
        SMALL.model_copy(update={"batch_size": 61}).plan(SEEDED, SIZE)
    with pytest.raises(ConfigError, match="no proved cost in Poisson-sampled steps: use rounded-gaussian"):
        SMALL.plan(Privacy(noise="discrete-gaussian"), SIZE)
    with pytest.raises(ConfigError, match="group"):
        begin(dataclasses.replace(RECORDS, group_ids=np.arange(60)))
    monkeypatch.setitem(sys.modules, "opacus.grad_sample", None)
    with pytest.raises(MissingExtraError, match=r"need Opacus.*pip install 'datalens-dp\[dpsgd\]'"):
        SMALL.plan(SEEDED, SIZE)


# Gradients


def test_gradients_of_records_are_those_of_a_slow_loop_and_leave_nothing_behind() -> None:
    learner, _ = begin()
    critic = learner._critic
    images, labels, _ = lot_of(learner)
    rows = per_record_gradients(critic, images, labels)
    for row in range(len(labels)):
        critic.zero_grad()
        critic(images[row : row + 1], labels[row : row + 1]).sum().backward()
        slow = flat_gradient(critic)
        assert torch.allclose(rows[row], slow, rtol=1e-4, atol=1e-6)
    critic.zero_grad(set_to_none=True)
    critic(images, labels).sum().backward()
    assert not any(hasattr(p, "grad_sample") for p in critic.parameters())


def test_another_record_of_the_batch_takes_no_part_in_a_gradient() -> None:
    learner, _ = begin()
    images, labels, _ = lot_of(learner)
    changed = images.clone()
    changed[1:] = torch.rand(changed[1:].shape, generator=torch.Generator().manual_seed(1)) * 1e4
    one, other = (per_record_gradients(learner._critic, part, labels) for part in (images, changed))
    assert torch.equal(one[0], other[0]) and not torch.equal(one[1], other[1])


def test_weights_stay_within_the_clip() -> None:
    learner, _ = begin()
    learner.step(0)
    largest = max(float(p.detach().abs().max()) for p in learner._critic.parameters())
    assert largest == pytest.approx(SMALL.weight_clip)


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


def test_slots_are_kept_when_a_run_goes_on() -> None:
    honest = dataclasses.replace(method(), privacy=Privacy(epsilon=5.0))
    one, other = (honest.begin(context_for(RECORDS, SEEDED, ())) for _ in range(2))
    assert not np.array_equal(one.slots.slot_of_record, other.slots.slot_of_record)
    other.load_state_dict(one.state_dict())
    assert np.array_equal(one.slots.slot_of_record, other.slots.slot_of_record)


def test_a_state_of_other_settings_is_refused() -> None:
    learner, _ = begin()
    wider = DPGan(SMALL.model_copy(update={"critic_channels": 3}), SEEDED, SIZE, 100.0)
    with pytest.raises(CheckpointError, match="use the settings it was made with"):
        wider.begin(context_for(RECORDS, SEEDED, ())).load_state_dict(learner.state_dict())


# Learning


def test_it_learns_drawn_shapes_without_noise() -> None:
    data = draw_shapes(600, image_size=8)
    open_ = Privacy(noise="none", insecure_seed=3)
    changes = {"num_steps": 250, "batch_size": 32, "generated_batch": 32, "critic_channels": 8, "channels": 8}
    settings = SMALL.model_copy(
        update={**changes, "hidden_units": 32, "latent_dim": 4, "images_per_class": 4}
    )
    made = settings.plan(open_, size_of(data))
    learner = made.begin(context_for(data, open_, ()))
    for step in range(made.num_steps):
        learner.step(step)
    images, labels = sample_images(learner.generator(), made.latent, 400, seed=1)
    test = draw_shapes(400, image_size=8, seed=9)
    result = evaluate_utility(
        images, labels, test.images, test.labels, num_classes=4, classifier="mlp", batch_size=32
    )
    assert result.last_accuracy > 0.35  # a quarter by chance
