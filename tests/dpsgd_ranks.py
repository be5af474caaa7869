"""What each process of the test with two ranks does: steps on zero gradients, then one epoch on rare lots.

torchrun --nproc-per-node R dpsgd_ranks.py FOLDER
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import torch
from dpsgd_scene import network, records, topagg_engine, train, weights
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from torch import distributed, nn
from torch.utils.data import DataLoader

STEPS, WIDTH, KEEP, BATCH = 5, 100_000, 0.64, 8


def noise_of_a_step() -> dict[str, object]:
    """Standard deviation of what steps without gradients do to 100,000 weights, and a sum to compare ranks by."""
    engine, module = topagg_engine(), nn.Linear(WIDTH, 1, bias=False)
    nn.init.zeros_(module.weight)
    wrapped = DifferentiallyPrivateDistributedDataParallel(module)
    _private, optimizer, _loader = engine.make_private(
        module=wrapped,
        optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
        data_loader=DataLoader(records(80), batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        keep=KEEP,
    )
    for _ in range(STEPS):
        optimizer.zero_grad()
        module.weight.grad_sample = torch.zeros(2, 1, WIDTH)
        optimizer.step()
    return {
        "std": weights(module).std().item() / STEPS**0.5,
        "sum": weights(module).double().sum().item(),
        "epsilon": engine.get_epsilon(1e-5),
    }


def rare_lots(rank: int) -> dict[str, object]:
    """An epoch on lots that are empty on one rank and not on the other; which records this rank meets."""
    torch.manual_seed(100 + rank)
    engine, module = topagg_engine(), network(rank)
    private, optimizer, loader = engine.make_private(
        module=DifferentiallyPrivateDistributedDataParallel(module),
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=DataLoader(records(20), batch_size=1),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        keep=KEEP,
    )
    lots = train(private, optimizer, loader)
    met = sorted({index for _ in range(20) for lot in loader.batch_sampler for index in lot})
    return {"lots": lots, "met": met, "weights": weights(module).tolist()}


def main(folder: Path) -> None:
    """Write what happened on this rank."""
    warnings.simplefilter("ignore")
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    found = {"noise": noise_of_a_step(), "rare": rare_lots(rank)}
    (folder / f"rank{rank}.json").write_text(json.dumps(found))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
