"""The door of GS-WGAN's rounds: gradients go in as they are, and the mechanism clips them itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from datalens.audit.sum_doors import HUGE, SILENT, free_budget, whole
from datalens.mechanisms.critic_round import CriticRound
from datalens.noise import NoiseSource
from datalens.privacy.events import NoisyEvent


@dataclass(frozen=True)
class CriticDoor:
    """Answers of critics, a round together (:class:`CriticRound`)."""

    what: str
    make: Callable[[], CriticRound]

    @property
    def stream(self) -> str:
        """The name of the release."""
        return self.what

    @property
    def stddev(self) -> float:
        """In units of the grid."""
        return self.make().noise_stddev

    @property
    def questions(self) -> int:
        """Images that a critic is asked about."""
        return self.make().batch_size

    def summed(self, given: Sequence[Tensor]) -> Tensor:
        """The clipped gradients of all critics that answered."""
        return torch.stack([self._noisy(self.make(), gradients, SILENT) for gradients in given])

    def drawn(self, noise: NoiseSource) -> np.ndarray:
        """Of one critic's answer, where it has nothing to say."""
        mechanism = self.make()
        zeros = torch.zeros(mechanism.batch_size, mechanism.grid.dim)
        return self._noisy(mechanism, zeros, noise).numpy().ravel()

    def event(self, questions: int, stddev: float, noise: NoiseSource) -> NoisyEvent:
        """Of a round with so many images."""
        return replace(self.make(), batch_size=questions, noise_stddev=stddev).event(noise)

    def tried(
        self, changed: bool, questions: int, stddev: float, noise: NoiseSource, trials: int
    ) -> np.ndarray:
        """One person's critics pull all images one way or the other, without bound; trials are more images."""
        mechanism = self.make()
        own = questions * mechanism.group_size
        grid = replace(mechanism.grid, dim=1)
        mechanism = replace(mechanism, batch_size=own * trials, grid=grid, noise_stddev=stddev)
        gradients = torch.full((own * trials, 1), HUGE if changed else -HUGE)
        return self._noisy(mechanism, gradients * grid.norm_bound, noise).view(trials, own).numpy()

    def _noisy(self, mechanism: CriticRound, gradients_BD: Tensor, noise: NoiseSource) -> Tensor:
        paid = mechanism.charge(noise, free_budget(), {})
        return whole(paid.release(0, gradients_BD.cpu()).value * mechanism.grid.scale, noise)
