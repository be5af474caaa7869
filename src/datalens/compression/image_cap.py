"""A teacher speaks of only so many images of a step: top-k over images, as top-k over coordinates."""

from __future__ import annotations

import torch
from torch import Tensor


def strongest_images(grad_TBD: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The ``most`` images with the largest gradient norm of each teacher, and which they are.

    A teacher that votes on these alone casts at most ``most * top_k`` votes in a step, so a teacher that changes
    moves the joint tally of all images by at most ``2 * sqrt(most * top_k)`` in L2 norm, however many images a
    step has. The shape of the result depends on no value.

    Args:
        grad_TBD: private gradients; an image with a NaN or infinity ranks last.
        most: images each teacher may speak of, from 1 to B.

    Returns:
        ``grad_TSD`` and ``image_TS`` (int64, each teacher's images in ascending order), S = ``most``.

    >>> import torch
    >>> grad, image = strongest_images(torch.tensor([[[1.0], [3.0], [2.0]]]), 2)
    >>> grad.flatten().tolist(), image.tolist()
    ([3.0, 2.0], [[1, 2]])
    """
    norm_TB = grad_TBD.square().sum(2).nan_to_num(nan=-1.0, posinf=-1.0)
    image_TS = norm_TB.sort(dim=1, descending=True, stable=True).indices[:, :most].sort(dim=1).values
    num_teachers, num_images, dim = grad_TBD.shape
    first_T = torch.arange(0, num_teachers * num_images, num_images, device=grad_TBD.device)
    row_TS = image_TS + first_T[:, None]  # whole rows are picked: gather would look up every coordinate
    picked = grad_TBD.reshape(-1, dim).index_select(0, row_TS.flatten())
    return picked.view(num_teachers, most, dim), image_TS


def tally_of_images(vote_TSD: Tensor, image_TS: Tensor, num_images: int) -> Tensor:
    """Sum over teachers of votes on chosen images: int32 ``[num_images, D]``; private."""
    dim = vote_TSD.shape[2]
    rows = vote_TSD.reshape(-1, dim)
    exact = (
        len(rows) * 128 <= 2**24
    )  # then float32 holds every sum of int8 exactly, and adds ten times as fast
    kind = torch.float32 if exact else torch.int32
    tally_BD = torch.zeros(num_images, dim, dtype=kind, device=rows.device)
    return tally_BD.index_add_(0, image_TS.flatten(), rows.to(kind)).to(torch.int32)
