"""Whether a device can compute here, found out by asking it."""

from __future__ import annotations

import torch

from datalens.errors import ConfigError


def require_device(name: str) -> None:
    """Refuse a device that cannot compute here.

    Raises:
        ConfigError: says why it cannot.
    """
    reason = why_not(name)
    if reason is not None:
        raise ConfigError(f"device {name}: cannot be used here ({reason:.100}); use cpu")


def why_not(device: str) -> str | None:
    """Why PyTorch cannot compute on ``device`` on this machine, in its own words; None where it can.

    >>> why_not("cpu") is None
    True
    """
    try:
        torch.ones(1, device=device).item()
    except (
        RuntimeError,
        AssertionError,
        NotImplementedError,
        ValueError,
    ) as error:  # PyTorch raises all of them
        return " ".join(str(error).split()).split(". ")[0] or type(error).__name__
    return None
