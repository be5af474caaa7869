"""The compact teachers against slow, obvious twins; what they are meant to say."""

from __future__ import annotations

import math

import pytest
import torch
from reference import kernel_gradient, matching_gradient

from datalens.teachers.family import Fakes, Shards
from datalens.teachers.kernel import KernelTeachers
from datalens.teachers.matching import GUMBEL, STEP, MatchingTeachers

SHAPE, CLASSES = (1, 3, 3), 3


def draw(seed: int = 0, teachers: int = 3, slots: int = 5, images: int = 6) -> tuple[Shards, Fakes]:
    rng = torch.Generator().manual_seed(seed)
    present = torch.rand(teachers, slots, generator=rng) < 0.8
    shards = Shards(
        torch.rand(teachers, slots, *SHAPE, generator=rng) * present[:, :, None, None, None],
        torch.randint(CLASSES, (teachers, slots), generator=rng) * present,
        present,
    )
    fakes = Fakes(torch.rand(images, *SHAPE, generator=rng), torch.randint(CLASSES, (images,), generator=rng))
    return shards, fakes


@pytest.mark.parametrize("bandwidth", [0.05, 0.5, 1e4])
def test_kernel_teachers_equal_their_slow_twin(bandwidth: float) -> None:
    for seed in range(4):
        shards, fakes = draw(seed)
        family = KernelTeachers(CLASSES, bandwidth)
        state = family.init(3, torch.Generator(), torch.device("cpu"))
        fast = family.input_gradient(state, shards, fakes)
        torch.testing.assert_close(fast, kernel_gradient(shards, fakes, bandwidth), rtol=1e-4, atol=1e-5)


def test_a_wide_kernel_says_class_mean_and_a_narrow_one_nearest_record() -> None:
    shards, fakes = draw(2, slots=12)
    own = shards.images_TRCHW[0][shards.present_TR[0] & (shards.labels_TR[0] == fakes.labels_B[0])].flatten(1)
    assert len(own) > 1
    fake = fakes.images_BCHW[0].flatten()
    wide, narrow = (
        KernelTeachers(CLASSES, h).input_gradient({}, shards, fakes)[0, 0] + fake for h in (1e8, 1e-6)
    )
    torch.testing.assert_close(wide, own.mean(0), rtol=1e-4, atol=1e-5)
    nearest = own[(own - fake).square().sum(1).argmin()]
    torch.testing.assert_close(narrow, nearest, rtol=1e-4, atol=1e-5)


def test_matching_teachers_equal_their_slow_twin() -> None:
    for seed in range(6):
        shards, fakes = draw(seed)
        family = MatchingTeachers(5, 6, 4, 10.0, 0.1)
        state = family.init(3, torch.Generator().manual_seed(seed), torch.device("cpu"))
        for _ in range(seed + 1):
            state = family.train(state, shards, fakes, 2)
        fast = family.input_gradient(state, shards, fakes)
        h = float(family.bandwidth(state[STEP])[0])
        torch.testing.assert_close(fast, matching_gradient(shards, fakes, h, state[GUMBEL]))


def test_a_matching_teacher_speaks_of_no_more_fakes_than_it_has_records() -> None:
    shards, fakes = draw(1, slots=2, images=6)
    family = MatchingTeachers(2, 6, 4, 1e6, 1e6)
    state = family.init(3, torch.Generator().manual_seed(1), torch.device("cpu"))
    grad = family.input_gradient(family.train(state, shards, fakes, 1), shards, fakes)
    assert ((grad != 0).any(2).sum(1) <= shards.present_TR.sum(1)).all()


def test_the_bandwidth_falls_geometrically_then_stays() -> None:
    family = MatchingTeachers(1, 1, 4, 100.0, 1.0)
    steps = torch.tensor([1, 3, 5, 50])
    assert family.bandwidth(steps).tolist() == pytest.approx([100.0, 10.0, 1.0, 1.0], rel=1e-5)


def test_matches_follow_the_softmax_of_the_cost() -> None:
    """At bandwidth h a record picks the nearer of two fakes with the logistic probability of the gap."""
    teachers, h = 20000, 1.0
    image = torch.zeros(teachers, 1, 1, 1, 1)
    shards = Shards(
        image, torch.zeros(teachers, 1, dtype=torch.int64), torch.ones(teachers, 1, dtype=torch.bool)
    )
    fakes = Fakes(torch.tensor([0.5, 1.0]).view(2, 1, 1, 1), torch.zeros(2, dtype=torch.int64))
    family = MatchingTeachers(1, 2, 1, h, h)
    state = family.train(
        family.init(teachers, torch.Generator().manual_seed(0), torch.device("cpu")), shards, fakes, 1
    )
    share = float((family.input_gradient(state, shards, fakes)[:, 0] != 0).float().mean())
    expected = 1 / (1 + math.exp(-(1.0 - 0.25) / (2 * h)))
    assert abs(share - expected) < 5 * math.sqrt(expected * (1 - expected) / teachers)
