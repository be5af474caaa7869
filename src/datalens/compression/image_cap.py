"""A teacher speaks of only so many images of a step: top-k over images, as top-k over coordinates."""

from __future__ import annotations

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
    dim = grad_TBD.shape[2]
    return grad_TBD.gather(1, image_TS[:, :, None].expand(-1, -1, dim)), image_TS


def tally_of_images(vote_TSD: Tensor, image_TS: Tensor, num_images: int) -> Tensor:
    """Sum over teachers of votes on chosen images: int32 ``[num_images, D]``; private."""
    dim = vote_TSD.shape[2]
    tally_BD = vote_TSD.new_zeros(num_images, dim).int()
    return tally_BD.index_add_(0, image_TS.flatten(), vote_TSD.reshape(-1, dim).int())
