"""A step of an ordinary GAN, without privacy: a generator against one of the paper's discriminators."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from datalens.teachers.family import Fakes, Shards, TeacherState
from datalens.teachers.paper import PaperTeachers

BETA1 = 0.5
"""Of the generator's Adam, as of the discriminator's."""


def generator_adam(generator: nn.Module, learning_rate: float) -> torch.optim.Adam:
    """The generator's optimiser."""
    return torch.optim.Adam(generator.parameters(), learning_rate, betas=(BETA1, 0.999))


def gan_step(
    generator: nn.Module,
    adam: torch.optim.Optimizer,
    family: PaperTeachers,
    state: TeacherState,
    records: Shards,
    latents_BZ: Tensor,
    labels_B: Tensor,
) -> TeacherState:
    """The discriminator learns to tell records from generated images, then the generator to pass for real.

    Args:
        generator: in training mode.
        adam: its optimiser.
        family: the discriminator's kind.
        state: of one discriminator; updated in place and returned.
        records: one minibatch, as the shard of a single teacher.
        latents_BZ: what the generator is fed, on its device.
        labels_B: int64, what each image is to be.

    Both losses are the mean over the batch; the generator's is the non-saturating ``-log D``.
    """
    device = latents_BZ.device
    fakes_BCHW = generator(latents_BZ, labels_B.to(device))
    fakes = Fakes(fakes_BCHW.detach(), labels_B)
    state = family.train(state, records, fakes, 1)
    grad_TBD = family.input_gradient(state, records, fakes)
    adam.zero_grad(set_to_none=True)
    fakes_BCHW.backward(-grad_TBD[0].view_as(fakes_BCHW) / len(fakes_BCHW))
    adam.step()
    return state


def as_shard(images_BCHW: Tensor, labels_B: Tensor) -> Shards:
    """A minibatch of bytes, uint8, as the shard of a single teacher."""
    present_B = torch.ones_like(labels_B, dtype=torch.bool)
    return Shards(images_BCHW.to(torch.float32).div_(255.0)[None], labels_B[None], present_B[None])
