"""Classifiers for DP-SGD: few weights, since noise falls on each, and no layer that mixes the records of a batch."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn.utils import skip_init

from datalens.errors import ConfigError
from datalens.models.small_kind import SmallKind

_MAPS, _WIDTH = (16, 32), 32
_SMALLEST = 14


def small_classifier(kind: SmallKind, image_shape: tuple[int, int, int], num_classes: int) -> nn.Sequential:
    """A classifier for images of one shape in [0, 1], its weights not set.

    * ``cnn``: 8x8 convolution to 16, stride 2; 2x2 max-pool, stride 1; 4x4 convolution to 32, stride 2; 2x2 max-pool,
      stride 1; dense 32; dense to the classes; ReLU between. For 28x28 it is the network of Opacus's MNIST example,
      with 26,010 weights for ten classes; for other sizes only the first dense layer differs.
    * ``linear``: softmax regression on the pixels.

    Args:
        kind: which.
        image_shape: (C, H, W).
        num_classes: Y.

    Raises:
        ConfigError: an image too small for the convolutions.

    Source: Wang et al. 2021, Appendix A, for ``cnn``.

    >>> net = small_classifier(SmallKind.CNN, (1, 28, 28), 10)
    >>> sum(p.numel() for p in net.parameters()), num_weights(SmallKind.CNN, (1, 28, 28), 10)
    (26010, 26010)
    """
    channels, height, width = image_shape
    if kind is SmallKind.LINEAR:
        return nn.Sequential(nn.Flatten(), skip_init(nn.Linear, channels * height * width, num_classes))
    first, second = _MAPS
    return nn.Sequential(
        skip_init(nn.Conv2d, channels, first, 8, stride=2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        skip_init(nn.Conv2d, first, second, 4, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        skip_init(nn.Linear, _flat(height, width), _WIDTH),
        nn.ReLU(),
        skip_init(nn.Linear, _WIDTH, num_classes),
    )


def num_weights(kind: SmallKind, image_shape: tuple[int, int, int], num_classes: int) -> int:
    """Weights of :func:`small_classifier`, from sizes alone.

    Raises:
        ConfigError: an image too small for the convolutions.
    """
    channels, height, width = image_shape
    if kind is SmallKind.LINEAR:
        return (channels * height * width + 1) * num_classes
    first, second = _MAPS
    maps = (64 * channels + 1) * first + (16 * first + 1) * second
    return maps + (_flat(height, width) + 1) * _WIDTH + (_WIDTH + 1) * num_classes


@torch.no_grad()
def set_weights(net: nn.Module, rng: torch.Generator) -> None:
    """Draw all weights as PyTorch does by default: evenly, up to 1 / sqrt(inputs of a unit). ``rng`` is a CPU one."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            bound = 1 / math.sqrt(module.weight[0].numel())
            for parameter in module.parameters():
                parameter.uniform_(-bound, bound, generator=rng)


def _flat(height: int, width: int) -> int:
    """Inputs of the first dense layer."""
    if min(height, width) < _SMALLEST:
        raise ConfigError(
            f"images of {height}x{width} are too small for the model cnn (at least {_SMALLEST}x{_SMALLEST}); use the "
            "model linear"
        )
    rows, columns = (((side - 2) // 2 - 4) // 2 for side in (height, width))
    return _MAPS[1] * rows * columns
