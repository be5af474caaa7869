"""What every kind of teacher must hold: axis T is independent programs, and an empty slot is nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from datalens.teachers.family import Fakes, Shards, TeacherFamily, TeacherState
from datalens.teachers.kernel import KernelTeachers
from datalens.teachers.matching import MatchingTeachers
from datalens.teachers.paper import PaperTeachers, VoteStatistics

IMAGE_SHAPE, NUM_CLASSES = (1, 8, 8), 3
TEACHERS, SLOTS, IMAGES, CHANGED = 5, 4, 6, 2


def small_paper(statistics: VoteStatistics) -> Callable[[tuple[int, int, int], int], TeacherFamily]:
    return lambda shape, classes: PaperTeachers(
        shape, classes, channels=4, hidden_units=8, init_stddev=0.2, vote_statistics=statistics
    )


FAMILIES: dict[str, Callable[[tuple[int, int, int], int], TeacherFamily]] = {
    "paper": small_paper(VoteStatistics.FAKES),
    "paper-judged-by-records": small_paper(VoteStatistics.RECORDS),
    "kernel": lambda image_shape, num_classes: KernelTeachers(num_classes, bandwidth=2.0),
    "matching": lambda image_shape, num_classes: MatchingTeachers(SLOTS, IMAGES, 5, 10.0, 1.0),
}

pytestmark = pytest.mark.parametrize("kind", FAMILIES)


def draw_shards(seed: int = 1) -> Shards:
    rng = torch.Generator().manual_seed(seed)
    present = torch.ones(TEACHERS, SLOTS, dtype=torch.bool)
    present[0, 3] = present[1, 1] = False
    images = torch.rand(TEACHERS, SLOTS, *IMAGE_SHAPE, generator=rng) * present[:, :, None, None, None]
    return Shards(images, torch.randint(NUM_CLASSES, (TEACHERS, SLOTS), generator=rng) * present, present)


def draw_fakes() -> Fakes:
    rng = torch.Generator().manual_seed(2)
    return Fakes(torch.rand(IMAGES, *IMAGE_SHAPE, generator=rng), torch.arange(IMAGES) % NUM_CLASSES)


def one_step(kind: str, shards: Shards, num_steps: int = 2) -> tuple[TeacherState, torch.Tensor]:
    """State and gradient after training from one fixed start."""
    family = FAMILIES[kind](IMAGE_SHAPE, NUM_CLASSES)
    state = family.init(TEACHERS, torch.Generator().manual_seed(3), torch.device("cpu"))
    state = family.train(state, shards, draw_fakes(), num_steps)
    return state, family.input_gradient(state, shards, draw_fakes())


def assert_same_but(
    changed: list[int], one: tuple[TeacherState, torch.Tensor], two: tuple[TeacherState, torch.Tensor]
) -> None:
    """Bit for bit the same, state and gradient, for every teacher not listed."""
    kept = [t for t in range(TEACHERS) if t not in changed]
    assert one[0].keys() == two[0].keys()
    for name in one[0]:
        assert torch.equal(one[0][name][kept], two[0][name][kept]), name
    assert torch.equal(one[1][kept], two[1][kept])


def test_one_shard_changes_one_teacher(kind: str) -> None:
    shards, other = draw_shards(), draw_shards()
    other.images_TRCHW[CHANGED] = 1 - other.images_TRCHW[CHANGED]
    other.labels_TR[CHANGED] = (other.labels_TR[CHANGED] + 1) % NUM_CLASSES
    before, after = one_step(kind, shards), one_step(kind, other)
    assert_same_but([CHANGED], before, after)
    assert not torch.equal(before[1][CHANGED], after[1][CHANGED])


def test_one_record_removed_changes_one_teacher(kind: str) -> None:
    shards, other = draw_shards(), draw_shards()
    other.present_TR[CHANGED, 0] = False
    before, after = one_step(kind, shards), one_step(kind, other)
    assert_same_but([CHANGED], before, after)
    assert not torch.equal(before[1][CHANGED], after[1][CHANGED])


@pytest.mark.parametrize("junk", [0.7, float("nan"), float("inf")])
def test_what_stands_in_an_empty_slot_is_nothing(kind: str, junk: float) -> None:
    shards, other = draw_shards(), draw_shards()
    other.images_TRCHW[~other.present_TR] = junk
    other.labels_TR[~other.present_TR] = NUM_CLASSES - 1
    assert_same_but([], one_step(kind, shards), one_step(kind, other))


def test_an_empty_slot_is_as_if_it_were_not_there(kind: str) -> None:
    """A shard of 3 records in 4 slots trains as a shard of 3 records in 3 slots does."""
    shards = draw_shards()
    shards.present_TR[:, 3] = False
    shards.present_TR[1, 1] = True
    short = Shards(shards.images_TRCHW[:, :3], shards.labels_TR[:, :3], shards.present_TR[:, :3])
    torch.testing.assert_close(
        one_step(kind, shards, 1)[1], one_step(kind, short, 1)[1], rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_broken_teacher_disturbs_no_other(kind: str, bad: float) -> None:
    shards, other = draw_shards(), draw_shards()
    other.images_TRCHW[CHANGED, 0] = bad
    before, after = one_step(kind, shards), one_step(kind, other)
    assert_same_but([CHANGED], before, after)
    assert not torch.isfinite(after[1][CHANGED]).all()


def test_a_teacher_without_records_gives_finite_gradients(kind: str) -> None:
    shards, other = draw_shards(), draw_shards()
    other.present_TR[CHANGED] = False
    before, after = one_step(kind, shards), one_step(kind, other)
    assert_same_but([CHANGED], before, after)
    assert torch.isfinite(after[1]).all()
    assert all(torch.isfinite(value).all() for value in after[0].values())


def test_a_teacher_with_one_record_gives_finite_gradients(kind: str) -> None:
    shards = draw_shards()
    shards.present_TR[:, 1:] = False
    assert torch.isfinite(one_step(kind, shards)[1]).all()


def test_shapes_and_types(kind: str) -> None:
    state, grad = one_step(kind, draw_shards())
    assert grad.shape == (TEACHERS, IMAGES, IMAGE_SHAPE[0] * IMAGE_SHAPE[1] * IMAGE_SHAPE[2])
    assert grad.dtype == torch.float32
    assert not grad.requires_grad
    assert all(len(value) == TEACHERS for value in state.values())
    assert grad.abs().amax((1, 2)).min() > 0


def test_training_raises_the_belief_along_the_gradient(kind: str) -> None:
    """On blank fakes against bright records, a trained teacher wants the fakes brighter."""
    family = FAMILIES[kind](IMAGE_SHAPE, NUM_CLASSES)
    rng = torch.Generator().manual_seed(4)
    images = 0.8 + 0.2 * torch.rand(TEACHERS, SLOTS, *IMAGE_SHAPE, generator=rng)
    labels = torch.arange(SLOTS).expand(TEACHERS, -1) % NUM_CLASSES
    shards = Shards(images, labels, torch.ones(TEACHERS, SLOTS, dtype=torch.bool))
    fakes = Fakes(0.2 * torch.rand(IMAGES, *IMAGE_SHAPE, generator=rng), torch.arange(IMAGES) % NUM_CLASSES)
    state = family.init(TEACHERS, torch.Generator().manual_seed(5), torch.device("cpu"))
    state = family.train(state, shards, fakes, 20)
    step = family.input_gradient(state, shards, fakes)
    assert float((step.mean((1, 2)) > 0).float().mean()) > 0.5


def test_init_follows_its_generator_alone(kind: str) -> None:
    family = FAMILIES[kind](IMAGE_SHAPE, NUM_CLASSES)
    before = torch.random.get_rng_state()
    first, again = (
        family.init(TEACHERS, torch.Generator().manual_seed(7), torch.device("cpu")) for _ in range(2)
    )
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(first[name], again[name]) for name in first)
