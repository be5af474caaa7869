"""The student is a function of the public root and of released directions, and of nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datalens.errors import CheckpointError, ConfigError
from datalens.models.finish import Finish, Outside, affine_warp, change_tone
from datalens.randomness import Streams
from datalens.student.latent import LatentLaw, LatentSpace
from datalens.student.sampling import iter_images, sample_images
from datalens.student.update import Student, StudentPlan, replay

STREAMS = Streams.from_insecure_seed(3, "public")


def make_plan(**changes) -> StudentPlan:
    settings = {
        "image_shape": (1, 8, 8),
        "latent": LatentSpace(3, 4, LatentLaw.CODES),
        "hidden_units": 16,
        "channels": 8,
        "training_finish": Finish(jitter=0.5),
        "finish": Finish(1.0, 2.0, 0.5, 0.5),
        "smoothing": 1,
        "batch_size": 12,
        "num_steps": 6,
        "step_size": 1e-3,
        "learning_rate": 1e-2,
        "final_learning_rate": 0.1,
        "beta1": 0.5,
        "weight_average": 0.8,
    }
    return StudentPlan(**(settings | changes))


def directions(steps: int = 6) -> list[tuple[int, torch.Tensor]]:
    rng = torch.Generator().manual_seed(0)
    return [(step, torch.randint(-1, 2, (12, 64), generator=rng, dtype=torch.int8)) for step in range(steps)]


def state_of(student: Student) -> dict[str, torch.Tensor]:
    return student.state_dict() | dict(student.finished_generator().state_dict())


def assert_equal_states(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> None:
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_replay_gives_the_same_generator_bit_for_bit() -> None:
    global_state = torch.random.get_rng_state()
    first = state_of(replay(make_plan(), STREAMS, directions()))
    torch.manual_seed(99)  # the global generator has no say
    assert_equal_states(first, state_of(replay(make_plan(), STREAMS, directions())))
    torch.random.set_rng_state(global_state)


def test_other_directions_give_another_generator() -> None:
    changed = directions()
    changed[2] = (2, -changed[2][1])
    first, second = (state_of(replay(make_plan(), STREAMS, d)) for d in (directions(), changed))
    assert any(not torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_a_restored_student_goes_on_as_if_nothing_had_happened(stop: int) -> None:
    straight = replay(make_plan(), STREAMS, directions())
    restored = Student(make_plan(), STREAMS)
    restored.load_state_dict(replay(make_plan(), STREAMS, directions(stop)).state_dict())
    for step, direction in directions()[stop:]:
        restored.propose(step)
        restored.learn(direction)
    assert_equal_states(state_of(straight), state_of(restored))


def test_images_move_along_the_direction() -> None:
    student = Student(make_plan(training_finish=Finish(), smoothing=0, learning_rate=1e-3), STREAMS)
    before = student.propose(0).images_BCHW
    direction = torch.ones(12, 64, dtype=torch.int8)
    direction[:, ::2] = -1
    student.learn(direction)
    after = student.propose(0).images_BCHW
    moved = (after - before).flatten(1) * direction
    assert moved.mean() > 0
    assert (moved > 0).float().mean() > 0.6


def test_a_state_of_another_network_is_refused() -> None:
    state = Student(make_plan(hidden_units=8), STREAMS).state_dict()
    with pytest.raises(CheckpointError, match="does not fit"):
        Student(make_plan(), STREAMS).load_state_dict(state)


def test_learning_without_a_proposal_is_a_defect() -> None:
    with pytest.raises(RuntimeError, match="propose"):
        Student(make_plan(), STREAMS).learn(torch.zeros(12, 64, dtype=torch.int8))


def test_the_average_of_weights_is_what_is_released() -> None:
    student = replay(make_plan(), STREAMS, directions())
    last = dict(student.generator.named_parameters())
    finished = dict(student.finished_generator().named_parameters())
    assert any(not torch.equal(last[name], finished[name]) for name in last)
    plain = replay(make_plan(weight_average=0.0), STREAMS, directions())
    last, finished = (dict(g.named_parameters()) for g in (plain.generator, plain.finished_generator()))
    assert all(torch.equal(last[name], finished[name]) for name in last)


@pytest.mark.parametrize("law", list(LatentLaw))
def test_labels_are_uniform_and_latents_follow_their_law(law: LatentLaw) -> None:
    space = LatentSpace(3, 5, law)
    latents, labels = space.batch(6000, torch.Generator().manual_seed(1))
    counts = torch.bincount(labels, minlength=5)
    assert (counts - 1200).abs().max() < 5 * (6000 * 0.2 * 0.8) ** 0.5
    code, finish = latents[:, :3], latents[:, 3:]
    assert finish.shape[1] == 7
    assert finish.abs().max() <= 1
    if law is LatentLaw.CODES:
        assert (counts == 1200).all()
        cells = labels * 3 + code.argmax(1)
        assert (torch.bincount(cells, minlength=15) == 400).all()
        assert sorted(code.unique().tolist()) == [0.0, 4.0]
    else:
        assert abs(float(code.mean())) < 0.05
        assert float(code.std()) == pytest.approx(1.0 if law is LatentLaw.NORMAL else 3**-0.5, abs=0.02)


def test_a_small_batch_of_codes_leaves_no_class_out_over_time() -> None:
    space = LatentSpace(3, 4, LatentLaw.CODES)
    seen = torch.cat([space.batch(5, torch.Generator().manual_seed(seed))[1] for seed in range(400)])
    counts = torch.bincount(seen, minlength=4)
    assert (counts - 500).abs().max() < 100


def test_no_warp_and_no_tone_leave_images_alone() -> None:
    images = torch.rand(4, 1, 8, 8)
    latents = torch.rand(4, 6) * 2 - 1
    torch.testing.assert_close(affine_warp(images, latents, 0.0, Outside.BLACK), images, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        change_tone(images.clamp(0.01, 0.99), latents[:, 0], Finish()), images.clamp(0.01, 0.99)
    )


def test_contrast_moves_pixels_apart_and_lightness_moves_them_up() -> None:
    images = torch.tensor([0.3, 0.7]).view(1, 1, 1, 2)
    zero = torch.zeros(1)
    dark, bright = change_tone(images, zero, Finish(contrast=3.0)).flatten().tolist()
    assert dark < 0.3 < 0.7 < bright
    assert (change_tone(images, zero, Finish(lightness=1.0)) > images).all()


def test_a_warp_to_the_right_samples_from_the_left() -> None:
    images = torch.zeros(1, 1, 9, 9)
    images[0, 0, 4, 4] = 1.0
    latents = torch.zeros(1, 6)
    latents[0, 4] = 1.0
    moved = affine_warp(images, latents, 4.0)[0, 0]
    column = (moved.sum(0) * torch.arange(9)).sum() / moved.sum()
    assert abs(float(column) - 4) > 1


def test_samples_are_repeatable_whatever_their_number() -> None:
    plan = make_plan()
    generator = replay(plan, STREAMS, directions()).finished_generator()
    many, many_labels = sample_images(generator, plan.latent, 700, seed=5)
    few, few_labels = sample_images(generator, plan.latent, 30, seed=5)
    assert (many[:30] == few).all()
    assert (many_labels[:30] == few_labels).all()
    assert many.shape == (700, 1, 8, 8)
    assert many.dtype.name == "uint8"
    fresh = [sample_images(generator, plan.latent, 30)[0] for _ in range(2)]
    assert (fresh[0] != fresh[1]).any()


def test_asked_labels_are_drawn_and_wrong_ones_refused() -> None:
    plan = make_plan()
    generator = replay(plan, STREAMS, directions(1)).finished_generator()
    assert sample_images(generator, plan.latent, 3, labels=[2, 2, 0])[1].tolist() == [2, 2, 0]
    for labels in ([4, 0, 0], [-1, 0, 0], [0, 0], [0.5, 1, 1]):
        with pytest.raises(ConfigError, match="label"):
            sample_images(generator, plan.latent, 3, labels=labels)
    for count in (0, -1, True, 2.5):
        with pytest.raises(ConfigError, match="num_samples"):
            sample_images(generator, plan.latent, count)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="chunk"):
        iter_images(generator, plan.latent, 3, chunk=0)
    with pytest.raises(ConfigError, match="num_samples"):  # at the call, not at the first image
        iter_images(generator, plan.latent, 0)


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("chunk", [1, 7, 100, 130, 500, 501, 2000])
def test_chunks_change_no_byte(chunk: int, asked: bool) -> None:
    plan = make_plan()
    generator = replay(plan, STREAMS, directions()).finished_generator()
    count = 30 if chunk == 1 else 1103
    labels = np.arange(count) % 3 if asked else None
    whole = sample_images(generator, plan.latent, count, labels=labels, seed=5)
    chunks = list(iter_images(generator, plan.latent, count, labels=labels, seed=5, chunk=chunk))
    sizes = [len(images) for images, _ in chunks]
    assert sizes == [chunk] * (count // chunk) + [count % chunk] * (count % chunk > 0)
    for joined, expected in zip(map(np.concatenate, zip(*chunks, strict=True)), whole, strict=True):
        assert joined.dtype == expected.dtype
        assert (joined == expected).all()
    if asked:
        assert (whole[1] == labels).all()


def test_images_are_those_of_one_pass_a_batch_through_the_generator() -> None:
    """The obvious loop: whole batches of latents and labels by number, a hundred images at once."""
    plan = make_plan()
    generator = replay(plan, STREAMS, directions()).finished_generator()
    streams, images = Streams.from_insecure_seed(5, "samples"), []
    for batch, size in enumerate((500, 230)):
        latents = plan.latent.latents(500, streams.torch("latents", batch))[:size]
        labels = plan.latent.labels(500, streams.torch("labels", batch))[:size]
        for start in range(0, size, 100):
            with torch.no_grad():
                unit = generator(latents[start : start + 100], labels[start : start + 100])
            images.append((unit * 255).round().to(torch.uint8).numpy())
    assert (sample_images(generator, plan.latent, 730, seed=5)[0] == np.concatenate(images)).all()
