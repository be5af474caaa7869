"""A round of noisy gradients: every critic is asked once, in public order, and the whole round is charged as one.

A record sits with one critic. Whatever the generator does with what earlier critics said, the record changes the
answer of its own critic and no other, so a round costs what one answer costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from datalens.mechanisms.base import Release
from datalens.mechanisms.vector_sum import Grid
from datalens.noise.base import NoiseSource
from datalens.privacy.events import GaussianEvent

if TYPE_CHECKING:
    from datalens.privacy.budget import Budget


@dataclass(frozen=True)
class CriticRound:
    """Gradients of critics with respect to generated images, with noise.

    Attributes:
        grid: where each image's gradient is put; it bounds its length, and its ``dim`` is the image's D.
        batch_size: images that each critic is asked about, B.
        num_critics: each with records of its own.
        noise_stddev: standard deviation of the noise on each coordinate, in units of the grid; 0 without noise.
        group_size: records that one person may own, g.

    Guarantee:
        A critic's answer is B rows of the grid, each at most ``units`` long; a changed critic moves it by at most
        ``2 units sqrt(B)``, however it changed. A person's g records sit with at most g critics. So a round is a
        Gaussian mechanism with sensitivity ``2 units sqrt(B g)``, whether records are added, removed or replaced, and
        also where later questions depend on earlier answers of the round.
    """

    grid: Grid
    batch_size: int
    num_critics: int
    noise_stddev: float
    group_size: int = 1

    def event(self, noise: NoiseSource) -> GaussianEvent:
        """What one round costs; depends on settings only."""
        return GaussianEvent(
            sensitivity=2 * self.grid.units * math.sqrt(self.batch_size * self.group_size),
            noise_stddev=self.noise_stddev,
            coordinates=self.num_critics * self.batch_size * self.grid.dim,
            noise=noise.kind,
            slack=noise.slack(self.noise_stddev),
        )

    def charge(self, noise: NoiseSource, budget: Budget, note: dict[str, Any]) -> OpenRound:
        """Charge a whole round; what it returns lets each critic's answer out once.

        Args:
            noise: for all answers of the round.
            budget: its ledger line is on disk before this returns.
            note: public facts for the ledger line.

        Raises:
            BudgetError: the round does not fit; nothing was charged.
        """
        event = self.event(noise)
        return OpenRound(self, noise, event, budget.charge(event, note).hash)


@dataclass(frozen=True)
class OpenRound:
    """A round that is paid for. Not to be kept across a restart: what is asked again is paid again.

    Attributes:
        mechanism: what a round is.
        noise: for all its answers.
        event: what it cost.
        line_hash: of the ledger line that charged it.
    """

    mechanism: CriticRound
    noise: NoiseSource
    event: GaussianEvent
    line_hash: str
    _asked: set[int] = field(default_factory=set, repr=False)

    def release(self, critic: int, gradients_BD: Tensor) -> Release[Tensor]:
        """One critic's answer, clipped image by image, with noise: float64 [B, D].

        Args:
            critic: which; each one once a round.
            gradients_BD: real gradients [B, D]; private.

        Raises:
            ValueError: a critic that was asked already, that does not exist, or rows of another shape (a defect).
        """
        mechanism = self.mechanism
        shape = (mechanism.batch_size, mechanism.grid.dim)
        if critic in self._asked or not 0 <= critic < mechanism.num_critics:
            raise ValueError(
                f"critic {critic} may not answer in this round: each of {mechanism.num_critics} once"
            )
        if tuple(gradients_BD.shape) != shape:
            raise ValueError(
                f"gradients of shape {tuple(gradients_BD.shape)} cannot be released; pass {shape}"
            )
        self._asked.add(critic)
        whole_BD = mechanism.grid.put(gradients_BD)
        noise_BD = torch.from_numpy(self.noise.sample(shape, mechanism.noise_stddev)).to(whole_BD.device)
        return Release(mechanism.grid.back(whole_BD + noise_BD), self.event, self.line_hash)
