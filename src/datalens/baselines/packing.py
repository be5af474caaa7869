"""A network and its Adam as flat tensors for a checkpoint, and back."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn
from torch.optim import Adam

from datalens.errors import CheckpointError


def pack(net: nn.Module, optimiser: Adam) -> dict[str, Tensor]:
    """Copies of the network's weights and buffers (``weights/...``) and of Adam's moments (``adam/...``)."""
    tensors = {f"weights/{name}": value for name, value in net.state_dict().items()}
    names = [name for name, _ in net.named_parameters()]
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {f"adam/{names[index]}/{key}": value for key, value in state.items()}
    return {name: value.detach().clone().contiguous() for name, value in tensors.items()}


def unpack(tensors: Mapping[str, Tensor], net: nn.Module, optimiser: Adam) -> None:
    """Put back what :func:`pack` gave, into a network and an Adam made with the same settings.

    Raises:
        CheckpointError: tensors of another network.
    """
    weights = {n.removeprefix("weights/"): v for n, v in tensors.items() if n.startswith("weights/")}
    try:
        net.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(
            f"the generator's state does not fit this run ({' '.join(str(error).split()):.120}): "
            "use the settings it was made with"
        ) from None
    state: dict[int, dict[str, Tensor]] = {}
    for index, (name, _) in enumerate(net.named_parameters()):
        start = f"adam/{name}/"
        moments = {n.removeprefix(start): v.clone() for n, v in tensors.items() if n.startswith(start)}
        if moments:
            state[index] = moments
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": state, "param_groups": groups})
