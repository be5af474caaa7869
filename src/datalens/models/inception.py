"""Inception v3: the network whose features the usual FID and Inception Score are made of; weights come from a file.

Two sets of weights are in use, for two graphs that differ in their pooling and in how images are scaled to 299x299:
TensorFlow's of 2015 (the one that published FIDs mean) and torchvision's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias, cast

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import skip_init

INPUT_SIZE = 299
LAYERS = (64, 192, 768, 2048)
"""Where features can be read off, by their number: two early ones, a middle one, and the last."""


class InceptionKind(StrEnum):
    """Whose weights, and so which graph."""

    TENSORFLOW = "tensorflow-2015"
    TORCHVISION = "torchvision"


NUM_OUTPUTS = {InceptionKind.TENSORFLOW: 1008, InceptionKind.TORCHVISION: 1000}

Layer: TypeAlias = tuple[str, int, tuple[int, int]]
"""Name, output channels, kernel of a convolution."""


class ConvNorm(nn.Module):
    """Convolution without bias, batch norm, ReLU."""

    def __init__(
        self, inputs: int, outputs: int, kernel: tuple[int, int], stride: int = 1, *, padded: bool = True
    ) -> None:
        super().__init__()
        padding = (kernel[0] // 2, kernel[1] // 2) if padded else 0
        self.conv: nn.Module = skip_init(
            nn.Conv2d, inputs, outputs, kernel, stride=stride, padding=padding, bias=False
        )
        self.bn: nn.BatchNorm2d = nn.BatchNorm2d(outputs, eps=1e-3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[B, outputs, H, W]`` from ``[B, inputs, H, W]``; smaller maps where strided or not padded."""
        return functional.relu(self.bn(self.conv(x)), inplace=True)


class Pool(StrEnum):
    """What an Inception block's pooling branch does."""

    MEAN = "mean over the pixels under the window"
    PADDED_MEAN = "mean with zeros beyond the border"
    MAX = "maximum"
    HALVE = "maximum of every second window, without padding"


class Block(nn.Module):
    """Branches side by side, and pooling, joined along the channels.

    A branch is a chain of convolutions. Two at its end in a list of their own fork: both see what came before.
    In a halving block the last convolution of each branch has stride 2 and no padding.
    """

    def __init__(
        self, inputs: int, branches: tuple[tuple[Layer | list[Layer], ...], ...], pool: Pool, pooled: int = 0
    ) -> None:
        super().__init__()
        self.chains: list[list[list[str]]] = []
        self.pool = pool
        for branch in branches:
            width, chain = inputs, []
            for position, step in enumerate(branch):
                halving = pool is Pool.HALVE and position == len(branch) - 1
                fork = step if isinstance(step, list) else [step]
                for name, outputs, kernel in fork:
                    self.add_module(
                        name, ConvNorm(width, outputs, kernel, 2 if halving else 1, padded=not halving)
                    )
                width = sum(outputs for _, outputs, _ in fork)
                chain.append([name for name, _, _ in fork])
            self.chains.append(chain)
        self.branch_pool: ConvNorm | None = None if pool is Pool.HALVE else ConvNorm(inputs, pooled, (1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[B, outputs, H, W]`` from ``[B, inputs, H, W]``; half the height and width in a halving block."""
        outputs = []
        for chain in self.chains:
            y = x
            for names in chain:
                forked = [self.get_submodule(name)(y) for name in names]
                y = forked[0] if len(forked) == 1 else torch.cat(forked, 1)
            outputs.append(y)
        pooled = self._pooled(x)
        outputs.append(pooled if self.branch_pool is None else self.branch_pool(pooled))
        return torch.cat(outputs, 1)

    def _pooled(self, x: torch.Tensor) -> torch.Tensor:
        if self.pool is Pool.HALVE:
            return functional.max_pool2d(x, 3, 2)
        if self.pool is Pool.MAX:
            return functional.max_pool2d(x, 3, 1, padding=1)
        padded = self.pool is Pool.PADDED_MEAN
        return functional.avg_pool2d(x, 3, 1, padding=1, count_include_pad=padded)


class InceptionV3(nn.Module):
    """Inception v3 with uninitialised weights, under the names that both files of weights use.

    Attributes:
        kind: Whose weights it takes.

    Source: Szegedy et al. 2016; the pooling of the TensorFlow graph of 2015 as in Heusel et al. 2017.
    """

    def __init__(self, kind: InceptionKind) -> None:
        super().__init__()
        self.kind = kind
        original = kind is InceptionKind.TENSORFLOW
        mean = Pool.MEAN if original else Pool.PADDED_MEAN
        self.Conv2d_1a_3x3: ConvNorm = ConvNorm(3, 32, (3, 3), 2, padded=False)
        self.Conv2d_2a_3x3: ConvNorm = ConvNorm(32, 32, (3, 3), padded=False)
        self.Conv2d_2b_3x3: ConvNorm = ConvNorm(32, 64, (3, 3))
        self.Conv2d_3b_1x1: ConvNorm = ConvNorm(64, 80, (1, 1))
        self.Conv2d_4a_3x3: ConvNorm = ConvNorm(80, 192, (3, 3), padded=False)
        self.Mixed_5b: Block = _five(192, mean, 32)
        self.Mixed_5c: Block = _five(256, mean, 64)
        self.Mixed_5d: Block = _five(288, mean, 64)
        self.Mixed_6a: Block = _halve_to_17(288)
        self.Mixed_6b: Block = _seven(768, mean, 128)
        self.Mixed_6c: Block = _seven(768, mean, 160)
        self.Mixed_6d: Block = _seven(768, mean, 160)
        self.Mixed_6e: Block = _seven(768, mean, 192)
        self.Mixed_7a: Block = _halve_to_8(768)
        self.Mixed_7b: Block = _forked(1280, mean)
        self.Mixed_7c: Block = _forked(2048, Pool.MAX if original else mean)
        self.fc: nn.Linear = cast(nn.Linear, skip_init(nn.Linear, 2048, NUM_OUTPUTS[kind]))

    def forward(self, images_BCHW: torch.Tensor, layer: int = 2048) -> tuple[torch.Tensor, torch.Tensor]:
        """Features ``[B, layer]``, averaged over the image, and logits ``[B, outputs]``.

        Args:
            images_BCHW: float ``[B, 3, H, W]`` with whole values 0 to 255, of any size.
            layer: One of :data:`LAYERS`.
        """
        x = scaled_input(images_BCHW, self.kind)
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x)))
        taps = {64: (x := functional.max_pool2d(x, 3, 2))}
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x))
        taps[192] = x = functional.max_pool2d(x, 3, 2)
        x = self.Mixed_6a(self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(x))))
        taps[768] = x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(x))))
        taps[2048] = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x)))
        bias = None if self.kind is InceptionKind.TENSORFLOW else self.fc.bias
        logits = functional.linear(taps[2048].mean((2, 3)), self.fc.weight, bias)
        return taps[layer].mean((2, 3)), logits


def scaled_input(images_BCHW: torch.Tensor, kind: InceptionKind) -> torch.Tensor:
    """Images of 0 to 255 as the graph wants them: 299x299, about -1 to 1.

    TensorFlow's graph scales bilinearly with the corner pixels' corners in place, torchvision's with centres.
    """
    if kind is InceptionKind.TORCHVISION:
        size = (INPUT_SIZE, INPUT_SIZE)
        scaled = functional.interpolate(
            images_BCHW, size, mode="bilinear", align_corners=False, antialias=True
        )
        return scaled / 127.5 - 1.0
    x = images_BCHW
    for axis in (2, 3):
        length = x.shape[axis]
        place = torch.arange(INPUT_SIZE, device=x.device, dtype=x.dtype) * (length / INPUT_SIZE)
        low = place.floor().long().clamp_(max=length - 1)
        high = (low + 1).clamp_(max=length - 1)
        weight = (place - low).view([-1 if dimension == axis else 1 for dimension in range(4)])
        start = x.index_select(axis, low)
        x = start + (x.index_select(axis, high) - start) * weight
    return (x - 128.0) / 128.0


def _five(inputs: int, pool: Pool, pooled: int) -> Block:
    return Block(
        inputs,
        (
            (("branch1x1", 64, (1, 1)),),
            (("branch5x5_1", 48, (1, 1)), ("branch5x5_2", 64, (5, 5))),
            (
                ("branch3x3dbl_1", 64, (1, 1)),
                ("branch3x3dbl_2", 96, (3, 3)),
                ("branch3x3dbl_3", 96, (3, 3)),
            ),
        ),
        pool,
        pooled,
    )


def _seven(inputs: int, pool: Pool, width: int) -> Block:
    return Block(
        inputs,
        (
            (("branch1x1", 192, (1, 1)),),
            (("branch7x7_1", width, (1, 1)), ("branch7x7_2", width, (1, 7)), ("branch7x7_3", 192, (7, 1))),
            (
                ("branch7x7dbl_1", width, (1, 1)),
                ("branch7x7dbl_2", width, (7, 1)),
                ("branch7x7dbl_3", width, (1, 7)),
                ("branch7x7dbl_4", width, (7, 1)),
                ("branch7x7dbl_5", 192, (1, 7)),
            ),
        ),
        pool,
        192,
    )


def _forked(inputs: int, pool: Pool) -> Block:
    return Block(
        inputs,
        (
            (("branch1x1", 320, (1, 1)),),
            (("branch3x3_1", 384, (1, 1)), [("branch3x3_2a", 384, (1, 3)), ("branch3x3_2b", 384, (3, 1))]),
            (
                ("branch3x3dbl_1", 448, (1, 1)),
                ("branch3x3dbl_2", 384, (3, 3)),
                [("branch3x3dbl_3a", 384, (1, 3)), ("branch3x3dbl_3b", 384, (3, 1))],
            ),
        ),
        pool,
        192,
    )


def _halve_to_17(inputs: int) -> Block:
    return Block(
        inputs,
        (
            (("branch3x3", 384, (3, 3)),),
            (
                ("branch3x3dbl_1", 64, (1, 1)),
                ("branch3x3dbl_2", 96, (3, 3)),
                ("branch3x3dbl_3", 96, (3, 3)),
            ),
        ),
        Pool.HALVE,
    )


def _halve_to_8(inputs: int) -> Block:
    return Block(
        inputs,
        (
            (("branch3x3_1", 192, (1, 1)), ("branch3x3_2", 320, (3, 3))),
            (
                ("branch7x7x3_1", 192, (1, 1)),
                ("branch7x7x3_2", 192, (1, 7)),
                ("branch7x7x3_3", 192, (7, 1)),
                ("branch7x7x3_4", 192, (3, 3)),
            ),
        ),
        Pool.HALVE,
    )
