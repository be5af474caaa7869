"""The utility classifiers: their shapes are the paper's, and their randomness is passed in."""

from __future__ import annotations

import pytest
import torch

from datalens.errors import ConfigError
from datalens.models.classifiers import Classifier, ClassifierKind, Dropout, build_classifier


def _rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_cnn_has_the_papers_layers() -> None:
    net = build_classifier("cnn", (1, 28, 28), 10, _rng())
    shapes = [tuple(weight.shape) for name, weight in net.named_parameters() if name.endswith("weight")]
    assert shapes == [(32, 1, 3, 3), (64, 32, 3, 3), (64, 64 * 11 * 11), (10, 64)]
    assert [module.p for module in net.modules() if isinstance(module, Dropout)] == [0.2, 0.25]


@pytest.mark.parametrize("kind", list(ClassifierKind))
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 20), (1, 9, 8)])
def test_logits_and_features_fit_any_image(kind: ClassifierKind, shape: tuple[int, int, int]) -> None:
    net = build_classifier(kind, shape, 3, _rng()).eval()
    images = torch.rand(4, *shape, generator=_rng(1))
    assert net(images).shape == (4, 3)
    torch.testing.assert_close(net.head(net.features(images)), net(images))
    assert net.features(images).shape == (4, net.num_features)


def test_initial_weights_depend_on_the_rng_alone() -> None:
    def flat(net: Classifier) -> torch.Tensor:
        return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])

    before = torch.random.get_rng_state()
    first = flat(build_classifier("cnn", (1, 12, 12), 4, _rng(3)))
    torch.rand(5)
    assert torch.equal(first, flat(build_classifier("cnn", (1, 12, 12), 4, _rng(3))))
    assert not torch.equal(first, flat(build_classifier("cnn", (1, 12, 12), 4, _rng(4))))
    torch.random.set_rng_state(before)
    build_classifier("cnn", (1, 12, 12), 4, _rng(3))
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("p", [0.2, 0.25])
def test_dropout_keeps_its_share_and_the_mean(p: float, channels_last: bool) -> None:
    layer = Dropout(p).train()
    layer.rng = _rng()
    x = torch.ones(64, 7, 13, 11)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    y = layer(x)
    assert y.shape == x.shape
    assert y.stride() == x.stride()
    assert set(torch.unique(y).tolist()) == {0.0, torch.tensor(1.0 / (1.0 - p)).item()}
    spread = (p * (1 - p) / x.numel()) ** 0.5
    assert abs(float((y == 0).double().mean()) - p) < 5 * spread
    every_image = (y == 0).double().mean(dim=(1, 2, 3))
    assert every_image.min() > p - 0.1
    assert every_image.max() < p + 0.1


def test_dropout_masks_differ_between_calls_and_vanish_in_eval() -> None:
    layer = Dropout(0.5).train()
    layer.rng = _rng()
    x = torch.ones(3, 50)
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), x)


def test_unknown_and_impossible_classifiers_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"resnet.*cnn, mlp, logistic"):
        build_classifier("resnet", (1, 28, 28), 10, _rng())
    with pytest.raises(ConfigError, match="at least 8x8"):
        build_classifier("cnn", (1, 7, 28), 10, _rng())
