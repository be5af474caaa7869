"""Stochastic rounding to k levels after a rotation (Algorithm 5), as one integer vote a rotated coordinate.

Everything here is private, and nothing is charged; see :mod:`datalens.mechanisms.d2p_fed`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from datalens.compression.rotation import padded_dim, rotate
from datalens.compression.topk_sign import BLOCK_ELEMENTS, SignVotes, check_compression
from datalens.errors import ConfigError

MAX_LEVELS = 128
"""A vote of at most 127 fits a byte."""


def stochastic_levels(grad_TBD: Tensor, levels: int, clip_bound: float, rng: torch.Generator) -> SignVotes:
    """Rotate each gradient, clip it, and round it at random to one of ``levels`` even steps of [-c, c].

    Level r of 0, ..., k - 1 stands for ``c (2r / (k - 1) - 1)`` and is sent as the integer ``2r - (k - 1)``. A
    coordinate between two levels takes the upper one with the chance that makes it right on average, so the mean
    of a vote is ``(k - 1) g / c`` for the rotated and clipped g. A gradient that is not finite votes 0 everywhere.

    Args:
        grad_TBD: floating point [teachers, images, coordinates]; computed with in float32.
        levels: k, from 2 to 128.
        clip_bound: c, positive and finite, of a rotated coordinate.
        rng: source of the rounding, on the gradient's device. On a CPU the votes do not depend on how teachers
            are divided into consecutive calls.

    Returns:
        Votes as int8 ``[T, B, P]`` with P the padded number of coordinates, each in ``-(k-1), ..., k-1``, and the
        mask of gradients that failed.

    Guarantee:
        Each of the P coordinates, the padded ones too, is at most ``k - 1`` in magnitude whatever the gradient,
        so replacing one teacher moves the sum by at most ``2 (k - 1) sqrt(P)`` in L2 norm for each image.

    Raises:
        ConfigError: ``levels`` or ``clip_bound`` out of range, or a gradient that is not [T, B, D].

    Source: Wang et al. 2021, Algorithm 5, with the quantiser's input and levels put right: ``docs/baselines.md``.

    >>> grad = torch.tensor([[[5.0, 0.0]]])
    >>> stochastic_levels(grad, 4, 1e-5, torch.Generator().manual_seed(0)).vote_TBD.abs().tolist()
    [[[3, 3]]]
    """
    check_compression(grad_TBD, 1, clip_bound)
    if isinstance(levels, bool) or not isinstance(levels, int) or not 2 <= levels <= MAX_LEVELS:
        raise ConfigError(f"levels is {levels}: choose a whole number from 2 to {MAX_LEVELS}")
    num_teachers, num_images, dim = grad_TBD.shape
    width = padded_dim(dim)
    on_cpu = grad_TBD.device.type == "cpu"
    block = max(1, BLOCK_ELEMENTS // max(1, num_images * width)) if on_cpu else max(1, num_teachers)
    vote_TBD = torch.empty((num_teachers, num_images, width), dtype=torch.int8, device=grad_TBD.device)
    failed_TB = torch.empty((num_teachers, num_images), dtype=torch.bool, device=grad_TBD.device)
    for start in range(0, num_teachers, block):
        part = slice(start, start + block)
        rotated = rotate(grad_TBD[part].detach().to(torch.float32))
        uniform = torch.rand(rotated.shape, generator=rng, device=rotated.device)
        vote_TBD[part], failed_TB[part] = levels_from_uniforms(rotated, levels, clip_bound, uniform)
    return SignVotes(vote_TBD, failed_TB)


def levels_from_uniforms(
    rotated_TBD: Tensor, levels: int, clip_bound: float, uniform_TBD: Tensor
) -> tuple[Tensor, Tensor]:
    """The deterministic part: votes given one draw from [0, 1) for each rotated coordinate."""
    failed = ~torch.isfinite(rotated_TBD.abs().amax(-1, keepdim=True))
    share = rotated_TBD.clamp(-clip_bound, clip_bound).div(clip_bound)
    place = (share + 1) * ((levels - 1) / 2)
    lower = place.floor()
    level = (lower + (uniform_TBD < place - lower)).clamp(0, levels - 1)
    vote = torch.where(failed, 0.0, 2 * level - (levels - 1))
    return vote.to(torch.int8), failed.squeeze(-1)
