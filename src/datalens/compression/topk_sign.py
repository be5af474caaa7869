"""TopkStoSignGrad (Algorithm 2): a teacher's gradient becomes at most k votes of +1 or -1 for each image.

Everything here is private: a vote says how one teacher, and so the records it holds, would move one image.
No noise is added and nothing is charged; see :mod:`datalens.mechanisms.topagg`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from datalens.errors import ConfigError

BLOCK_ELEMENTS = 250_000
"""Gradient entries handled at once on a CPU, so that all temporaries stay in the processor's cache."""

_DRAWS_A_WORD = 4
_HALF_RANGE = float(2**15)


class SignVotes(NamedTuple):
    """The votes of some teachers, and which of their gradients could not be used.

    Attributes:
        vote_TBD: int8 in {-1, 0, 1}; private. At most ``top_k`` entries of a row are not zero.
        failed_TB: bool; private. True where a gradient held a NaN or an infinity; its votes are all zero.
    """

    vote_TBD: Tensor
    failed_TB: Tensor


def topk_sign(grad_TBD: Tensor, top_k: int, clip_bound: float, rng: torch.Generator) -> SignVotes:
    """Compress each teacher's gradient for each image to signs on its ``top_k`` largest coordinates.

    Keep the ``top_k`` largest ``|g|`` (ties go to the lowest index), clip to ``[-clip_bound, clip_bound]``,
    divide by the largest magnitude that remains, and turn each kept ``g`` into +1 with probability
    ``(1 + g) / 2``, else -1. A kept coordinate that is exactly zero votes 0 instead of flipping a fair coin:
    the coin would be as unbiased, but only add variance. A gradient with a NaN or an infinity votes 0
    everywhere, so a bad teacher neither stops the run nor spoils the sum.

    Args:
        grad_TBD: floating point, shape [teachers, images, coordinates]; computed with in float32.
        top_k: coordinates kept, from 1 to D.
        clip_bound: positive and finite, in the unit of the gradient; infinity is refused.
        rng: source of the stochastic signs, on the gradient's device. Signs are resolved to 2**-16. On a
            CPU the votes do not depend on how teachers are divided into consecutive calls.

    Returns:
        Votes as int8 on the gradient's device, with the mask of failed gradients.

    Guarantee:
        Every row of D votes has at most ``top_k`` entries of -1 or +1 and zeros elsewhere, whatever the
        gradient. So replacing one teacher moves the sum over teachers by at most ``2 * sqrt(top_k)`` in L2
        norm for each image, and adding or removing one by at most ``sqrt(top_k)``.

    Raises:
        ConfigError: ``top_k`` or ``clip_bound`` out of range, or a gradient that is not [T, B, D].

    Source: Wang et al. 2021, Algorithm 2.

    >>> grad = torch.tensor([[[0.5, -4.0, 0.0, 2.0]]])
    >>> topk_sign(grad, top_k=2, clip_bound=1e-5, rng=torch.Generator().manual_seed(0)).vote_TBD.tolist()
    [[[0, -1, 0, 1]]]
    """
    check_compression(grad_TBD, top_k, clip_bound)
    num_teachers, num_images, dim = grad_TBD.shape
    if grad_TBD.device.type == "cpu":
        block = max(1, BLOCK_ELEMENTS // max(1, num_images * dim))
    else:
        block = max(1, num_teachers)
    vote_TBD = torch.empty(grad_TBD.shape, dtype=torch.int8, device=grad_TBD.device)
    failed_TB = torch.empty((num_teachers, num_images), dtype=torch.bool, device=grad_TBD.device)
    for start in range(0, num_teachers, block):
        part = slice(start, start + block)
        uniform_TBD = _draw_signed_uniforms(grad_TBD[part], rng)
        vote_TBD[part], failed_TB[part] = signs_from_uniforms(grad_TBD[part], top_k, clip_bound, uniform_TBD)
    return SignVotes(vote_TBD, failed_TB)


def signs_from_uniforms(
    grad_TBD: Tensor, top_k: int, clip_bound: float, uniform_TBD: Tensor
) -> tuple[Tensor, Tensor]:
    """The deterministic part of :func:`topk_sign`: votes given one draw from [-1, 1) for each coordinate.

    A kept, clipped, normalised ``g`` becomes +1 where its draw is below ``g``: probability ``(1 + g) / 2``.
    """
    grad = grad_TBD.detach().to(torch.float32)
    magnitude = grad.abs()
    largest = magnitude.amax(-1, keepdim=True)
    failed = ~torch.isfinite(largest)  # amax hands on a NaN
    kept = keep_largest(magnitude, top_k) & ~failed
    scale = largest.clamp(max=clip_bound)  # division, not a reciprocal: 1 / denormal overflows
    normalised = grad.clamp(-clip_bound, clip_bound).div_(scale)
    positive = uniform_TBD < normalised
    vote = positive.to(torch.int8).mul_(2).sub_(1).mul_(kept)
    return vote, failed.squeeze(-1)


def keep_largest(magnitude: Tensor, top_k: int) -> Tensor:
    """Mask of the ``top_k`` largest entries along the last axis, zeros left out, ties to the lowest index.

    Args:
        magnitude: float32, not negative. Rows with a NaN get an arbitrary mask.
        top_k: from 1 to the length of the last axis.

    Returns:
        A bool mask with min(``top_k``, number of non-zero entries) True entries in every row.

    >>> keep_largest(torch.tensor([1.0, 3.0, 3.0, 3.0]), 2).tolist()
    [False, True, True, False]
    """
    bits = magnitude.contiguous().view(torch.int32)  # ordered as the floats are, whatever flushes denormals
    cut = _kth_largest(bits, top_k).clamp_(min=1)
    if bits.device.type != "cpu":  # asking whether there are ties would wait for the device
        return _first_of_ties(bits, cut, top_k)
    kept = bits >= cut
    crowded = kept.sum(-1, dtype=torch.int32) > top_k
    if bool(crowded.any()):  # several entries equal the k-th largest
        kept[crowded] = _first_of_ties(bits[crowded], cut[crowded], top_k)
    return kept


def check_compression(grad_TBD: Tensor, top_k: int, clip_bound: float) -> None:
    """Refuse shapes and settings that have no meaning; looks at no gradient value."""
    if grad_TBD.ndim != 3 or not grad_TBD.is_floating_point():
        raise ConfigError(
            f"gradients of type {grad_TBD.dtype} and shape {tuple(grad_TBD.shape)} cannot be compressed; "
            "pass floating-point gradients of shape [teachers, images, coordinates]"
        )
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= grad_TBD.shape[-1]:
        raise ConfigError(
            f"top_k is {top_k}, but an image has {grad_TBD.shape[-1]} coordinates; "
            f"choose a whole number from 1 to {grad_TBD.shape[-1]}"
        )
    if not (math.isfinite(clip_bound) and clip_bound > 0):
        raise ConfigError(f"clip_bound is {clip_bound}, but must be positive and finite; the paper uses 1e-5")


def _kth_largest(keys: Tensor, top_k: int) -> Tensor:
    """The ``top_k``-th largest entry along the last axis, kept as an axis of length 1."""
    if keys.device.type == "cpu":  # NumPy's vectorised selection is some six times faster than torch.topk
        place = keys.shape[-1] - top_k
        return torch.from_numpy(np.partition(keys.numpy(), place, axis=-1)[..., place, None].copy())
    return keys.topk(top_k, dim=-1, sorted=False).values.amin(-1, keepdim=True)


def _first_of_ties(bits: Tensor, cut: Tensor, top_k: int) -> Tensor:
    """Mask of what lies above ``cut``, and of as many equal to it, lowest index first, as make ``top_k``."""
    above, tied = bits > cut, bits == cut
    room = top_k - above.sum(-1, keepdim=True)
    return above | (tied & (tied.cumsum(-1) <= room))


def _draw_signed_uniforms(like_TBD: Tensor, rng: torch.Generator) -> Tensor:
    """One even draw from the multiples of 2**-15 in [-1, 1) for each coordinate, four to a 64-bit word."""
    num_teachers, num_images, dim = like_TBD.shape
    a_teacher = num_images * dim
    words = torch.empty(
        (num_teachers, -(-a_teacher // _DRAWS_A_WORD)), dtype=torch.int64, device=like_TBD.device
    )
    words.random_(-(2**63), None, generator=rng)
    draws = words.view(torch.int16)[:, :a_teacher].reshape(like_TBD.shape)
    return draws.to(torch.float32).div_(_HALF_RANGE)
