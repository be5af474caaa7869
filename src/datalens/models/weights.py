"""Weights that others published, from a file: plain tensors and nothing else."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from datalens.errors import DataError

_SAFE_LOADER = (2, 6)


def read_weights(path: Path, how_to_get: str) -> dict[str, torch.Tensor]:
    """The tensors in a ``.safetensors`` file or, by PyTorch's reader of plain tensors, in any other.

    Args:
        path: the file.
        how_to_get: where the right one comes from, for the error message.

    Raises:
        DataError: a file of another kind, or a PyTorch whose reader runs what a file holds.
    """
    if path.suffix != ".safetensors" and _torch_version() < _SAFE_LOADER:
        raise DataError(
            f"{path}: PyTorch before 2.6 cannot read .pth safely; update it, or give .safetensors"
        )
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a foreign file may break its reader in any way
        reason = type(error).__name__
        raise DataError(f"{path}: not a file of plain weights ({reason}); {how_to_get}") from None
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise DataError(f"{path}: holds other things than weights; {how_to_get}")
    return state


def _torch_version() -> tuple[int, ...]:
    return tuple(int(part) for part in str(torch.__version__).split("+")[0].split(".")[:2])
