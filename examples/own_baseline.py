"""A method of your own, in every command of DataLens: each class's mean image, moved and turned a little.

python examples/own_baseline.py train shapes --method mean-images --epsilon 1 --out runs/means
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from own_mechanism import LEVELS, WHAT, LevelSum

from datalens.baselines import own
from datalens.cli.main import main


class MeanSettings(own.MethodSettings):  # what is planned, from what everybody may know: no data here
    num_steps: int = 1

    def plan(self, privacy: own.Privacy, size: own.PublicSize) -> MeanImages:
        return MeanImages.fitting(self, privacy, size)

    def latent(self, size: own.PublicSize) -> own.LatentSpace:
        return own.LatentSpace(1 + size.dim, size.num_classes, own.LatentLaw.NORMAL)

    def network(self, size: own.PublicSize) -> own.FinishedGenerator[own.GaussianImages]:
        inner = own.GaussianImages(own.Frequencies(size.image_shape, 1), size.num_classes, rank=1)
        return own.FinishedGenerator(inner, own.Finish(jitter=1.0))


@dataclass(frozen=True)
class MeanImages(own.OwnMethod[MeanSettings]):  # the plan with its noise: every release, and who makes it
    name: ClassVar[str] = "mean-images"

    def mechanism(self, noise: own.NoiseSource) -> LevelSum:
        return LevelSum(self.size.dim, self.noise_stddev, noise, self.privacy.group_size)

    def releases(self, noise: own.NoiseSource) -> tuple[own.Planned, ...]:
        made, classes = self.mechanism(noise), self.size.num_classes
        return (own.Planned(WHAT, made.event(classes), made.event(classes, replacing=True), count=1),)

    def begin(self, context: own.Context) -> MeanLearner:
        return MeanLearner(self, context, torch.zeros(self.size.num_classes, self.size.dim))


@dataclass
class MeanLearner:  # holds the records; what leaves it went through release, and the generator follows from that
    method: MeanImages
    context: own.Context
    released_YD: torch.Tensor

    def step(self, step: int) -> None:
        images_RCHW, labels_R = self.context.data.tensors()
        levels_RD = (images_RCHW.flatten(1) * (LEVELS / 255)).round().long()
        sums_YD = torch.zeros(self.released_YD.shape, dtype=torch.int64).index_add_(0, labels_R, levels_RD)
        mechanism = self.method.mechanism(self.context.noise_for(WHAT, step))
        release = mechanism.release(sums_YD.numpy(), self.context.budget, {"step": step, "what": WHAT})
        self.released_YD = torch.from_numpy(release.value).float()

    def generator(self) -> own.FinishedGenerator[own.GaussianImages]:
        finished = self.method.settings.network(self.method.size)
        law, brightest_Y1 = finished.inner, self.released_YD.amax(1, keepdim=True).clamp(min=1)
        mean_YCHW = (self.released_YD / brightest_Y1).clamp(0, 1).view(-1, *self.method.size.image_shape)
        law.set_law(law.frequencies.of_bytes(255 * mean_YCHW), law.factor_YKL, law.grain_YG)
        return finished.eval().requires_grad_(False)

    def state_dict(self) -> dict[str, torch.Tensor]:
        return {"released": self.released_YD}

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        self.released_YD = state["released"]


if __name__ == "__main__":
    own.register(MeanImages.name, MeanSettings)
    sys.exit(main())
