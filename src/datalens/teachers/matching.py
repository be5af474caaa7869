"""Compact teachers that say more than the class mean: each record is matched to one fake and pulls it alone.

A teacher's discriminator is the optimal-transport critic between its records and the step's fakes, class by
class: a record r goes to the fake b of its class with probability softmax_b(-|x_r - x_b|^2 / 2h), and the gradient
at a fake is the mean of the records matched to it, minus the fake (the gradient of the transport cost). While h
is large every fake of a class hears every record, as from a class mean; as h falls a fake hears its neighbours
only, so fakes that a latent drew apart grow into different kinds of the class. It is deterministic annealing of
a mixture (Rose 1998), with the generator as the mixture.

A record speaks of one fake, so a teacher speaks of at most as many fakes as its shard has slots: see
``images_per_teacher`` of :class:`datalens.mechanisms.topagg.TopAgg`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from datalens.teachers.family import Fakes, Shards, TeacherState

STEP, GUMBEL = "step", "gumbel"


@dataclass(frozen=True)
class MatchingTeachers:
    """Annealed transport critics, one a teacher.

    Guarantee: a teacher's gradient is a function of its own shard, its own draws and the fakes; an empty slot
    influences nothing.

    Attributes:
        shard_size: slots of each teacher.
        batch_size: fakes in a step.
        annealing_steps: steps over which the bandwidth falls; afterwards it stays.
        first_bandwidth: h at the first step, in squared pixel units summed over the image.
        last_bandwidth: h at the end.
    """

    shard_size: int
    batch_size: int
    annealing_steps: int
    first_bandwidth: float
    last_bandwidth: float

    def init(self, num_teachers: int, rng: torch.Generator, device: torch.device) -> TeacherState:
        """A step counter, and the Gumbel draws that decide each record's matches.

        The draws are kept for the whole run: a fake's place in the batch means nothing from one step to the
        next, since latents and labels are drawn anew.
        """
        shape = (num_teachers, self.shard_size, self.batch_size)
        uniform = torch.rand(shape, generator=rng, device=rng.device).clamp_(1e-7, 1 - 1e-7)
        return {
            STEP: torch.zeros(num_teachers, dtype=torch.int64, device=device),
            GUMBEL: (-(-uniform.log()).log()).to(device),
        }

    def train(self, state: TeacherState, shards: Shards, fakes: Fakes, num_steps: int) -> TeacherState:
        """The transport critic has its optimum in closed form; a call only counts the generator step."""
        return {**state, STEP: state[STEP] + 1}

    def input_gradient(self, state: TeacherState, shards: Shards, fakes: Fakes) -> Tensor:
        """``grad_TBD``: mean of the records matched to a fake, minus the fake; zero where none is."""
        real_TRD = shards.images_TRCHW.flatten(2)
        fake_BD = fakes.images_BCHW.flatten(1)
        same_TRB = (shards.labels_TR[:, :, None] == fakes.labels_B) & shards.present_TR[:, :, None]
        cost_TRB = fake_BD.square().sum(1) - 2 * real_TRD @ fake_BD.T  # |x_r - x_b|^2, less what r adds alike
        h_T = self.bandwidth(state[STEP])
        score_TRB = state[GUMBEL][:, : real_TRD.shape[1]] - cost_TRB / (2 * h_T)[:, None, None]
        best_TR = score_TRB.masked_fill(~same_TRB, -torch.inf).argmax(2)
        match_TRB = functional.one_hot(best_TR, len(fake_BD)).to(torch.bool) & same_TRB
        count_TB = match_TRB.sum(1)
        clean_TRD = real_TRD.masked_fill(~match_TRB.any(2, keepdim=True), 0.0)
        weight_TBR = match_TRB.transpose(1, 2) / count_TB.clamp(min=1)[:, :, None]
        heard_TBD = (count_TB > 0)[:, :, None] * fake_BD
        return torch.baddbmm(heard_TBD, weight_TBR, clean_TRD, beta=-1)  # mean of its records, minus itself

    def bandwidth(self, step_T: Tensor) -> Tensor:
        """h of each teacher: geometric from the first to the last bandwidth, by its own step count."""
        done_T = ((step_T - 1).clamp(min=0) / self.annealing_steps).clamp(max=1.0)
        return self.first_bandwidth * (self.last_bandwidth / self.first_bandwidth) ** done_T
