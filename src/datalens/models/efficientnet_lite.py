"""EfficientNet-Lite0 without its last layer: a small network of ImageNet, whose weights come in a Python package.

Names of the parts are those of the published weights, so that these load as they are.

Source: Tan and Le 2019, in the Lite form of 2020: no squeeze-and-excitation, ReLU6 in place of swish.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

NUM_FEATURES = 1280
MEAN, STDDEV = (127 / 255,) * 3, (128 / 255,) * 3
"""Of a channel in [0, 1], as the network was trained with."""

_EPSILON = 1e-3
_STEM = 32
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
"""Blocks, kernel, stride of the first block, expansion, channels."""


class SameConv(nn.Conv2d):
    """A convolution without bias whose output has ceil(size / stride) pixels, padded as TensorFlow does."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, groups=groups, bias=False)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """``[B, outputs, ceil(H / stride), ceil(W / stride)]`` from ``[B, inputs, H, W]``."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        pads = []
        for size in (input.shape[-1], input.shape[-2]):
            whole = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            pads += [whole // 2, whole - whole // 2]
        if pads[0] == pads[1] == pads[2] == pads[3]:
            return functional.conv2d(input, self.weight, None, stride, pads[0], 1, self.groups)
        return functional.conv2d(functional.pad(input, pads), self.weight, None, stride, 0, 1, self.groups)


class Block(nn.Module):
    """Widen, filter each channel by itself, narrow; added to what came in where the shapes allow."""

    widens: bool
    adds: bool

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = inputs * expansion
        self.widens, self.adds = expansion != 1, stride == 1 and inputs == outputs
        if self.widens:
            self._expand_conv = SameConv(inputs, width, 1)
            self._bn0 = nn.BatchNorm2d(width, eps=_EPSILON)
        self._depthwise_conv = SameConv(width, width, kernel, stride, groups=width)
        self._bn1 = nn.BatchNorm2d(width, eps=_EPSILON)
        self._project_conv = SameConv(width, outputs, 1)
        self._bn2 = nn.BatchNorm2d(outputs, eps=_EPSILON)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """As of a :class:`SameConv` with the block's stride: ``[B, outputs, H', W']`` from ``[B, inputs, H, W]``."""
        y = functional.relu6(self._bn0(self._expand_conv(x))) if self.widens else x
        y = functional.relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return x + y if self.adds else y


class EfficientNetLite0(nn.Module):
    """Colour images [B, 3, H, W], scaled by :data:`MEAN` and :data:`STDDEV`, to features [B, 1280]."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = SameConv(3, _STEM, 3, 2)
        self._bn0 = nn.BatchNorm2d(_STEM, eps=_EPSILON)
        self._blocks = nn.ModuleList()
        inputs = _STEM
        for count, kernel, stride, expansion, outputs in _STAGES:
            for place in range(count):
                self._blocks.append(Block(inputs, outputs, kernel, stride if place == 0 else 1, expansion))
                inputs = outputs
        self._conv_head = SameConv(inputs, NUM_FEATURES, 1)
        self._bn1 = nn.BatchNorm2d(NUM_FEATURES, eps=_EPSILON)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Features [B, 1280] of scaled images [B, 3, H, W]."""
        x = functional.relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        return functional.relu6(self._bn1(self._conv_head(x))).mean((2, 3))
