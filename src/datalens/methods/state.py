"""Networks and their optimisers as flat tensors, which is what a checkpoint holds; nothing is pickled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn, optim

from datalens.errors import CheckpointError


def pack(modules: Mapping[str, nn.Module], optimizers: Mapping[str, optim.Optimizer]) -> dict[str, Tensor]:
    """Copies of all weights, buffers and optimiser states, by ``kind/name/...``.

    Args:
        modules: by a name without ``/``.
        optimizers: likewise; one with a name of ``modules`` need not be its own.
    """
    tensors = {
        f"module/{name}/{key}": value
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }
    for name, optimizer in optimizers.items():
        for index, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{name}/{index}/{key}": torch.as_tensor(v) for key, v in state.items()}
    return {name: value.detach().clone().contiguous() for name, value in tensors.items()}


def unpack(
    tensors: Mapping[str, Tensor],
    modules: Mapping[str, nn.Module],
    optimizers: Mapping[str, optim.Optimizer],
) -> None:
    """Put back what :func:`pack` gave.

    Raises:
        CheckpointError: tensors of other networks.
    """
    try:
        for name, module in modules.items():
            module.load_state_dict(dict(_below(tensors, f"module/{name}/")))
        for name, optimizer in optimizers.items():
            states: dict[int, dict[str, Tensor]] = {}
            for key, value in _below(tensors, f"optimizer/{name}/"):
                index, _, field = key.partition("/")
                states.setdefault(int(index), {})[field] = value
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": states, "param_groups": groups})
    except (RuntimeError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(
            f"the checkpoint is of other networks ({reason:.120}): use the settings it was made with"
        ) from None


def _below(tensors: Mapping[str, Tensor], prefix: str) -> Iterable[tuple[str, Tensor]]:
    return ((name[len(prefix) :], value) for name, value in tensors.items() if name.startswith(prefix))
