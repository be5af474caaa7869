"""A step of TopAgg for DP-SGD over one of plain Opacus: forward, gradients of single records, selection, noise.

    python benchmarks/dpsgd_step.py mnist --batch 512
    python benchmarks/dpsgd_step.py head --batch 2048

The network of Opacus's MNIST example, or a 512x10 head. Both engines step by turns in one run; the ratio is that of
their fastest rounds. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from typing import Any

import torch
from measuring import explained, machine
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from datalens.dpsgd import TopAggPrivacyEngine

WARM_UP = 1


def mnist_network() -> nn.Module:
    """The network of the paper's Appendix A: two convolutions, two linear layers, 26,010 weights."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


def head() -> nn.Module:
    """A linear head on 512 features."""
    return nn.Linear(512, 10)


def private(engine: Any, module: nn.Module, images: Tensor, labels: Tensor, **settings: Any) -> Any:
    """Module and optimiser under one engine."""
    loader = DataLoader(TensorDataset(images, labels), batch_size=len(images))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    made = engine.make_private(
        module=module,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        **settings,
    )
    return made[:2]


def seconds(module: nn.Module, optimizer: Any, images: Tensor, labels: Tensor) -> tuple[float, float]:
    """Of a whole step, and of the optimiser's part in it."""
    started = time.perf_counter()
    optimizer.zero_grad()
    functional.cross_entropy(module(images), labels).backward()
    halfway = time.perf_counter()
    optimizer.step()
    return time.perf_counter() - started, time.perf_counter() - halfway


def measure(name: str, batch: int, keep: float, rounds: int) -> dict[str, object]:
    """Fastest step of both, by turns."""
    torch.manual_seed(0)
    make, images = {
        "mnist": (mnist_network, torch.randn(batch, 1, 28, 28)),
        "head": (head, torch.randn(batch, 512).relu()),
    }[name]
    labels = torch.randint(0, 10, (batch,))
    plain = private(PrivacyEngine(accountant="rdp"), make(), images, labels)
    ours = private(TopAggPrivacyEngine(accountant="rdp"), make(), images, labels, keep=keep)
    times: dict[str, list[tuple[float, float]]] = {"plain": [], "topagg": []}
    for _ in range(rounds + WARM_UP):
        for which, (module, optimizer) in (("plain", plain), ("topagg", ours)):
            times[which].append(seconds(module, optimizer, images, labels))
    best = {which: [min(part) for part in zip(*took[WARM_UP:], strict=True)] for which, took in times.items()}
    return {
        "network": name,
        "batch": batch,
        "keep": keep,
        "rounds": rounds,
        "seed": 0,
        "ratio": best["topagg"][0] / best["plain"][0],
        **{f"seconds_of_{which}": took[0] for which, took in best.items()},
        **{f"seconds_of_{which}_in_the_optimizer": took[1] for which, took in best.items()},
        **machine("cpu"),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network", choices=["mnist", "head"])
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--keep", type=float, default=0.8)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measure(given.network, given.batch, given.keep, given.rounds)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(explained(main))
