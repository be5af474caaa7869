"""The generator learns a released normal law before the first vote: post-processing, by public draws alone.

A latent says where along a class's leading directions its image lies; what is left of the law is drawn at random and
averages out. So the generator is not asked to tell drawn images from its own, as in a GAN, but to draw the very image
that its latent stands for. Where latents are codes, a few kinds a class, a kind is the mean of the drawn images that
it lies nearest to (Lloyd's algorithm).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from datalens.models.finish import FINISH_DIM
from datalens.models.gaussian import GaussianImages
from datalens.randomness import Streams
from datalens.student.latent import LatentSpace
from datalens.student.latent_law import LatentLaw
from datalens.student.update import StudentPlan

_BETA1 = 0.5
_LEFT = 0.1
"""Of the learning rate, at the last step."""
_EDGE = 1 - 1e-4
"""A uniform latent is taken as no nearer to the ends than this, where the normal number is without bound."""
_DRAWS, _ROUNDS = 400, 20
"""Images of a class that are sorted into kinds, and how often."""


@dataclass(frozen=True)
class Warming:
    """How the generator learns.

    Attributes:
        steps: of Adam.
        batch_size: images in each.
        learning_rate: at the first.
    """

    steps: int
    batch_size: int
    learning_rate: float


def warm_weights(
    plan: StudentPlan,
    law: GaussianImages,
    how: Warming,
    public: Streams,
    device: torch.device | str = "cpu",
) -> dict[str, Tensor]:
    """The state of a generator that draws like the law.

    Args:
        plan: of the student.
        law: what was released, as a network.
        how: steps, batch size, learning rate.
        public: the public random streams of the run.
        device: where to compute.

    Guarantee: the result is a function of these arguments, the same to the last bit on one platform.
    """
    device = torch.device(device)
    law = law.to(device).eval()
    generator = plan.generator(training=True)
    generator.inner.init_weights(public.torch("generator-weights"))
    generator.to(device).train()
    adam = torch.optim.Adam(generator.parameters(), how.learning_rate, betas=(_BETA1, 0.999))
    codes = plan.latent.law is LatentLaw.CODES
    kinds_YKD = _kinds(law, plan.latent, public, device) if codes else None
    for step in range(how.steps):
        rng = public.torch("warm-start-latents", step)
        latents_BZ, labels_B = plan.latent.batch(how.batch_size, rng)
        if kinds_YKD is None:
            drawn_BZ = _shared(latents_BZ[:, :-FINISH_DIM], plan.latent, law, rng)
            with torch.no_grad():
                wanted_BCHW = law(drawn_BZ.to(device), labels_B.to(device))
        else:
            kind_B = latents_BZ[:, :-FINISH_DIM].argmax(1)
            wanted_BCHW = kinds_YKD[labels_B, kind_B].view(-1, *plan.image_shape)
        for group in adam.param_groups:
            group["lr"] = how.learning_rate * (1 - (1 - _LEFT) * step / how.steps)
        images_BCHW = generator.inner(latents_BZ[:, :-FINISH_DIM].to(device), labels_B.to(device))
        adam.zero_grad(set_to_none=True)
        loss = functional.binary_cross_entropy(images_BCHW, wanted_BCHW, reduction="sum")
        (loss / len(images_BCHW)).backward()
        adam.step()
    return {name: value.detach().cpu() for name, value in generator.state_dict().items()}


def _shared(latents_BZ: Tensor, space: LatentSpace, law: GaussianImages, rng: torch.Generator) -> Tensor:
    """Normal numbers for the law ``[B, K + D]``: the first are the latents', as many as there are of both."""
    drawn_BZ = torch.randn(len(latents_BZ), law.latent_dim, generator=rng)
    shared = min(law.rank, latents_BZ.shape[1])
    along_BK = latents_BZ[:, :shared]
    if space.law is LatentLaw.UNIFORM:
        along_BK = math.sqrt(2) * torch.erfinv(along_BK.clamp(-_EDGE, _EDGE))
    drawn_BZ[:, :shared] = along_BK
    return drawn_BZ


def _kinds(law: GaussianImages, space: LatentSpace, public: Streams, device: torch.device) -> Tensor:
    """Images float32 [Y, kinds, D]: the means of the parts into which a class's drawn images fall."""
    found = []
    for label in range(space.num_classes):
        rng = public.torch("warm-start-kinds", label)
        drawn_BZ = torch.randn(max(_DRAWS, space.latent_dim), law.latent_dim, generator=rng)
        labels_B = torch.full((len(drawn_BZ),), label)
        with torch.no_grad():
            images_BD = law(drawn_BZ.to(device), labels_B.to(device)).flatten(1)
        found.append(_means_of_parts(images_BD, space.latent_dim))
    return torch.stack(found)


def _means_of_parts(images_BD: Tensor, count: int) -> Tensor:
    """Lloyd's algorithm from the first images; a part that loses all its images keeps its mean."""
    mean_KD = images_BD[:count].clone()
    for _ in range(_ROUNDS):
        nearest_B = torch.cdist(images_BD, mean_KD).argmin(1)
        for kind in range(count):
            own_BD = images_BD[nearest_B == kind]
            if len(own_BD):
                mean_KD[kind] = own_BD.mean(0)
    return mean_KD
