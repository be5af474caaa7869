"""G-PATE's compression: a public random projection of a teacher's gradient, and a vote for a bin on each coordinate.

Votes are private. The projection is public: it is drawn from public random numbers, never from data. No noise is
added and nothing is charged; see :mod:`datalens.mechanisms.gpate`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from datalens.errors import ConfigError

NO_ANSWER = -1
"""Stands for a bin where none was released."""


def draw_projection(dim: int, num_projected: int, rng: torch.Generator) -> Tensor:
    """``basis_DP``: normal entries of variance 1 / P, so that a projected vector keeps its length on average.

    Args:
        dim: coordinates of an image, D.
        num_projected: coordinates kept, P.
        rng: public.

    Raises:
        ConfigError: more coordinates than an image has, or none.
    """
    if not 1 <= num_projected <= dim:
        raise ConfigError(
            f"num_projected is {num_projected}, but an image has {dim} coordinates; choose from 1 to {dim}"
        )
    drawn = torch.randn(dim, num_projected, generator=rng, device=rng.device)
    return drawn / math.sqrt(num_projected)


def bin_votes(grad_TBD: Tensor, basis_DP: Tensor, clip_bound: float, num_bins: int) -> Tensor:
    """One vote of each teacher for each image and projected coordinate: the bin that the coordinate falls into.

    A teacher's gradient for an image is divided by its L2 norm (teachers give gradients up to a scale of their
    own), projected, clipped to ``[-clip_bound, clip_bound]`` and put into one of ``num_bins`` bins of equal
    width. A gradient that is not finite, or zero everywhere, votes for nothing.

    Args:
        grad_TBD: private, floating point [teachers, images, coordinates].
        basis_DP: public, from :func:`draw_projection`.
        clip_bound: positive and finite; a projected coordinate of a unit vector is about ``1 / sqrt(P)``.
        num_bins: K, 2 or more.

    Returns:
        ``vote_TBPK`` int8 in {0, 1}, on the gradient's device; private.

    Guarantee:
        Along K every vote is a unit vector or zero, whatever the gradient, and it depends on that teacher's
        gradient alone. So another gradient of one teacher moves the sum over teachers by at most ``sqrt(2 * B *
        P)`` in L2 norm.

    Raises:
        ConfigError: a setting out of range.

    Source: Long et al. 2021, Algorithm 2 (without the normalisation).

    >>> bin_votes(torch.tensor([[[3.0, -4.0]]]), torch.eye(2), 1.0, 4)[0, 0].tolist()
    [[0, 0, 0, 1], [1, 0, 0, 0]]
    """
    check_bins(clip_bound, num_bins)
    grad_TBD = grad_TBD.detach().to(torch.float32)
    largest_TB1 = grad_TBD.abs().amax(2, keepdim=True)
    speaks_TB1 = torch.isfinite(largest_TB1) & (largest_TB1 > 0)
    scaled_TBD = torch.where(speaks_TB1, grad_TBD / largest_TB1, 0.0)  # so that no square over- or underflows
    norm_TB1 = scaled_TBD.norm(dim=2, keepdim=True).clamp(min=1.0)  # 1 or more where it speaks
    share_TBP = (scaled_TBD / norm_TB1 @ basis_DP).clamp(-clip_bound, clip_bound) / (2 * clip_bound) + 0.5
    bin_TBP = (share_TBP * num_bins).floor().clamp(0, num_bins - 1).to(torch.int64)
    vote_TBPK = torch.nn.functional.one_hot(bin_TBP, num_bins).to(torch.int8)
    return vote_TBPK * speaks_TB1[..., None]


def decode_bins(bin_BP: Tensor, basis_DP: Tensor, clip_bound: float, num_bins: int) -> Tensor:
    """``direction_BD`` from the bins that were released: each bin's centre, projected back. Public in, public out.

    Args:
        bin_BP: int64 in 0..K-1, or :data:`NO_ANSWER`, which counts as 0.
        basis_DP: the projection that was voted under.
        clip_bound: as voted with.
        num_bins: K.

    >>> decode_bins(torch.tensor([[3, -1]]), torch.eye(2), 1.0, 4).tolist()
    [[0.75, 0.0]]
    """
    check_bins(clip_bound, num_bins)
    centre_BP = ((bin_BP + 0.5) / num_bins * 2 - 1) * clip_bound
    return torch.where(bin_BP == NO_ANSWER, 0.0, centre_BP).to(basis_DP) @ basis_DP.T


def check_bins(clip_bound: float, num_bins: int) -> None:
    """Refuse bins that have no meaning."""
    if not (math.isfinite(clip_bound) and clip_bound > 0):
        raise ConfigError(
            f"clip_bound is {clip_bound}, but must be positive and finite; choose about 1 / sqrt(num_projected)"
        )
    if isinstance(num_bins, bool) or not isinstance(num_bins, int) or num_bins < 2:
        raise ConfigError(f"num_bins is {num_bins}, but a vote needs a choice; choose a whole number from 2")
