"""The stacked discriminator against one plain module a teacher, and its patches against PyTorch's."""

from __future__ import annotations

import pytest
import reference
import torch

from datalens.errors import ConfigError
from datalens.models.patches import fold_patches, map_sizes, take_patches
from datalens.models.stacked import PaperDiscriminator

SHAPES = [(1, 8, 8), (3, 12, 12), (2, 32, 32)]


def make(image_shape: tuple[int, int, int]) -> tuple[PaperDiscriminator, dict[str, torch.Tensor]]:
    net = PaperDiscriminator(image_shape, num_classes=3, channels=4, hidden_units=6, init_stddev=0.2)
    params = net.init(4, torch.Generator().manual_seed(1))
    rng = torch.Generator().manual_seed(2)
    for value in params.values():  # biases and scales away from 0 and 1, so that they are tested
        value += 0.1 * torch.randn(value.shape, generator=rng)
    return net, {name: value.double() for name, value in params.items()}


def batch_of(image_shape: tuple[int, int, int], size: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(size)
    images = torch.rand(4, size, *image_shape, generator=rng, dtype=torch.float64)
    return images, torch.randint(3, (4, size), generator=rng)


def test_the_published_network_has_as_many_parameters_as_published() -> None:
    net = PaperDiscriminator((1, 28, 28), 10)
    assert net.num_parameters == 555_655
    assert sum(v[0].numel() for v in net.init(1, torch.Generator().manual_seed(0)).values()) == 555_655
    twin = reference.PaperTeacherTwin((1, 28, 28), 10, 32, 256)
    assert sum(p.numel() for p in twin.parameters()) == 555_655


@pytest.mark.parametrize("image_shape", SHAPES)
def test_logits_and_gradients_equal_the_plain_module(image_shape: tuple[int, int, int]) -> None:
    net, params = make(image_shape)
    parts = [batch_of(image_shape, 5), batch_of(image_shape, 3)]
    present = torch.ones(4, 5, dtype=torch.bool)
    present[1, 2:] = False
    labels = torch.where(present, parts[0][1], -1)  # what stands in an empty slot may even be no label
    batch = net.batch([(parts[0][0], labels, present), (*parts[1], None)])
    logits, tape = net.forward(params, batch)
    upstream = torch.randn(4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    upstream[:, :5] *= present
    grads = net.backward(params, batch, tape, upstream)
    by_image = net.image_gradient(params, batch, tape, upstream)
    for t in range(4):
        twin = reference.PaperTeacherTwin(image_shape, 3, 4, 6).double()
        twin.copy_teacher({name: value[t] for name, value in params.items()})
        real = parts[0][0][t, present[t]].clone().requires_grad_()
        fake = parts[1][0][t].clone().requires_grad_()
        expected = torch.cat([twin(real, parts[0][1][t, present[t]]), twin(fake, parts[1][1][t])])
        here = torch.cat([present[t], torch.ones(3, dtype=torch.bool)])
        torch.testing.assert_close(logits[t, here], expected, rtol=1e-9, atol=1e-11)
        (expected * upstream[t, here]).sum().backward()
        assert real.grad is not None
        assert fake.grad is not None
        torch.testing.assert_close(
            by_image[t, here], torch.cat([real.grad, fake.grad]), rtol=1e-8, atol=1e-11
        )
        assert not by_image[t, ~here].any()
        wanted = reference.PaperTeacherTwin(image_shape, 3, 4, 6).double()
        for parameter in wanted.parameters():
            torch.nn.init.zeros_(parameter)
        wanted.copy_teacher({name: grads.get(name, torch.zeros_like(params[name]))[t] for name in params})
        for (name, parameter), got in zip(twin.named_parameters(), wanted.parameters(), strict=True):
            assert parameter.grad is not None
            torch.testing.assert_close(got.data, parameter.grad, rtol=1e-8, atol=1e-10, msg=name)


def test_shared_images_give_the_logits_of_copies() -> None:
    net, params = make((1, 8, 8))
    images, labels = batch_of((1, 8, 8), 5)
    shared = net.logits(params, images[0], labels[0])
    copied = net.logits(params, images[:1].expand(4, -1, -1, -1, -1), labels[:1].expand(4, -1))
    assert shared.shape == (4, 5)
    torch.testing.assert_close(shared, copied)


@pytest.mark.parametrize(("size", "channels"), [(8, 1), (14, 3), (28, 2)])
def test_patches_are_those_of_unfold_and_fold_is_their_transpose(size: int, channels: int) -> None:
    rng = torch.Generator().manual_seed(3)
    x = torch.randn(2, channels, size, size, 3, generator=rng, dtype=torch.float64)
    patches = take_patches(x)
    planes = x.movedim(-1, 1).flatten(0, 1)
    expected = torch.nn.functional.unfold(planes, 5, padding=2, stride=2)
    expected = expected.view(2, 3, channels * 25, -1).permute(0, 2, 3, 1)
    assert torch.equal(patches, expected)
    other = torch.randn(patches.shape, generator=rng, dtype=torch.float64)
    folded = fold_patches(other, 3, size, channels)
    torch.testing.assert_close((patches * other).sum(), (x * folded).sum())


def test_init_follows_its_generator_alone() -> None:
    net = PaperDiscriminator((1, 8, 8), 3, channels=4, hidden_units=6)
    before = torch.random.get_rng_state()
    first, again = (net.init(2, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["conv0.image"][0], first["conv0.image"][1])


@pytest.mark.parametrize("shape", [(1, 28, 32), (1, 30, 30), (0, 28, 28)])
def test_shapes_it_cannot_have_are_refused(shape: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigError, match="divisible by 4"):
        PaperDiscriminator(shape, 10)


@pytest.mark.parametrize(
    ("side", "sizes"), [(8, (8, 4, 2)), (28, (28, 14, 7)), (32, (32, 16, 8)), (64, (64, 32, 16, 8))]
)
def test_map_sizes(side: int, sizes: tuple[int, ...]) -> None:
    assert map_sizes((1, side, side)) == sizes
