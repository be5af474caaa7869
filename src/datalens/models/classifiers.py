"""Classifiers that judge images: the paper's convolutional network, a small MLP and softmax regression."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import cast

import torch
from torch import nn
from torch.nn.utils import skip_init

from datalens.errors import ConfigError

MLP_HIDDEN = 256
CNN_FEATURES = 64
LEAST_SIDE = 8
"""Pixels that images must be high and wide for the convolutions."""
FEATURE_NET_FEATURES = 128


class ClassifierKind(StrEnum):
    """The classifiers that can be asked for by name."""

    CNN = "cnn"
    MLP = "mlp"
    LOGISTIC = "logistic"
    FEATURE_NET = "feature-net"


class Dropout(nn.Module):
    """Dropout whose masks come from a generator that is passed in, and that touches no global state.

    Each value is kept with probability ``1 - p`` (to within 1/65536) and divided by it. In ``eval`` mode,
    or as long as ``rng`` is ``None``, the input passes unchanged.

    Attributes:
        p: Probability of setting a value to zero.
        rng: Where the masks are drawn from; on the same device as the input.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.rng: torch.Generator | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``, in training with a share ``p`` of it zero and the rest larger; the same shape."""
        if not self.training or self.rng is None:
            return x
        words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device)
        bits = words.random_(-(2**63), None, generator=self.rng).view(torch.int16)[: x.numel()]
        keep = (bits >= round(self.p * 65536) - 32768).view(_storage_shape(x))
        if keep.shape != x.shape:
            keep = keep.permute(0, 3, 1, 2)
        return x * (keep * (1.0 / (1.0 - self.p)))


class Classifier(nn.Module):
    """Images in, logits out, by way of a feature vector.

    Attributes:
        kind: Which network this is.
        num_features: Length of the vector that ``features`` gives.
    """

    def __init__(self, kind: ClassifierKind, trunk: nn.Sequential, head: nn.Linear) -> None:
        super().__init__()
        self.kind = kind
        self.trunk = trunk
        self.head = head
        self.num_features: int = head.in_features

    def features(self, images_BCHW: torch.Tensor) -> torch.Tensor:
        """The last layer's input, ``[B, num_features]``, for images ``[B, C, H, W]`` in [0, 1]."""
        return self.trunk(images_BCHW)

    def forward(self, images_BCHW: torch.Tensor) -> torch.Tensor:
        """Logits ``[B, Y]`` of images ``[B, C, H, W]`` in [0, 1]."""
        return self.head(self.trunk(images_BCHW))

    def use_rng(self, rng: torch.Generator | None) -> None:
        """Draw all dropout masks from ``rng`` from now on; ``None`` switches dropout off."""
        for module in self.modules():
            if isinstance(module, Dropout):
                module.rng = rng


def build_classifier(
    kind: ClassifierKind | str, image_shape: tuple[int, int, int], num_classes: int, rng: torch.Generator
) -> Classifier:
    """A freshly initialised classifier for images of one shape.

    * ``cnn``: the paper's utility classifier: 3x3 convolution to 32, ReLU, 2x2 max-pool, dropout 0.2,
      3x3 convolution to 64, ReLU, dropout 0.25, dense 64, ReLU, dense to the classes. Convolutions are
      unpadded (Keras' default, which the published code leaves in place): 28x28 becomes 26, 13, 11.
      The softmax is part of the loss. Max-pool comes before the first ReLU here, which gives the same values.
    * ``mlp``: one hidden layer of 256 ReLU units.
    * ``logistic``: softmax regression on the pixels.
    * ``feature-net``: padded convolutions with batch norm, for features and scores rather than utility.

    Weights are Glorot uniform (Keras' default), biases zero.

    Args:
        kind: One of :class:`ClassifierKind`.
        image_shape: (C, H, W).
        num_classes: Y, at least 1.
        rng: Source of the initial weights, on the CPU.

    Raises:
        ConfigError: unknown kind, or an image too small for the convolutions.

    Source: section 6 of the paper and its published evaluation script, for ``cnn``.

    >>> net = build_classifier("cnn", (1, 28, 28), 10, torch.Generator().manual_seed(0))
    >>> tuple(net(torch.zeros(2, 1, 28, 28)).shape), net.num_features
    ((2, 10), 64)
    """
    try:
        kind = ClassifierKind(kind)
    except ValueError:
        known = ", ".join(ClassifierKind)
        raise ConfigError(f"classifier {kind!r} is not known; choose one of: {known}") from None
    channels, height, width = image_shape
    if min(height, width) < LEAST_SIDE and kind in (ClassifierKind.CNN, ClassifierKind.FEATURE_NET):
        raise ConfigError(
            f"images of {height}x{width} are too small for {kind} (at least 8x8); use mlp or logistic"
        )
    trunk, features = _TRUNKS[kind](channels, height, width)
    head = cast(nn.Linear, skip_init(nn.Linear, features, num_classes))
    net = Classifier(kind, trunk, head)
    _initialise(net, rng)
    return net


def _cnn(channels: int, height: int, width: int) -> tuple[nn.Sequential, int]:
    rows, columns = (height - 2) // 2 - 2, (width - 2) // 2 - 2
    trunk = nn.Sequential(
        skip_init(nn.Conv2d, channels, 32, 3),
        nn.MaxPool2d(2),
        nn.ReLU(),
        Dropout(0.2),
        skip_init(nn.Conv2d, 32, 64, 3),
        nn.ReLU(),
        Dropout(0.25),
        nn.Flatten(),
        skip_init(nn.Linear, 64 * rows * columns, CNN_FEATURES),
        nn.ReLU(),
    )
    return trunk, CNN_FEATURES


def _mlp(channels: int, height: int, width: int) -> tuple[nn.Sequential, int]:
    hidden = skip_init(nn.Linear, channels * height * width, MLP_HIDDEN)
    return nn.Sequential(nn.Flatten(), hidden, nn.ReLU()), MLP_HIDDEN


def _logistic(channels: int, height: int, width: int) -> tuple[nn.Sequential, int]:
    return nn.Sequential(nn.Flatten()), channels * height * width


def _feature_net(channels: int, height: int, width: int) -> tuple[nn.Sequential, int]:
    trunk = nn.Sequential(
        *_conv_block(channels, 32),
        nn.MaxPool2d(2),
        *_conv_block(32, 64),
        nn.MaxPool2d(2),
        *_conv_block(64, 128),
        Dropout(0.25),
        nn.Flatten(),
        skip_init(nn.Linear, 128 * (height // 4) * (width // 4), FEATURE_NET_FEATURES),
        nn.ReLU(),
    )
    return trunk, FEATURE_NET_FEATURES


def _conv_block(inputs: int, outputs: int) -> list[nn.Module]:
    return [skip_init(nn.Conv2d, inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]


_TRUNKS = {
    ClassifierKind.CNN: _cnn,
    ClassifierKind.MLP: _mlp,
    ClassifierKind.LOGISTIC: _logistic,
    ClassifierKind.FEATURE_NET: _feature_net,
}


@torch.no_grad()
def _initialise(net: nn.Module, rng: torch.Generator) -> None:
    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            fan_in = module.weight[0].numel()
            fan_out = module.weight.numel() // module.weight.shape[1]
            bound = math.sqrt(6.0 / (fan_in + fan_out))
            module.weight.uniform_(-bound, bound, generator=rng)
            if module.bias is not None:
                module.bias.zero_()


def _storage_shape(x: torch.Tensor) -> tuple[int, ...]:
    """The shape of ``x`` in the order its values lie in memory, so that a flat mask fits without a copy."""
    if x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last):
        return (x.shape[0], x.shape[2], x.shape[3], x.shape[1])
    return tuple(x.shape)
