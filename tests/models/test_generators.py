"""The conditional generator: size, range, determinism, initialisation, running statistics."""

from __future__ import annotations

import pytest
import torch

from datalens.errors import ConfigError
from datalens.models.generators import ConditionalGenerator


def small(seed: int = 0, **changes: float) -> ConditionalGenerator:
    net = ConditionalGenerator(5, 3, (1, 8, 8), hidden_units=12, channels=6, **changes)  # pyright: ignore
    net.init_weights(torch.Generator().manual_seed(seed))
    return net


def latents(number: int, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(number, 5, generator=rng), torch.randint(3, (number,), generator=rng)


def test_the_published_generator_has_seven_million_parameters() -> None:
    net = ConditionalGenerator(50, 10, (1, 28, 28))
    count = sum(p.numel() for p in net.parameters())
    assert round(count / 1e6, 1) == 7.0


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 32, 32), (3, 64, 64)])
def test_images_have_the_shape_and_range_asked(shape: tuple[int, int, int]) -> None:
    net = ConditionalGenerator(4, 2, shape, hidden_units=8, channels=8)
    net.init_weights(torch.Generator().manual_seed(0))
    images = net(torch.randn(3, 4, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 1]))
    assert images.shape == (3, *shape)
    assert images.dtype == torch.float32
    assert 0 < float(images.detach().min()) < float(images.detach().max()) < 1


def test_sampling_depends_on_the_own_latent_and_label_only() -> None:
    net = small()
    z, labels = latents(40)
    net(z, labels)
    net.eval()
    with torch.no_grad():
        whole, alone = net(z, labels), torch.cat([net(z[i : i + 1], labels[i : i + 1]) for i in range(40)])
        other, moved = net(z, (labels + 1) % 3), net(z.roll(1, 0), labels)
    torch.testing.assert_close(whole, alone, rtol=0, atol=1e-6)
    assert float((whole - other).abs().max()) > 1e-5
    assert float((whole - moved).abs().max()) > 1e-5
    assert torch.equal(whole, net(z, labels))


def test_weights_come_from_the_generator_given_and_nothing_else() -> None:
    before = torch.random.get_rng_state()
    first, again, other = small(0), small(0), small(1)
    assert torch.equal(before, torch.random.get_rng_state())
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    weights = [m for m in first.modules() if isinstance(m, torch.nn.Linear | torch.nn.ConvTranspose2d)]
    assert all(0.01 < float(m.weight.detach().std()) < 0.03 for m in weights)
    assert not torch.equal(first.hidden.weight, other.hidden.weight)
    first(*latents(20))  # moves the running statistics, which initialising starts again
    first.init_weights(torch.Generator().manual_seed(0))
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


def test_momentum_is_the_rate_of_the_running_statistics() -> None:
    slow, fast = small(momentum=0.01), small(momentum=1.0)
    z, labels = latents(64)
    slow(z, labels)
    fast(z, labels)
    onehot = torch.nn.functional.one_hot(labels, 3).float()
    mean = fast.hidden(torch.cat([z, onehot], 1)).mean(0)
    torch.testing.assert_close(fast.hidden_norm.running_mean, mean)
    torch.testing.assert_close(slow.hidden_norm.running_mean, 0.01 * mean)


def test_settled_statistics_repair_sampling_after_the_weights_moved() -> None:
    net = small(momentum=0.1)
    net(*latents(64))
    with torch.no_grad():
        net.hidden.weight.mul_(100)
    z, labels = latents(512, seed=3)
    with torch.no_grad():
        wanted = net.train()(z, labels)
        net.eval()
        net.settle_statistics(z, labels, batch_size=512)
        assert not net.training
        torch.testing.assert_close(net(z, labels), wanted, rtol=0, atol=1e-3)
    assert net.hidden_norm.momentum == 0.1


@pytest.mark.parametrize(
    "changes", [{"latent_dim": 0}, {"channels": 0}, {"momentum": 0.0}, {"image_shape": (1, 28, 30)}]
)
def test_settings_it_cannot_have_are_refused(changes: dict[str, object]) -> None:
    good: dict[str, object] = {"latent_dim": 5, "num_classes": 3, "image_shape": (1, 8, 8)}
    with pytest.raises(ConfigError):
        ConditionalGenerator(**(good | changes))  # pyright: ignore
