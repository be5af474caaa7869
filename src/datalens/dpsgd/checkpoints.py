"""Checkpoints of Opacus's kind, read without running what they may hold, and with names that plain networks have."""

from __future__ import annotations

from typing import Any

import torch
from opacus.accountants.accountant import IAccountant
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from opacus.grad_sample import AbstractGradSampleModule
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from datalens.errors import CheckpointError

_WEIGHTS, _SPENT, _OPTIMIZER = (
    "module_state_dict",
    "privacy_accountant_state_dict",
    "optimizer_state_dict",
)


def without_wrappers(module: Any) -> nn.Module:
    """The network inside whatever was put around it for gradients of single records or for several processes."""
    while True:
        if isinstance(module, AbstractGradSampleModule):
            module = module._module
        elif isinstance(module, DifferentiallyPrivateDistributedDataParallel | DistributedDataParallel):
            module = module.module
        else:
            return module


def read_checkpoint(
    path: Any, module: nn.Module, accountant: IAccountant, optimizer: DPOptimizer | None
) -> dict[str, Any]:
    """Load weights, what was spent, and the optimiser's state where there is one. Returns all that the file holds.

    Raises:
        CheckpointError: the file is damaged, belongs to another network, or does not say what was spent.
    """
    try:
        content = torch.load(path, weights_only=True)
    except Exception as error:
        raise CheckpointError(
            f"{path} cannot be read as a checkpoint ({error}); give another, or save it again"
        ) from error
    if not isinstance(content, dict) or not content.get(_SPENT) or _WEIGHTS not in content:
        raise CheckpointError(
            f"{path} does not say what was spent, so training on from it would cost more than is reported; give a "
            "checkpoint written by save_checkpoint of the engine"
        )
    try:
        without_wrappers(module).load_state_dict(content[_WEIGHTS])
        if optimizer is not None and content.get(_OPTIMIZER):
            optimizer.load_state_dict(content[_OPTIMIZER])
        accountant.load_state_dict(content[_SPENT])
    except (RuntimeError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} is of another training ({error}); build the same one first") from error
    return content
