"""ResNet-18 as torchvision has it, without its last layer; names of the parts are those of torchvision's weights.

Source: He et al. 2016.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

NUM_FEATURES = 512
MEAN, STDDEV = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of a channel in [0, 1], as the network was trained with."""


class BasicBlock(nn.Module):
    """Two 3x3 convolutions, added to what came in."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1: nn.Conv2d = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1: nn.BatchNorm2d = nn.BatchNorm2d(outputs)
        self.conv2: nn.Conv2d = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2: nn.BatchNorm2d = nn.BatchNorm2d(outputs)
        self.downsample: nn.Sequential = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.downsample.append(nn.Conv2d(inputs, outputs, 1, stride, bias=False))
            self.downsample.append(nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[B, outputs, H / stride, W / stride]`` from ``[B, inputs, H, W]``, sides rounded up."""
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet18(nn.Module):
    """Colour images [B, 3, H, W], scaled by :data:`MEAN` and :data:`STDDEV`, to features [B, 512]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1: nn.Conv2d = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1: nn.BatchNorm2d = nn.BatchNorm2d(64)
        self.layer1: nn.Sequential = nn.Sequential(BasicBlock(64, 64, 1), BasicBlock(64, 64, 1))
        self.layer2: nn.Sequential = nn.Sequential(BasicBlock(64, 128, 2), BasicBlock(128, 128, 1))
        self.layer3: nn.Sequential = nn.Sequential(BasicBlock(128, 256, 2), BasicBlock(256, 256, 1))
        self.layer4: nn.Sequential = nn.Sequential(BasicBlock(256, 512, 2), BasicBlock(512, NUM_FEATURES, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Features [B, 512] of scaled images [B, 3, H, W]."""
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3))
