"""Doors of baselines that release sums of vectors, one a record: of all records, or of a lot of them (DP-GAN)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from datalens.mechanisms.outer_grid import OuterGrid
from datalens.mechanisms.sampled_sum import SampledSum
from datalens.mechanisms.vector_sum import Grid, SumGrid, VectorSum
from datalens.noise import NoiseSource, OsEntropy
from datalens.noise.none import NoNoise
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind, NoisyEvent
from datalens.privacy.ledger import Ledger


class Noised(Protocol):
    """A mechanism with noise of one standard deviation."""

    @property
    def noise_stddev(self) -> float:
        """Of the noise on every whole number."""
        ...


SILENT = NoNoise()
_CANDIDATES = 2000
HUGE = 1e9
"""Of a vector or gradient that only clipping keeps from moving a sum without bound."""


def free_budget() -> Budget:
    """A budget that pays for everything, for releases of numbers that are nobody's."""
    return Budget(Ledger.in_memory(), Authorisation.not_private())


def whole(values: Tensor, noise: NoiseSource) -> Tensor:
    """Noisy whole numbers that went to real ones and back, without what that rounded; others as they are."""
    return values if noise.kind is NoiseKind.CONTINUOUS else values.round()


def longest(grid: SumGrid) -> int:
    """How far one record moves a sum, in whole numbers of the grid.

    On one grid: what becomes of the first coordinate of a vector without bound. On two, which are coarse: the length
    of the product of two vectors that rounding makes long. Noise is alike in all directions, so a trial may lay it
    along one coordinate.

    Raises:
        TypeError: a kind of grid that the audit does not know.
    """
    if isinstance(grid, OuterGrid):
        squares = [int(part.put(long_row(part)[None]).square().sum()) for part in (grid.left, grid.right)]
        return math.isqrt(math.prod(squares))
    if not isinstance(grid, Grid):
        raise TypeError(f"no door knows a grid of kind {type(grid).__name__}")
    row = torch.zeros(1, grid.dim)
    row[0, 0] = HUGE * grid.norm_bound
    return int(grid.put(row)[0, 0])


Made = TypeVar("Made", bound=Noised)
Summed = TypeVar("Summed", VectorSum, SampledSum)


@cache
def long_row(grid: Grid) -> Tensor:
    """A real vector, float64, that rounding makes as long as any of many."""
    row_RD = torch.randn(_CANDIDATES, grid.dim, generator=torch.Generator().manual_seed(1)).double()
    row_RD *= grid.norm_bound / row_RD.norm(dim=1, keepdim=True)
    return row_RD[int(grid.put(row_RD).square().sum(1).argmax())]


@dataclass(frozen=True)
class MadeDoor(Generic[Made]):
    """What doors share whose mechanism is made anew for a source of noise, and draws from one stream.

    Attributes:
        what: the name of the release.
        make: the run's mechanism on a source.
    """

    what: str
    make: Callable[[NoiseSource], Made]

    @property
    def stream(self) -> str:
        """The name of the release."""
        return self.what

    @property
    def stddev(self) -> float:
        """On every whole number: votes, or units of the grid."""
        return self.make(SILENT).noise_stddev


@dataclass(frozen=True)
class VectorsDoor(MadeDoor[Summed]):
    """A sum of vectors on a grid."""

    questions: int = 1

    def summed(self, given: Sequence[Tensor]) -> Tensor:
        """The sum."""
        (sum_D,) = given
        return self.noisy(self.make(SILENT), sum_D)

    def noisy(self, mechanism: Summed, sum_D: Tensor) -> Tensor:
        """What comes out where ``sum_D`` goes in, in whole numbers."""
        value = mechanism.release(sum_D.cpu(), free_budget(), {}).value
        return whole(value * mechanism.grid.scale, mechanism.noise)


@dataclass(frozen=True)
class SumDoor(VectorsDoor[VectorSum]):
    """A sum over all records (:class:`VectorSum`).

    Attributes:
        coordinates: of a release.
    """

    coordinates: int = field(kw_only=True)

    def summed(self, given: Sequence[Tensor]) -> Tensor:
        """The sum; nothing where it was given to a release of another kind."""
        (sums,) = given
        return super().summed(given) if sums.numel() == self.coordinates else torch.zeros(1)

    def drawn(self, noise: NoiseSource) -> np.ndarray:
        """Of one release of zeros."""
        zeros = torch.zeros(self.coordinates, dtype=torch.int64)
        return self.noisy(self.make(noise), zeros).numpy()

    def event(self, questions: int, stddev: float, noise: NoiseSource) -> NoisyEvent:
        """Of one release."""
        return replace(self.make(noise), noise_stddev=stddev).event(questions)

    def tried(
        self, changed: bool, questions: int, stddev: float, noise: NoiseSource, trials: int
    ) -> np.ndarray:
        """No record, or one person's, all along one coordinate; the others would hold noise alone."""
        mechanism = replace(self.make(noise), noise_stddev=stddev)
        own = mechanism.group_size * longest(mechanism.grid) if changed else 0
        sums = torch.full((trials, 1), own, dtype=torch.int64)
        return self.noisy(mechanism, sums).numpy()


@dataclass(frozen=True)
class SampledDoor(VectorsDoor[SampledSum]):
    """A sum over a lot (:class:`SampledSum`). A trial draws its lot too, by the mechanism's own coins."""

    def drawn(self, noise: NoiseSource) -> np.ndarray:
        """Of one release of zeros."""
        mechanism = self.make(noise)
        return self.noisy(mechanism, torch.zeros(mechanism.grid.dim, dtype=torch.int64)).numpy()

    def event(self, questions: int, stddev: float, noise: NoiseSource) -> NoisyEvent:
        """Of one release."""
        return replace(self.make(noise), noise_stddev=stddev).event()

    def tried(
        self, changed: bool, questions: int, stddev: float, noise: NoiseSource, trials: int
    ) -> np.ndarray:
        """No record, or one person's, each in the lot by a coin of its own. Trials are coordinates of one sum."""
        mechanism = self.make(noise)
        own = longest(mechanism.grid)
        mechanism = replace(mechanism, grid=replace(mechanism.grid, dim=trials), noise_stddev=stddev)
        sum_D = torch.zeros(trials, dtype=torch.int64)
        for _ in range(mechanism.group_size if changed else 0):
            sum_D[torch.from_numpy(mechanism.lot(trials, OsEntropy()))] += own
        return self.noisy(mechanism, sum_D).view(trials, 1).numpy()
