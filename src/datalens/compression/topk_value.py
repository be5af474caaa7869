"""Top-k with the values kept, in fixed point: what Algorithm 2 would be without its quantisation to signs."""

from __future__ import annotations

import torch
from torch import Tensor

from datalens.compression.topk_sign import SignVotes, check_compression, keep_largest


def topk_value(grad_TBD: Tensor, top_k: int, clip_bound: float, unit: int) -> SignVotes:
    """Keep the ``top_k`` largest ``|g|``, clip, divide by the largest that remains, round to ``1 / unit``.

    Args:
        grad_TBD: floating point [teachers, images, coordinates].
        top_k: coordinates kept, from 1 to D.
        clip_bound: positive and finite.
        unit: the integer that stands for 1, from 1 to 127.

    Returns:
        Votes as int8 in -unit..unit, and the mask of gradients that were not finite, which vote 0.

    Guarantee:
        Every row has at most ``top_k`` entries other than 0, each of magnitude at most ``unit``; so its L2 norm is
        at most ``unit * sqrt(top_k)``, rounding included, and replacing one teacher moves the sum over teachers
        by at most twice that.

    Raises:
        ConfigError: a setting out of range.

    >>> grad = torch.tensor([[[0.5, -1.0, 0.1, 0.0]]])
    >>> topk_value(grad, top_k=2, clip_bound=1.0, unit=16).vote_TBD.tolist()
    [[[8, -16, 0, 0]]]
    """
    check_compression(grad_TBD, top_k, clip_bound)
    if not 1 <= unit <= 127:
        raise ValueError(f"unit is {unit}: an int8 vote holds 1 to 127")
    grad = grad_TBD.detach().to(torch.float32)
    magnitude = grad.abs()
    largest = magnitude.amax(-1, keepdim=True)
    failed = ~torch.isfinite(largest)
    kept = keep_largest(magnitude, top_k) & ~failed
    scale = largest.clamp(max=clip_bound)
    normalised = grad.clamp(-clip_bound, clip_bound).div_(scale)
    value = torch.where(kept, normalised, 0.0).mul_(unit).round_().clamp_(-unit, unit)
    return SignVotes(value.to(torch.int8), failed.squeeze(-1))
