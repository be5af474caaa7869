"""When a teacher of PATE-GAN says that a generated image is real."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor


class VoteRule(StrEnum):
    """When a teacher says that a generated image is real.

    ``BELIEF``: where it takes the image for real, as published. Teachers that tell generated images well say no to
    all of them, and no is then all that the student ever hears. ``RANK``: where it finds the image more real than
    the middle one of that class in the batch, so that half of its answers are yes and say which images are better.
    Either way the answers are a function of its own shard and of public images.
    """

    BELIEF = "belief"
    RANK = "rank"


def yes_votes(rule: VoteRule, logit_TB: Tensor, labels_B: Tensor) -> Tensor:
    """``vote_TB`` bool from what teachers believe; a row depends on its own logits alone, and NaN says no.

    >>> logit = torch.tensor([[-3.0, -1.0, -2.0, 5.0]])
    >>> [yes_votes(rule, logit, torch.tensor([0, 0, 1, 1])).tolist() for rule in VoteRule]
    [[[False, False, False, True]], [[False, True, False, True]]]
    """
    if rule is VoteRule.BELIEF:
        return logit_TB > 0
    vote_TB = torch.zeros_like(logit_TB, dtype=torch.bool)
    for label in labels_B.unique():
        same_B = (labels_B == label).to(logit_TB.device)
        of_class = logit_TB[:, same_B]
        vote_TB[:, same_B] = of_class > of_class.median(1, keepdim=True).values
    return vote_TB
