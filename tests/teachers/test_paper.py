"""The paper's teachers, stacked, against one plain module and one Adam a teacher."""

from __future__ import annotations

import pytest
import reference
import torch

from datalens.errors import CheckpointError
from datalens.teachers.family import Fakes, Shards, TeacherState
from datalens.teachers.paper import PaperTeachers, VoteStatistics

CPU = torch.device("cpu")


def problem(
    family: PaperTeachers, teachers: int, slots: int, images: int
) -> tuple[TeacherState, Shards, Fakes]:
    rng = torch.Generator().manual_seed(1)
    present = torch.rand(teachers, slots, generator=rng) < 0.8
    present[:, 0] = True
    shape, classes = family.image_shape, family.num_classes
    shards = Shards(
        torch.rand(teachers, slots, *shape, generator=rng),
        torch.randint(classes, (teachers, slots), generator=rng),
        present,
    )
    fakes = Fakes(torch.rand(images, *shape, generator=rng), torch.randint(classes, (images,), generator=rng))
    return family.init(teachers, rng, CPU), shards, fakes


def twin_gradients(
    family: PaperTeachers, state: TeacherState, shards: Shards, fakes: Fakes, num_steps: int
) -> torch.Tensor:
    """``grad_TBD`` of one module a teacher, trained with torch.optim.Adam on its present records."""
    dtype, grads = state["out.bias"].dtype, []
    for t in range(shards.num_teachers):
        net = reference.PaperTeacherTwin(
            family.image_shape, family.num_classes, family.channels, family.hidden_units
        ).to(dtype)
        net.copy_teacher({name: state[name][t] for name in family.network.shapes()})
        optimiser = torch.optim.Adam(net.parameters(), family.learning_rate, (family.beta1, 0.999))
        here = shards.present_TR[t]
        real = (shards.images_TRCHW[t, here].to(dtype), shards.labels_TR[t, here])
        fake = (fakes.images_BCHW.to(dtype), fakes.labels_B)
        for _ in range(num_steps):
            reference.paper_teacher_step(net, optimiser, real, fake)
        grads.append(reference.paper_teacher_input_gradient(net, fake))
    return torch.stack(grads)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 12, 12)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_two_steps_equal_plain_modules_with_adam(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    family = PaperTeachers(shape, 3, channels=4, hidden_units=8, init_stddev=0.2)
    state, shards, fakes = problem(family, teachers=3, slots=5, images=6)
    state = {name: value.to(dtype) for name, value in state.items()}
    expected = twin_gradients(family, state, shards, fakes, 2)
    start = {name: value.clone() for name, value in state.items()}
    untrained = family.input_gradient(state, shards, fakes)
    grad = family.input_gradient(family.train(state, shards, fakes, 2), shards, fakes)
    atol = 1e-6 if dtype == torch.float64 else 1e-5  # gradients are handed on in float32
    torch.testing.assert_close(grad, expected.float(), rtol=1e-4, atol=atol)
    assert float((grad - untrained).abs().max()) > 1e-3
    assert state["adam.step"].tolist() == [2.0, 2.0, 2.0]
    moved = [name for name in family.network.shapes() if not torch.equal(state[name], start[name])]
    unmoved = {"conv1.bias", "hidden.bias"}  # before a batch norm: no gradient
    assert set(moved) == set(family.network.shapes()) - unmoved


def test_the_published_size_equals_its_plain_module() -> None:
    family = PaperTeachers((1, 28, 28), 10)
    state, shards, fakes = problem(family, teachers=2, slots=15, images=15)
    state = {name: value.double() for name, value in state.items()}
    expected = twin_gradients(family, state, shards, fakes, 2)
    grad = family.input_gradient(family.train(state, shards, fakes, 2), shards, fakes)
    scale = float(expected.abs().max())
    torch.testing.assert_close(grad / scale, (expected / scale).float(), rtol=0, atol=1e-5)


def test_training_goes_on_where_it_stopped() -> None:
    family = PaperTeachers((1, 8, 8), 3, channels=4, hidden_units=8)
    state, shards, fakes = problem(family, teachers=3, slots=5, images=6)
    other = {name: value.clone() for name, value in state.items()}
    state = family.train(state, shards, fakes, 3)
    other = family.train(family.train(other, shards, fakes, 1), shards, fakes, 2)
    assert all(torch.equal(state[name], other[name]) for name in state)


def test_teachers_of_different_ages_are_refused() -> None:
    family = PaperTeachers((1, 8, 8), 3, channels=4, hidden_units=8)
    state, shards, fakes = problem(family, teachers=3, slots=5, images=6)
    state["adam.step"][1] = 4
    with pytest.raises(CheckpointError, match="0 to 4 steps"):
        family.train(state, shards, fakes, 1)


def test_teachers_start_from_different_weights() -> None:
    family = PaperTeachers((1, 8, 8), 3, channels=4, hidden_units=8)
    state, _, _ = problem(family, teachers=3, slots=5, images=6)
    assert not torch.equal(state["conv0.image"][0], state["conv0.image"][1])


def test_judged_by_records_a_fake_stands_alone_and_its_gradient_is_the_slope_of_log_belief() -> None:
    family = PaperTeachers(
        (1, 8, 8), 3, channels=4, hidden_units=8, init_stddev=0.2, vote_statistics=VoteStatistics.RECORDS
    )
    state, shards, fakes = problem(family, teachers=2, slots=5, images=6)
    state = {name: value.double() for name, value in state.items()}
    grad = family.input_gradient(state, shards, fakes)
    alone = Fakes(fakes.images_BCHW[:1], fakes.labels_B[:1])
    torch.testing.assert_close(family.input_gradient(state, shards, alone)[:, 0], grad[:, 0])
    usual = PaperTeachers((1, 8, 8), 3, channels=4, hidden_units=8).input_gradient(state, shards, fakes)
    assert float((usual - grad).abs().max()) > 1e-3

    def log_belief(pixel: int, move: float) -> torch.Tensor:
        image = fakes.images_BCHW[:1].double().flatten().clone()
        image[pixel] += move
        images = image.view(1, 1, 1, 8, 8).expand(2, -1, -1, -1, -1)
        records = (shards.images_TRCHW.double(), shards.labels_TR, shards.present_TR)
        batch = family.network.batch([records, (images, fakes.labels_B[:1].expand(2, -1), None)])
        params = {name: state[name] for name in family.network.shapes()}
        return torch.nn.functional.logsigmoid(
            family.network.forward(params, batch.judged_by_first())[0][:, -1]
        )

    for pixel in (0, 27, 63):
        slope = (log_belief(pixel, 1e-6) - log_belief(pixel, -1e-6)) / 2e-6
        torch.testing.assert_close(grad[:, 0, pixel].double(), slope, rtol=1e-4, atol=1e-6)
