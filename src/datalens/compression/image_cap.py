"""A teacher speaks of only so many images of a step: top-k over images, as top-k over coordinates."""

from __future__ import annotations

import torch
from torch import Tensor


def keep_images(grad_TBD: Tensor, most: int) -> Tensor:
    """Zero all but the ``most`` images with the largest gradient norm, for each teacher.

    With it one teacher's votes are at most ``most * top_k``, so a teacher that changes moves the joint tally of
    all images by at most ``2 * sqrt(most * top_k)`` in L2 norm, however many images a step has.

    Args:
        grad_TBD: private gradients; rows with a NaN or infinity rank last.
        most: images each teacher may speak of, 1 or more.

    Returns:
        The gradients, all but the kept rows zero; the very tensor where nothing had to go.

    >>> keep_images(torch.tensor([[[1.0], [3.0], [2.0]]]), 2).flatten().tolist()
    [0.0, 3.0, 2.0]
    """
    if grad_TBD.shape[1] <= most:
        return grad_TBD
    norm_TB = grad_TBD.square().sum(2).nan_to_num(nan=-1.0, posinf=-1.0)
    order_TB = norm_TB.sort(dim=1, descending=True, stable=True).indices
    dropped_TB = torch.ones_like(norm_TB, dtype=torch.bool).scatter_(1, order_TB[:, :most], False)
    return grad_TBD.masked_fill(dropped_TB[:, :, None], 0.0)
