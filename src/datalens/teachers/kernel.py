"""Compact teachers: a class-conditional kernel-density discriminator on the teacher's own shard.

D(x, y) compares x with the teacher's own records of class y: log D(x, y) = log sum_r exp(-|x - x_r|^2 / 2h) up to
a constant, so g = d log D / dx is the weighted mean of its records of that class, minus x. A large bandwidth h
gives the class mean of the shard, a small one its nearest record. There is nothing to train: all teachers agree
from the first step about where a class lies, which discriminators with random weights take long to do.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from datalens.teachers.family import Fakes, Shards, TeacherState


@dataclass(frozen=True)
class KernelTeachers:
    """Kernel-density discriminators, one a teacher, without parameters.

    A teacher with no record of a class has nothing to say about it: zero gradient, hence no vote.

    Guarantee: a teacher's gradient is a function of its own shard and the fakes; an empty slot influences
    nothing.

    Attributes:
        num_classes: Y.
        bandwidth: h above, in squared pixel units summed over the image; large for class means.
    """

    num_classes: int
    bandwidth: float

    def init(self, num_teachers: int, rng: torch.Generator, device: torch.device) -> TeacherState:
        """No parameters: an empty column for every teacher."""
        return {"none": torch.zeros(num_teachers, 0, device=device)}

    def train(self, state: TeacherState, shards: Shards, fakes: Fakes, num_steps: int) -> TeacherState:
        """Nothing to train: the shard is the discriminator."""
        return state

    def input_gradient(self, state: TeacherState, shards: Shards, fakes: Fakes) -> Tensor:
        """``grad_TBD``: kernel-weighted mean of the teacher's records of the fake's class, minus the fake."""
        real_TRD = shards.images_TRCHW.flatten(2).masked_fill(~shards.present_TR[:, :, None], 0.0)
        fake_BD = fakes.images_BCHW.flatten(1)
        same_TBR = (shards.labels_TR[:, None, :] == fakes.labels_B[None, :, None]) & shards.present_TR[
            :, None
        ]
        squared_TBR = (
            real_TRD.square().sum(2)[:, None, :]
            + fake_BD.square().sum(1)[None, :, None]
            - 2 * torch.einsum("bd,trd->tbr", fake_BD, real_TRD)
        )
        logit_TBR = (-squared_TBR / (2 * self.bandwidth)).masked_fill(~same_TBR, -torch.inf)
        known_TB = same_TBR.any(2)
        weight_TBR = logit_TBR.masked_fill(~known_TB[:, :, None], 0.0).softmax(2)
        weight_TBR = weight_TBR.masked_fill(~same_TBR, 0.0)
        mean_TBD = torch.bmm(weight_TBR, real_TRD)
        return (mean_TBD - fake_BD[None]) * known_TB[:, :, None]
