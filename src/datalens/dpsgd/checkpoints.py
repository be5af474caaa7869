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

    Going back to an earlier state of the same training leaves the account as it is: its later steps were taken.

    Raises:
        CheckpointError: the file is damaged, belongs to another network, does not say what was spent, or spent what
            this account, which is not empty, knows nothing of.
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
    if accountant.history and not _goes_on_from(accountant.history, content[_SPENT].get("history", [])):
        raise CheckpointError(
            f"{path} is of another training than the {len(accountant)} steps that this engine has charged, and would "
            "wipe them out; give it to a new engine"
        )
    try:
        without_wrappers(module).load_state_dict(content[_WEIGHTS])
        if optimizer is not None and content.get(_OPTIMIZER):
            optimizer.load_state_dict(content[_OPTIMIZER])
        if not accountant.history:
            accountant.load_state_dict(content[_SPENT])
    except (RuntimeError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} is of another training ({error}); build the same one first") from error
    return content


def _goes_on_from(history: Any, earlier: Any) -> bool:
    """Whether ``history``, as (noise multiplier, rate, steps), is ``earlier`` and perhaps more."""
    if not earlier:
        return True
    last = len(earlier) - 1
    return (
        len(history) > last
        and list(history[:last]) == list(earlier[:last])
        and tuple(history[last][:2]) == tuple(earlier[last][:2])
        and history[last][2] >= earlier[last][2]
    )
