"""From noisy sums to a normal law a class: post-processing of what was released, and of public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from datalens.models.frequencies import Frequencies

_LEAST_COUNT = 5.0
"""A class counts as having at least that many standard deviations of its noisy count, so that a rare one is not
divided by next to nothing."""


@dataclass(frozen=True)
class Centres:
    """The released means.

    Attributes:
        count_Y: float64, about how many records a class has; above 0.
        mean_YD: float64, the classes' means; numbers that drown in noise are drawn to 0.
    """

    count_Y: Tensor
    mean_YD: Tensor


def centres(sums_YS: Tensor, count_weight: float, noise_stddev: float) -> Centres:
    """Means from noisy sums of (an image's numbers, ``count_weight``).

    Args:
        sums_YS: float64 [Y, D + 1].
        count_weight: what a record adds to the last column.
        noise_stddev: on every sum.
    """
    least = max(1.0, _LEAST_COUNT * noise_stddev / count_weight)
    count_Y = (sums_YS[:, -1] / count_weight).clamp(min=least)
    mean_YD = sums_YS[:, :-1] / count_Y[:, None]
    noise_YD = (noise_stddev / count_Y[:, None]).expand_as(mean_YD)
    return Centres(count_Y, mean_YD * _signal(mean_YD.square(), 2 * noise_YD.square()))


def _signal(square: Tensor, noise: Tensor) -> Tensor:
    """The share of a noisy square that is no noise, 0 to 1."""
    return (1 - noise / square.clamp(min=1e-300)).clamp(min=0)


@dataclass(frozen=True)
class Law:
    """A normal law a class, as :meth:`~datalens.models.gaussian.GaussianImages.set_law` takes it.

    Attributes:
        mean_YD: means.
        factor_YKL: directions, each as long as the standard deviation along it; zeros past the last that is known.
        grain_YG: standard deviation of each number of a bin, besides.
    """

    mean_YD: Tensor
    factor_YKL: Tensor
    grain_YG: Tensor


def fit_law(
    centre: Centres,
    sums_YM: Tensor,
    basis: Frequencies,
    rank: int,
    energy_weight: float,
    noise_stddev: float,
) -> Law:
    """The law from noisy sums of (products of low numbers, energies of bins), all of residuals.

    A class's covariance has noise of the same size in every direction, a Gaussian random matrix: its eigenvalues
    fill a half circle up to ``noise sqrt(2 L)``, and one of the covariance comes out above that as ``l + n^2/(4 l)``
    with n the edge, or drowns. So those above the edge are kept and brought back. Directions keep their share of the
    class's energy at low frequencies, which was measured with a longer clip; what they do not explain is grain.

    Args:
        centre: of the first release.
        sums_YM: float64, as :func:`products` orders them.
        basis: of the images.
        rank: most directions a class, K.
        energy_weight: what energies were multiplied by.
        noise_stddev: on every sum.

    Source: eigenvalues of a symmetric matrix plus noise: Peche 2006; the estimate is the inverse of theirs.
    """
    num_low, classes = basis.num_low_coordinates, len(centre.count_Y)
    factor_YKL = torch.zeros(classes, rank, num_low, dtype=torch.float64)
    grain_YG = torch.zeros(classes, basis.num_bins, dtype=torch.float64)
    inside_G = torch.arange(basis.num_bins) % 2 == 1
    size_G = basis.bin_sizes.clamp(min=1)
    for label in range(classes):
        mean_M = sums_YM[label] / centre.count_Y[label]
        stddev = noise_stddev / float(centre.count_Y[label])
        covariance_LL = symmetric(mean_M[: -basis.num_bins], num_low)
        energy_G = (mean_M[-basis.num_bins :] / energy_weight).clamp(min=0)
        value_K, direction_LK = _above_noise(covariance_LL, stddev, rank)
        measured = max(float(covariance_LL.trace()), float(value_K.sum()))  # a trace may drown in noise
        longer = max(1.0, float(energy_G[inside_G].sum()) / measured) if measured > 0 else 1.0
        factor_KL = (value_K * longer).sqrt()[:, None] * direction_LK.T
        factor_YKL[label, : len(factor_KL)] = factor_KL
        explained_G = torch.zeros(basis.num_bins, dtype=torch.float64)
        explained_G.index_add_(0, basis.bin_D[basis.low_L], factor_KL.square().sum(0))
        grain_YG[label] = ((energy_G - explained_G).clamp(min=0) / size_G).sqrt()
    return Law(centre.mean_YD, factor_YKL, grain_YG)


def _above_noise(covariance_LL: Tensor, stddev: float, rank: int) -> tuple[Tensor, Tensor]:
    """(eigenvalues without what noise added, from the largest down; their directions [L, K])."""
    value_L, direction_LL = torch.linalg.eigh(covariance_LL)
    edge = stddev * math.sqrt(2 * len(value_L))
    known = torch.nonzero(value_L > max(edge, 0.0)).squeeze(1).flip(0)[:rank]
    value_K = value_L[known]
    return (value_K + (value_K.square() - edge**2).clamp(min=0).sqrt()) / 2, direction_LL[:, known]


def products(low_RL: Tensor) -> Tensor:
    """Products of all pairs of numbers, [R, L (L + 1) / 2], as long as the square of a row.

    Row by row of the upper triangle; pairs of two numbers count twice in the matrix, so they are sqrt(2) times as
    long here: the length of the row is that of the whole matrix.

    >>> products(torch.tensor([[3.0, 4.0]])).norm().item()
    25.0
    """
    row_P, column_P = torch.triu_indices(low_RL.shape[1], low_RL.shape[1])
    twice_P = torch.where(row_P == column_P, 1.0, math.sqrt(2.0)).to(low_RL)
    return low_RL[:, row_P] * low_RL[:, column_P] * twice_P


def symmetric(product_P: Tensor, num_low: int) -> Tensor:
    """The matrix [L, L] whose upper triangle :func:`products` gave."""
    row_P, column_P = torch.triu_indices(num_low, num_low)
    once_P = torch.where(row_P == column_P, 1.0, math.sqrt(0.5)).to(product_P)
    matrix_LL = torch.zeros(num_low, num_low, dtype=product_P.dtype)
    matrix_LL[row_P, column_P] = product_P * once_P
    matrix_LL[column_P, row_P] = product_P * once_P
    return matrix_LL
