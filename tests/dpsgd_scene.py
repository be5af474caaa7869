"""A tiny training for the tests of DP-SGD, shared by its test files."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from datalens.dpsgd import TopAggPrivacyEngine


def network(seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def records(number: int = 40) -> TensorDataset:
    rng = torch.Generator().manual_seed(5)
    return TensorDataset(torch.randn(number, 6, generator=rng), torch.randint(0, 3, (number,), generator=rng))


def prepared(
    engine: PrivacyEngine, *, number: int = 40, batch_size: int = 10, **settings: Any
) -> tuple[Any, Any, Any]:
    """Module, optimiser and loader, all made private by ``engine``."""
    module = settings.pop("module", None) or network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    usual: dict[str, Any] = {"noise_multiplier": 1.0, "max_grad_norm": 1.0}
    rng = torch.Generator().manual_seed(11)
    loader = DataLoader(records(number), batch_size=batch_size, generator=rng)
    return engine.make_private(module=module, optimizer=optimizer, data_loader=loader, **(usual | settings))


def plain_engine(accountant: str = "rdp") -> PrivacyEngine:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivacyEngine(accountant=accountant)


def topagg_engine() -> TopAggPrivacyEngine:
    return TopAggPrivacyEngine(accountant="rdp")


def train(module: Any, optimizer: Any, loader: Any, epochs: int = 1) -> int:
    """Epochs of ordinary training; how many lots were met."""
    lots = 0
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            functional.cross_entropy(module(images), labels, reduction="mean").backward()
            optimizer.step()
            lots += 1
    return lots


def weights(module: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])
