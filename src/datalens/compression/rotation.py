"""A public random rotation, the same for all: random signs, then a Hadamard matrix over its root (D2P-Fed).

It spreads what a gradient says evenly over its coordinates, so that few of them are clipped and all use the levels
of a quantiser. It is fixed by the number of coordinates alone, so it says nothing of anybody.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor


def padded_dim(dim: int) -> int:
    """Coordinates after padding: the power of two that is no smaller.

    >>> padded_dim(784), padded_dim(1024)
    (1024, 1024)
    """
    return 1 << (dim - 1).bit_length()


def rotate(x: Tensor) -> Tensor:
    """Pad the last axis with zeros to a power of two P, flip public signs, multiply by H / sqrt(P).

    Args:
        x: floating point [..., D].

    Returns:
        [..., P], of the same norm. A row with a NaN or an infinity has no finite coordinate left.

    >>> rotate(torch.eye(3)).square().sum(-1).tolist()
    [1.0, 1.0, 1.0]
    """
    width = padded_dim(x.shape[-1])
    padded = torch.nn.functional.pad(x, (0, width - x.shape[-1]))
    return _hadamard(padded * _signs(width, x)) / math.sqrt(width)


def rotate_back(x: Tensor, dim: int) -> Tensor:
    """The inverse of :func:`rotate`, cut to the first ``dim`` coordinates.

    Args:
        x: floating point [..., P].
        dim: coordinates before padding, D.

    >>> rotate_back(rotate(torch.tensor([3.0, -1.0, 2.0, 0.5])), 4).tolist()
    [3.0, -1.0, 2.0, 0.5]
    """
    width = x.shape[-1]
    return (_hadamard(x) * _signs(width, x))[..., :dim] / math.sqrt(width)


def _hadamard(x: Tensor) -> Tensor:
    """The last axis times Sylvester's matrix of +1 and -1, which is its own inverse up to the factor P."""
    shape, half = x.shape, 1
    while half < shape[-1]:
        pairs = x.reshape(*shape[:-1], -1, 2, half)
        upper, lower = pairs[..., 0, :], pairs[..., 1, :]
        x = torch.stack((upper + lower, upper - lower), -2).reshape(shape)
        half *= 2
    return x


def _signs(width: int, like: Tensor) -> Tensor:
    return torch.from_numpy(public_signs(width).copy()).to(like.device, like.dtype)


@lru_cache(maxsize=8)
def public_signs(width: int) -> np.ndarray:
    """The signs of the rotation of ``width`` coordinates: int8 in {-1, 1}, bits of SHAKE-256 of a public name."""
    digest = hashlib.shake_256(f"datalens rotation {width}".encode()).digest(-(-width // 8))
    return (2 * np.unpackbits(np.frombuffer(digest, np.uint8))[:width].astype(np.int8)) - 1
