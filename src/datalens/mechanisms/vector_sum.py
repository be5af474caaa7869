"""A noisy sum of real vectors of bounded length, in fixed point: whole numbers inside, real ones outside.

Floating-point sums and floating-point noise break the proof for real numbers. So every record's vector is put on a
grid of whole numbers first, its length bounded after that rounding and in whole numbers; then sum and noise are
exact, and the release is a Gaussian mechanism on integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from datalens.errors import ConfigError
from datalens.mechanisms.base import Release
from datalens.noise.base import NoiseSource
from datalens.privacy.events import GaussianEvent

if TYPE_CHECKING:
    from datalens.privacy.budget import Budget

_MOST_UNITS = 2**24
_LEAST_SHRINK = 2.0**-20
_SAFE_DEVIATIONS = 3.0


@dataclass(frozen=True)
class Grid:
    """Whole numbers in place of real vectors: a vector of length ``norm_bound`` becomes one of about ``units``.

    A real vector is multiplied by ``scale`` and rounded to the nearest whole numbers. Rounding adds about d/12 to
    the squared length, so ``scale`` leaves that much room, and a vector that is still too long is shrunk.

    Attributes:
        norm_bound: longest real vector, R; longer ones are cut to it.
        units: longest vector of whole numbers, in L2 norm.
        dim: coordinates of a vector that need not be 0, d.

    Guarantee:
        Every vector that :meth:`put` gives has an L2 norm of at most ``units``. The last thing it does is to compare
        the whole numbers' squared sum with ``units ** 2`` in whole numbers, and to shrink, so this holds whatever
        floating point did before. What a vector of length ``norm_bound`` or less becomes depends on that vector only;
        a longer one is cut by a length that floating point sums, whose last bit may depend on how many rows are put
        at once, so always put equally many.

    Raises:
        ConfigError: a bound that is not positive, or too few units for so many coordinates.

    >>> Grid(norm_bound=1.0, units=100, dim=2).put(torch.tensor([[0.6, 0.8], [30.0, 40.0]])).tolist()
    [[59, 79], [59, 79]]
    """

    norm_bound: float
    units: int
    dim: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.norm_bound) and self.norm_bound > 0):
            raise ConfigError(
                f"norm_bound is {self.norm_bound}, but must be positive and finite; choose one above 0"
            )
        for name, value in (("units", self.units), ("dim", self.dim)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} is {value}, but must be a whole number; choose 1 or more")
        if not _least_units(self.dim) <= self.units <= _MOST_UNITS:
            raise ConfigError(
                f"units is {self.units}, but vectors of {self.dim} coordinates need {_least_units(self.dim)} to "
                f"{_MOST_UNITS}; choose {fitting_units(self.dim)}, which loses little to rounding"
            )

    @property
    def scale(self) -> float:
        """Units that a length of 1 becomes."""
        room = self.units**2 - self.dim / 12 - _SAFE_DEVIATIONS * self.units
        return math.sqrt(room) / self.norm_bound

    def put(self, vectors_RD: Tensor) -> Tensor:
        """Whole numbers int64 [R, D], no row longer than ``units``, from real rows [R, D].

        Rows longer than ``norm_bound`` are cut to it; a row with a value that is no number, or is infinite,
        becomes zeros.
        """
        rows = vectors_RD.to(torch.float64)
        length_R1 = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        too_long_R1 = length_R1 > self.norm_bound * (
            1 + 1e-9
        )  # a length of exactly R must not depend on its last bit
        factor_R1 = torch.where(too_long_R1, self.norm_bound / length_R1, 1.0) * self.scale
        usable_R1 = torch.isfinite(length_R1)
        grid_RD = torch.where(usable_R1, rows * factor_R1, 0.0).round_()
        grid_RD = grid_RD.nan_to_num_(nan=0.0).clamp_(-self.units, self.units)  # squares fit into an integer
        while True:
            whole_RD = grid_RD.to(torch.int64)
            square_R = whole_RD.square().sum(1)
            over_R = square_R > self.units**2
            if not bool(over_R.any()):
                return whole_RD
            shrink_R = (self.units / square_R[over_R].to(torch.float64).sqrt()).clamp_(max=1 - _LEAST_SHRINK)
            grid_RD[over_R] = (grid_RD[over_R] * shrink_R[:, None]).trunc_()

    def back(self, sums: Tensor) -> Tensor:
        """Real sums, float64, from whole ones."""
        return sums.to(torch.float64) / self.scale


def _least_units(dim: int) -> int:
    """Below this the rounding would take half of a vector's squared length."""
    return max(8, math.ceil(math.sqrt(dim / 2)))


def fitting_units(dim: int) -> int:
    """Units that lose about one part in 200 of a vector's length to rounding; a power of two.

    >>> fitting_units(10_000)
    512
    """
    return max(512, 1 << math.ceil(math.log2(4 * math.sqrt(dim))))


class SumGrid(Protocol):
    """What a sum needs to know of where records' vectors are put."""

    @property
    def units(self) -> int:
        """Longest vector of whole numbers, in L2 norm."""
        ...

    @property
    def scale(self) -> float:
        """Units that a length of 1 becomes."""
        ...

    def back(self, sums: Tensor) -> Tensor:
        """Real sums, float64, from whole ones."""
        ...


@dataclass(frozen=True)
class VectorSum:
    """Sums of one vector a record, with noise.

    Attributes:
        grid: where every record's vector is put; it bounds what one record adds.
        noise_stddev: standard deviation of the noise on each coordinate, in units of the grid.
        noise: where the noise comes from.
        group_size: records that one person may own, g.
        of_replaced: charge for a record replaced by another, which covers adding and removing one too.

    Guarantee:
        One record added or removed moves the sums by one vector of the grid, at most ``units`` in L2 norm; one
        record replaced by another moves them by the difference of two, at most ``2 * units``. With g records it is g
        times as far, by the triangle inequality. So a release is a Gaussian mechanism with mu = that over
        ``noise_stddev``; the way back to real numbers is post-processing with public numbers.

    Source: proof above; fixed point against the attack of Mironov 2012 on floating-point noise.

    >>> from datalens.noise import make_noise
    >>> from datalens.privacy.events import NoiseKind
    >>> mechanism = VectorSum(Grid(1.0, 512, 100), 1024.0, make_noise(NoiseKind.ROUNDED))
    >>> mechanism.event(1000).mu, mechanism.replace_one_event(1000).mu
    (0.5, 1.0)
    """

    grid: SumGrid
    noise_stddev: float
    noise: NoiseSource
    group_size: int = 1
    of_replaced: bool = False

    def event(self, coordinates: int) -> GaussianEvent:
        """What one release of so many coordinates is charged: one record added or removed, unless ``of_replaced``"""
        return self._event(coordinates, 2 if self.of_replaced else 1)

    def replace_one_event(self, coordinates: int) -> GaussianEvent:
        """The same where one record is replaced by another."""
        return self._event(coordinates, 2)

    def release(self, sums: Tensor, budget: Budget, note: dict[str, Any]) -> Release[Tensor]:
        """Charge the budget for :meth:`event`, then draw noise, then release the noisy sums.

        Args:
            sums: int64 of any shape, the sum of one row of :meth:`Grid.put` a record; private.
            budget: asked before any noise is drawn; its ledger line is on disk before this goes on.
            note: public facts for the ledger line.

        Returns:
            A release whose value is the sum of real vectors plus noise: float64, the same shape, on the same device.

        Raises:
            BudgetError: the release does not fit; no noise was drawn.
            ValueError: sums that are not whole numbers (a defect, not a matter of data); nothing was charged.
        """
        if sums.dtype != torch.int64 or not sums.numel():
            raise ValueError(
                f"sums of type {sums.dtype} and shape {tuple(sums.shape)} cannot be released; pass int64 sums of "
                "vectors that Grid.put has bounded"
            )
        event = self.event(sums.numel())
        line = budget.charge(event, note)
        noise = torch.from_numpy(self.noise.sample(tuple(sums.shape), self.noise_stddev))
        return Release(self.grid.back(sums + noise.to(sums.device)), event, line.hash)

    def _event(self, coordinates: int, vectors_moved: int) -> GaussianEvent:
        return GaussianEvent(
            sensitivity=float(vectors_moved * self.group_size * self.grid.units),
            noise_stddev=self.noise_stddev,
            coordinates=coordinates,
            noise=self.noise.kind,
            slack=self.noise.slack(self.noise_stddev),
        )
