"""DP-MERF: what one record can do to what is released, known mistakes of public code, and that it learns."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from baseline_scene import SpyNoise
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import merf_distance_loop

from datalens.baselines.dp_merf import WHAT, DPMerf, MerfLearner, MerfSettings, embedding_sums, merf_loss
from datalens.baselines.random_features import RandomFeatures, public_length_scale
from datalens.data.images import LabelledImages
from datalens.data.shapes import draw_shapes
from datalens.errors import BudgetError, CheckpointError, ConfigError
from datalens.evaluation import evaluate_utility
from datalens.methods.method import Context, PublicSize
from datalens.noise import NoiseSource, make_noise
from datalens.privacy.accountant import Accountant
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import GaussianEvent, NoiseKind, SamplerSlack
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.student.sampling import sample_images
from datalens.training.sections import Privacy

SHAPE, CLASSES, DELTA = (1, 8, 8), 4, 1e-5
SMALL = MerfSettings(
    num_features=64, num_steps=6, images_per_class=4, latent_dim=3, hidden_units=16, channels=4
)
SIZE = PublicSize(100, SHAPE, CLASSES)


def _budget(epsilon: float = 1.0) -> Budget:
    return Budget(Ledger.in_memory(), Authorisation(epsilon, DELTA))


def _context(
    data: LabelledImages | None = None,
    noise: NoiseSource | None = None,
    budget: Budget | None = None,
    size: PublicSize = SIZE,
) -> Context:
    source = noise or SpyNoise()
    return Context(
        data=draw_shapes(60, image_size=8) if data is None else data,
        size=size,
        budget=budget or _budget(),
        noise_for=lambda what, number: source,
        public=Streams.from_insecure_seed(3, "public"),
        private=Streams.from_insecure_seed(3, "private"),
        device=torch.device("cpu"),
    )


def _method(size: PublicSize = SIZE, **changes: object) -> DPMerf:
    return (
        SMALL.plan(Privacy(), size) if not changes else SMALL.model_copy(update=changes).plan(Privacy(), size)
    )


def _learner(context: Context, steps: int = 0) -> MerfLearner:
    learner = _method(context.size).begin(context)
    for step in range(steps):
        learner.step(step)
    return learner


def _records(data: LabelledImages, chosen: np.ndarray) -> LabelledImages:
    return dataclasses.replace(data, images=data.images[chosen], labels=data.labels[chosen])


def _sums(data: LabelledImages) -> torch.Tensor:
    rng = torch.Generator().manual_seed(0)
    features = RandomFeatures.draw(SMALL.num_features, SHAPE, public_length_scale(SHAPE), rng)
    return embedding_sums(data, features, _method().grid, CLASSES)


def _same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# What one record can do


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 300))
def test_a_neighbour_moves_the_sum_by_no_more_than_the_plan_says(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, *SHAPE), dtype=np.uint8)
    data = LabelledImages(images, rng.integers(0, CLASSES, count), tuple("abcd"), "noise", public=True)
    planned = _method().planned()[0]
    gone = int(rng.integers(count))
    kept = np.delete(np.arange(count), gone)
    swapped_images, swapped_labels = data.images.copy(), data.labels.copy()
    swapped_images[gone], swapped_labels[gone] = 255 - images[gone], (data.labels[gone] + 1) % CLASSES
    swapped = dataclasses.replace(data, images=swapped_images, labels=swapped_labels)
    whole = _sums(data)
    removed = whole - _sums(_records(data, kept))
    assert torch.equal(removed, _sums(_records(data, np.array([gone]))))  # nobody else's rounding changed
    assert isinstance(planned.event, GaussianEvent) and isinstance(planned.replace_one, GaussianEvent)
    assert int(removed.square().sum()) <= planned.event.sensitivity**2
    assert int((whole - _sums(swapped)).square().sum()) <= planned.replace_one.sensitivity**2


def test_a_record_moves_nearly_as_far_as_charged() -> None:
    event = _method().planned()[0].event
    assert isinstance(event, GaussianEvent)
    one = _sums(draw_shapes(1, image_size=8))
    assert float(one.double().norm()) > 0.98 * event.sensitivity


# Known mistakes of public code


def test_the_sum_is_divided_by_the_public_number_and_never_by_the_true_one() -> None:
    for count in (60, 59):
        data = draw_shapes(count, image_size=8)
        learner = _learner(_context(data), 1)
        rng = Streams.from_insecure_seed(3, "public").torch("random-features")
        features = RandomFeatures.draw(SMALL.num_features, SHAPE, public_length_scale(SHAPE), rng)
        sums = embedding_sums(data, features, _method().grid, CLASSES)
        expected = (_method().grid.back(sums) / SIZE.num_records).float()
        assert torch.equal(learner.state_dict()["embedding"], expected)


def test_a_class_is_not_divided_by_its_own_number_of_records() -> None:
    data = draw_shapes(40, image_size=8)
    twice = np.concatenate([np.arange(40), np.flatnonzero(data.labels == 2)])
    before, after = (
        _learner(_context(_records(data, c)), 1).state_dict()["embedding"] for c in (np.arange(40), twice)
    )
    assert torch.allclose(after[2], 2 * before[2], rtol=1e-6)
    assert torch.equal(after[[0, 1, 3]], before[[0, 1, 3]])


def test_class_counts_are_not_released() -> None:
    """One charge, one draw of noise for every number that leaves, and no number beside them."""
    budget, noise = _budget(), SpyNoise()
    learner = _learner(_context(budget=budget, noise=noise), SMALL.num_steps)
    assert budget.num_releases == 1
    assert noise.calls == [((CLASSES, SMALL.num_features), _method().noise_stddev)]
    tensors = learner.state_dict()
    others = [name for name in tensors if not name.startswith(("module/", "optimizer/"))]
    assert others == ["embedding"] and tensors["embedding"].shape == (CLASSES, SMALL.num_features)


def test_the_generator_sees_data_through_the_released_sum_only() -> None:
    """Two different data sets with the same released sum give the same generator."""
    data = draw_shapes(60, image_size=8)
    learner = _learner(_context(data), 1)
    other = _method().begin(_context(_records(data, np.arange(5))))
    other.load_state_dict(learner.state_dict())
    for step in range(1, 4):
        learner.step(step)
        other.step(step)
    assert _same(learner.state_dict(), other.state_dict())


def test_the_kernel_width_does_not_look_at_records() -> None:
    """A known mistake: the median distance of the private records."""
    dark = draw_shapes(60, image_size=8)
    bright = dataclasses.replace(dark, images=255 - dark.images // 2)
    one, other = (_method().begin(_context(data)) for data in (dark, bright))
    assert torch.equal(one._features.turns_MD, other._features.turns_MD)
    wide = _method(length_scale=2 * public_length_scale(SHAPE)).begin(_context(dark))
    ratio = wide._features.turns_MD.abs().sum() / one._features.turns_MD.abs().sum()
    assert float(ratio) == pytest.approx(0.5, rel=1e-3)


def test_more_records_than_declared_are_no_error() -> None:
    """The sensitivity does not depend on the number; an error would tell it."""
    _learner(_context(size=PublicSize(10, SHAPE, CLASSES)), 1)


# Plan


def test_the_plan_costs_epsilon_and_hardly_less() -> None:
    for epsilon in (0.3, 1.0, 10.0):
        event = SMALL.plan(Privacy(epsilon=epsilon), SIZE).planned()[0].event
        assert 0.99 * epsilon < Accountant(Privacy().accountant).epsilon(event, DELTA) <= epsilon


def test_replacing_moves_twice_as_far_and_groups_further() -> None:
    planned = SMALL.plan(Privacy(group_size=3), SIZE).planned()[0]
    assert isinstance(planned.event, GaussianEvent) and isinstance(planned.replace_one, GaussianEvent)
    assert planned.what == WHAT and planned.count == 1
    assert planned.event.sensitivity == 3 * _method().units
    assert planned.replace_one.sensitivity == 2 * planned.event.sensitivity
    alone = _method().release.event
    assert isinstance(alone, GaussianEvent)
    assert planned.event.mu == pytest.approx(alone.mu, rel=1e-3)


def test_what_is_charged_is_what_was_planned() -> None:
    budget = _budget()
    _learner(_context(budget=budget), 1)
    (event,) = budget.ledger.events()
    assert dataclasses.replace(_method().planned()[0].event, slack=SamplerSlack()) == event


def test_too_little_epsilon_is_refused_and_the_one_that_is_named_does() -> None:
    method = SMALL.model_copy(update={"num_features": 10_000})
    line = r"epsilon = 0.001: one release needs noise .* use a larger epsilon, ([0-9.]+) or more"
    with pytest.raises(ConfigError, match=line) as refused:
        method.plan(Privacy(epsilon=1e-3), SIZE)
    named = re.search(line, str(refused.value))
    assert named is not None
    method.plan(Privacy(epsilon=float(named[1])), SIZE)


def test_data_that_come_in_groups_are_refused() -> None:
    data = draw_shapes(8, image_size=8)
    with pytest.raises(ConfigError, match="group"):
        _method().begin(_context(dataclasses.replace(data, group_ids=np.arange(8))))


# Checkpoints


def test_a_resumed_run_releases_nothing_and_ends_alike() -> None:
    budget, noise = _budget(), SpyNoise(5)
    whole = _learner(_context(budget=budget, noise=noise), SMALL.num_steps)
    first = _learner(_context(noise=SpyNoise(5)), 3)
    nothing_left = Budget(Ledger.in_memory(), Authorisation(1e-3, DELTA))
    second = _method().begin(_context(budget=nothing_left))
    second.load_state_dict(first.state_dict())
    for step in range(3, SMALL.num_steps):
        second.step(step)
    assert nothing_left.num_releases == 0
    assert _same(whole.state_dict(), second.state_dict())
    assert _same(whole.generator().state_dict(), second.generator().state_dict())


def test_a_state_before_the_release_can_be_loaded_too() -> None:
    learner = _learner(_context())
    learner.load_state_dict(_learner(_context()).state_dict())
    learner.step(0)
    assert "embedding" in learner.state_dict()


def test_a_state_is_a_copy() -> None:
    learner = _learner(_context(), 1)
    state = learner.state_dict()
    kept = {name: value.clone() for name, value in state.items()}
    learner.step(1)
    assert _same(state, kept) and not _same(state, learner.state_dict())


def test_a_release_that_does_not_fit_leaves_nothing() -> None:
    noise = SpyNoise()
    learner = _learner(_context(noise=noise, budget=Budget(Ledger.in_memory(), Authorisation(0.1, DELTA))))
    with pytest.raises(BudgetError):
        learner.step(0)
    assert noise.calls == [] and "embedding" not in learner.state_dict()


@pytest.mark.parametrize("change", [{"num_features": 32}, {"hidden_units": 17}])
def test_a_state_of_other_settings_is_refused(change: dict[str, int]) -> None:
    state = _learner(_context(), 1).state_dict()
    with pytest.raises(CheckpointError, match="use the settings it was made with"):
        _method(**change).begin(_context()).load_state_dict(state)


def test_the_same_streams_and_noise_give_the_same_generator() -> None:
    one, other = (_learner(_context(noise=SpyNoise(2)), 3) for _ in range(2))
    assert _same(one.generator().state_dict(), other.generator().state_dict())
    different = _learner(_context(noise=SpyNoise(90)), 3)
    assert not torch.equal(one.state_dict()["embedding"], different.state_dict()["embedding"])


# Loss


def _unit_rows(*shape: int) -> torch.Tensor:
    rows = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    return rows / rows.norm(dim=-1, keepdim=True) * 0.6 + 0.8 / math.sqrt(shape[-1])


def _features_and_embedding() -> tuple[torch.Tensor, torch.Tensor]:
    features_YKF = _unit_rows(3, 5, 8)
    features_YKF = features_YKF / features_YKF.norm(dim=-1, keepdim=True)
    return features_YKF, features_YKF.mean(1) * torch.tensor([[0.2], [0.1], [0.4]]).double() + 0.01


def test_the_loss_is_the_least_distance_of_its_slow_twin() -> None:
    features_YKF, embedding_YF = _features_and_embedding()
    weights = np.linspace(0, 3, 3001)
    least = 0.0
    for features, row in zip(features_YKF.tolist(), (3 * embedding_YF).tolist(), strict=True):
        one, two = (merf_distance_loop(features, row, weight) for weight in (1.0, 2.0))
        square, slope = (two - 2 * one) / 2, (4 * one - two) / 2  # a parabola through 0, fixed by two points
        least += float((weights**2 * square + weights * slope).min())
    assert float(merf_loss(features_YKF, embedding_YF)) == pytest.approx(least, abs=1e-5)


def test_uneven_classes_do_not_bend_the_images() -> None:
    """Class mass scales a class's gradient and leaves its direction: a rare class is drawn as a common one."""
    features_YKF, embedding_YF = _features_and_embedding()
    gradients = []
    for mass in (1.0, 0.25):
        leaf = features_YKF.clone().requires_grad_(True)
        merf_loss(leaf, mass * embedding_YF).backward()
        assert leaf.grad is not None
        gradients.append(leaf.grad)
    assert torch.allclose(gradients[1], 0.25**2 * gradients[0], rtol=1e-9)


def test_a_class_that_points_away_pulls_nothing() -> None:
    features_YKF, embedding_YF = _features_and_embedding()
    leaf = features_YKF.clone().requires_grad_(True)
    merf_loss(leaf, -embedding_YF).backward()
    assert leaf.grad is not None and float(leaf.grad.abs().max()) == 0


# Learning


@pytest.fixture(scope="module")
def learned() -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    changes = {
        "num_features": 512,
        "num_steps": 120,
        "images_per_class": 16,
        "hidden_units": 64,
        "channels": 8,
    }
    size = PublicSize(1000, SHAPE, CLASSES)
    method = SMALL.model_copy(update=changes).plan(Privacy(noise=NoiseKind.NONE), size)
    budget = Budget(Ledger.in_memory(), Authorisation.not_private(DELTA))
    context = _context(draw_shapes(1000, image_size=8), make_noise(NoiseKind.NONE), budget, size)
    learner = method.begin(context)
    for step in range(method.num_steps):
        learner.step(step)
    return lambda count: sample_images(
        learner.generator(), method.settings.latent(method.size), count, seed=1
    )


def test_it_learns_drawn_shapes_without_noise(
    learned: Callable[[int], tuple[np.ndarray, np.ndarray]],
) -> None:
    images, labels = learned(600)
    test = draw_shapes(400, image_size=8, seed=9)
    result = evaluate_utility(
        images, labels, test.images, test.labels, num_classes=CLASSES, classifier="mlp", batch_size=32
    )
    assert result.last_accuracy > 0.6  # a quarter by chance
