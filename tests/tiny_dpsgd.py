"""The smallest cells of DP-SGD: drawn records in place of MNIST and of features, a few steps."""

from __future__ import annotations

import torch

from datalens.experiments.dpsgd_cells import DpsgdCell
from datalens.experiments.dpsgd_paper import Settings
from datalens.experiments.dpsgd_training import Records

FEW = Settings(max_grad_norm=1.0, noise_multiplier=20.0, batch_size=2000, learning_rate=0.5)
MNIST = DpsgdCell("mnist", 0.4, FEW, 0.8)
CIFAR = DpsgdCell("cifar10", 0.4, FEW, 0.8, features="efficientnet-lite0")


def records_like(cell: DpsgdCell, count: int = 60) -> Records:
    """Classes that a linear rule parts: the mean of a record's first numbers says its class."""
    rng = torch.Generator().manual_seed(0)
    shape = (1, 28, 28) if cell.features is None else (512,)
    labels = torch.arange(count) % 10
    inputs = torch.randn(count, *shape, generator=rng) / 10
    inputs.view(count, -1)[torch.arange(count), 40 * labels] += 3.0
    return Records(inputs, labels, inputs, labels)
