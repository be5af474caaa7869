"""The networks of the paper's Appendix A: that of Opacus's MNIST example, and a linear head on frozen features."""

from __future__ import annotations

import math

import torch
from torch import nn


def mnist_example(rng: torch.Generator) -> nn.Module:
    """Two convolutions and two linear layers for images [B, 1, 28, 28]: 26,010 weights.

    >>> sum(p.numel() for p in mnist_example(torch.Generator()).parameters())
    26010
    """
    network = nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip
    return _begin(network, rng)


def linear_head(num_features: int, num_classes: int, rng: torch.Generator) -> nn.Module:
    """One linear layer for features [B, F].

    >>> sum(p.numel() for p in linear_head(512, 10, torch.Generator()).parameters())
    5130
    """
    return _begin(nn.Sequential(nn.Linear(num_features, num_classes)), rng)


@torch.no_grad()
def _begin(network: nn.Module, rng: torch.Generator) -> nn.Module:
    """PyTorch's own initial law, drawn from ``rng``: uniform within one over the root of a unit's inputs."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            for p in layer.parameters():
                p.uniform_(-bound, bound, generator=rng)
    return network
