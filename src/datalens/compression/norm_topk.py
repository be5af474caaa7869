"""NormTopK (Algorithm 4): of each record's gradient, the largest coordinates that hold a share of its squared norm.

Which coordinates are kept does not change when a row is multiplied by a number, so clipping may come before or after.
Everything here is private: what is kept says something about the record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from datalens.compression.topk_sign import keep_largest
from datalens.errors import ConfigError

_FIRST_SHARE = 1 / 8
_SMALLEST = 2.0**-149  # the smallest float32 above 0
_MARGIN = 1 + 2.0**-20
_LOST_SQUARE = 2.0**-126  # a square below this may have been rounded to 0
_COLUMNS_AT_ONCE = 4096
_PLACES = np.arange(2**16, dtype=np.int32)  # as the bits of floats, numbers below 2^-133
_TINY = 2.0**-100  # more than any row of those


class Kept(NamedTuple):
    """Which coordinates of each row stay, and how long rows are before and after.

    Attributes:
        mask_RD: float32, 1 where a coordinate stays and 0 elsewhere; private.
        kept_R: float64, sum of the squares that stay.
        total_R: float64, sum of all squares of a row; 0 for a failed one.
        failed_R: bool, True where a row holds a NaN or an infinity or the sum of its squares is none; nothing stays.
    """

    mask_RD: Tensor
    kept_R: Tensor
    total_R: Tensor
    failed_R: Tensor


Selection = Callable[[Tensor, float], Kept]
"""From squares [R, D], float32, which it may write over, and ``keep`` to what stays."""


def norm_topk(grad_RD: Tensor, keep: float) -> Tensor:
    """The rows with all but their largest coordinates set to zero, as Algorithm 4's function NormTopK has it.

    Coordinates are taken from the largest square down, ties from the lowest index up, as long as the sum of the
    squares taken is at most ``keep`` times the sum of all. Where the largest one alone is more than that, nothing is
    taken: the row becomes zeros. The result, put in again, loses coordinates again: its own norm is the new measure.

    Args:
        grad_RD: floating point, shape [records, coordinates]; squares are taken in float32.
        keep: share of the squared norm, above 0 and at most 1. 1 keeps everything.

    Returns:
        Rows of the same shape and type. Rows with a NaN or an infinity, or with squares that overflow, are zeros.

    Guarantee:
        A row of the result is a function of that row alone. In real numbers its squared norm is at most ``keep``
        times that of the row given; :func:`clip_factor` makes a bound of it that rounding cannot break.

    Raises:
        ConfigError: ``keep`` outside (0, 1], or gradients that are not [R, D].

    Source: Wang et al. 2021, Algorithm 4, lines 2 to 8.

    >>> norm_topk(torch.tensor([[3.0, -4.0, 1.0, 2.0]]), keep=0.9).tolist()
    [[3.0, -4.0, 0.0, 0.0]]
    """
    return _rows(grad_RD, keep, by_norm)


def dimension_topk(grad_RD: Tensor, keep: float) -> Tensor:
    """The rows with all but a share of their coordinates set to zero: the dimension-based variant of Table 9.

    Takes the ``max(1, floor(keep * D))`` largest squares, ties from the lowest index up.

    Args:
        grad_RD: as in :func:`norm_topk`.
        keep: share of the coordinates, above 0 and at most 1. 1 keeps everything.

    Guarantee:
        A row of the result is a function of that row alone, and no longer than it. No smaller bound holds: a gradient
        with few coordinates other than zero is kept whole.

    Raises:
        ConfigError: as in :func:`norm_topk`.

    >>> dimension_topk(torch.tensor([[3.0, -4.0, 1.0, 2.0]]), keep=0.25).tolist()
    [[0.0, -4.0, 0.0, 0.0]]
    """
    return _rows(grad_RD, keep, by_dimension)


def by_norm(square_RD: Tensor, keep: float) -> Kept:
    """What :func:`norm_topk` keeps; a :data:`Selection`.

    No full sort: the largest eighth is parted from the rest and sorted; rows that need more take twice as many, and
    rows that are almost nothing are sorted whole. Sums are taken in float64, from the largest square down.
    """
    total_R, failed_R = _totals(square_RD)
    if keep == 1:
        return _everything(square_RD, total_R, failed_R)
    dim = square_RD.shape[1]
    cut = _cut(square_RD, keep * total_R, max(1, math.ceil(dim * _FIRST_SHARE)))
    _mend(cut, (1 - keep) * total_R < _TINY, square_RD, keep * total_R, dim)
    crowded_RD = square_RD[cut.tied_R]
    mask_RD = square_RD.ge_(cut.smallest_R[:, None])
    if len(crowded_RD):
        row_P, place_P = _last_of_ties(crowded_RD, cut.smallest_R[cut.tied_R], cut.room_R[cut.tied_R])
        mask_RD[cut.tied_R.nonzero().squeeze(1)[row_P], place_P] = 0.0
    return Kept(mask_RD, cut.sum_R, total_R, failed_R)


def by_dimension(square_RD: Tensor, keep: float) -> Kept:
    """What :func:`dimension_topk` keeps; a :data:`Selection`."""
    total_R, failed_R = _totals(square_RD)
    if keep == 1:
        return _everything(square_RD, total_R, failed_R)
    stays_RD = keep_largest(square_RD, max(1, math.floor(keep * square_RD.shape[1])))
    kept_R = _sums(square_RD.mul_(stays_RD))
    return Kept(square_RD.copy_(stays_RD), kept_R, total_R, failed_R)


def within_parts(square_RD: Tensor, keep: float, sizes: Sequence[int], selection: Selection) -> Kept:
    """What a selection keeps of each part of a row by itself, as of the parameters of a network.

    A part whose numbers are small beside another's is heard all the same. If every part keeps at most ``keep`` of its
    own squared norm, the row keeps at most ``keep`` of its own.

    Args:
        square_RD: squares [R, D], float32.
        keep: as for the selection.
        sizes: coordinates of each part, in order; they add up to D.
        selection: what to apply to a part.

    Returns:
        Of whole rows; one fails if any part does.
    """
    parts = [selection(part.contiguous(), keep) for part in square_RD.split(list(sizes), 1)]
    failed_R = torch.stack([part.failed_R for part in parts]).any(0)
    mask_RD = torch.cat([part.mask_RD for part in parts], 1)
    mask_RD[failed_R] = 0.0
    kept_R, total_R = (
        torch.stack(sums).sum(0).masked_fill(failed_R, 0.0)
        for sums in ([part.kept_R for part in parts], [part.total_R for part in parts])
    )
    return Kept(mask_RD, kept_R, total_R, failed_R)


def clip_factor(kept: Kept, max_grad_norm: float, norm_bound: float) -> Tensor:
    """What to multiply each row by: float32 [R], so that it is clipped, and then no longer than ``norm_bound``.

    Args:
        kept: of a selection.
        max_grad_norm: C, to which the whole row is clipped; 1e-12 or more.
        norm_bound: the longest that what stays of a row may be; at most C, and 1e-12 or more.

    Guarantee:
        The kept coordinates times the factor have an L2 norm of at most ``norm_bound``, rounding included: of the
        squares, of their sum, of the factor and of the products. Together these change a length by less than 2^-21
        of it, and squares too small for float32 by less than 2^-126 each; the lengths that the bound is divided by
        are taken longer than both.
    """
    lost = _LOST_SQUARE * kept.mask_RD.shape[1]
    length_R = (kept.total_R * _MARGIN + lost).sqrt()
    kept_length_R = (kept.kept_R * _MARGIN + lost).sqrt()
    factor_R = torch.minimum(max_grad_norm / length_R, norm_bound / kept_length_R)
    return factor_R.clamp_(max=1).to(torch.float32)


def check_keep(keep: float) -> float:
    """``keep`` as a float, or a refusal of one outside (0, 1]."""
    if isinstance(keep, bool) or not isinstance(keep, int | float) or not 0 < keep <= 1:
        raise ConfigError(
            f"keep is {keep}, but must be above 0 and at most 1; the paper uses 0.6 to 0.8, 1 keeps all"
        )
    return float(keep)


def _rows(grad_RD: Tensor, keep: float, select: Selection) -> Tensor:
    keep = check_keep(keep)
    if grad_RD.ndim != 2 or not grad_RD.is_floating_point():
        raise ConfigError(
            f"gradients of type {grad_RD.dtype} and shape {tuple(grad_RD.shape)} cannot be compressed; pass "
            "floating-point gradients of shape [records, coordinates]"
        )
    kept = select(grad_RD.detach().to(torch.float32).square(), keep)
    return torch.where(kept.mask_RD > 0, grad_RD, 0.0)


def _totals(square_RD: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of the rows, and which rows failed; these become zeros, in place."""
    total_R = _sums(square_RD)
    failed_R = ~torch.isfinite(total_R)
    if bool(failed_R.any()):
        square_RD[failed_R] = 0.0
        total_R = total_R.masked_fill(failed_R, 0.0)
    return total_R, failed_R


def _sums(square_RD: Tensor) -> Tensor:
    """Of the rows, float64 [R]. A sum that changes the type on its way takes ten times as long."""
    parts = square_RD.split(_COLUMNS_AT_ONCE, 1)
    return torch.stack([part_RD.to(torch.float64).sum(1) for part_RD in parts]).sum(0)


def _everything(square_RD: Tensor, total_R: Tensor, failed_R: Tensor) -> Kept:
    return Kept(square_RD.copy_(~failed_R[:, None]), total_R, total_R, failed_R)


class _Cut(NamedTuple):
    """Where each row is cut.

    Attributes:
        smallest_R: square that is taken; infinite where none is.
        room_R: how many squares equal to it are taken.
        sum_R: of all that are taken, float64.
        tied_R: whether a square that is not taken equals the smallest that is.
    """

    smallest_R: Tensor
    room_R: Tensor
    sum_R: Tensor
    tied_R: Tensor


def _cut(square_RD: Tensor, target_R: Tensor, count: int) -> _Cut:
    """Where the sum of a row's largest squares reaches ``target_R``; looks at the ``count`` largest first."""
    largest_RK = _largest(square_RD, count)
    sums_RK = largest_RK.cumsum(1, dtype=torch.float64)
    number_R = (sums_RK <= target_R[:, None]).sum(1)
    last_R1 = (number_R - 1).clamp_(min=0)[:, None]
    next_R = largest_RK.gather(1, number_R.clamp(max=count - 1)[:, None]).squeeze(1)
    smallest_R = (
        largest_RK.gather(1, last_R1).squeeze(1).clamp_(min=_SMALLEST).masked_fill_(number_R == 0, math.inf)
    )
    sum_R = sums_RK.gather(1, last_R1).squeeze(1).masked_fill_(number_R == 0, 0.0)
    room_R = number_R - (largest_RK > smallest_R[:, None]).sum(1)
    found = _Cut(smallest_R, room_R, sum_R, (next_R == smallest_R) & (number_R < count))
    if count < square_RD.shape[1]:
        unsure_R = (number_R == count) & (target_R > 0)
        _mend(found, unsure_R, square_RD, target_R, min(2 * count, square_RD.shape[1]))
    return found


def _mend(found: _Cut, again_R: Tensor, square_RD: Tensor, target_R: Tensor, count: int) -> None:
    """Cut some rows again, in place, with a look at more of their squares."""
    if bool(again_R.any()):
        for part_R, better_R in zip(found, _cut(square_RD[again_R], target_R[again_R], count), strict=True):
            part_R[again_R] = better_R


def _last_of_ties(square_RD: Tensor, smallest_R: Tensor, room_R: Tensor) -> tuple[Tensor, Tensor]:
    """(rows, places) of the squares that equal a row's ``smallest``, but for the first ``room`` of them."""
    row_P, place_P = (square_RD == smallest_R[:, None]).nonzero(as_tuple=True)
    ties_R = row_P.bincount(minlength=len(square_RD))
    before_R = ties_R.cumsum(0) - ties_R
    late_P = torch.arange(len(row_P), device=row_P.device) - before_R[row_P] >= room_R[row_P]
    return row_P[late_P], place_P[late_P]


def _largest(square_RD: Tensor, count: int) -> Tensor:
    """The ``count`` largest entries of each row in falling order.

    On a CPU by NumPy's vectorised selection on the bits, which are ordered as floats are. It takes twenty times as
    long where many entries are equal, as the zeros behind a ReLU are; so these are made different, as numbers below
    2^-133, unless all entries are asked for.
    """
    if square_RD.device.type != "cpu":
        return square_RD.topk(count, dim=1).values
    bits_RD = square_RD.numpy().view(np.int32)
    dim = bits_RD.shape[1]
    if count < dim:
        distinct_RD = np.maximum(bits_RD, np.resize(_PLACES, dim))
        bits_RD = np.partition(distinct_RD, dim - count, axis=1)[:, dim - count :]
    return torch.from_numpy(np.sort(bits_RD, axis=1)[:, ::-1].copy().view(np.float32))
