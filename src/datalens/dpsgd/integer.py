"""The form that can be published: whole numbers inside, noise by exact look-up, nothing rounded after the bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from opacus.optimizers.optimizer import _check_processed_flag, _mark_as_processed
from torch import Tensor

from datalens.dpsgd.optimizer import TopAggOptimizer
from datalens.errors import ConfigError
from datalens.mechanisms.sampled_sum import SampledSum
from datalens.mechanisms.vector_sum import Grid, fitting_units
from datalens.noise import NoiseSource
from datalens.noise.table import MAX_STDDEV, MIN_STDDEV
from datalens.privacy.events import NoiseKind, PoissonGaussianEvent, times


class IntegerTopAggOptimizer(TopAggOptimizer):
    """What stays of a record is put on a grid of whole numbers; sum and noise are exact.

    Args:
        noise: where the noise comes from.
        others: as for :class:`TopAggOptimizer`.

    Attributes:
        release: from the sum, int64 [D], to the noisy sum of real numbers; another one may charge a budget first.

    Guarantee:
        One record added or removed moves the sum by a vector of the grid, whose length is bounded in whole numbers
        after rounding. A step is one :class:`~datalens.mechanisms.sampled_sum.SampledSum`; the way back to floating
        point is post-processing. Whether gradients of single records are functions of that record alone, to the last
        bit, is Opacus's matter and the network's.

    Raises:
        ConfigError: noise that the sampler does not have.
    """

    def __init__(self, *args: Any, noise: NoiseSource, **others: Any) -> None:
        super().__init__(*args, **others)
        self._noise = noise
        self.release: Callable[[Tensor], Tensor] = self._noisy
        stddev = self._stddev
        if noise.kind is NoiseKind.ROUNDED and not MIN_STDDEV <= stddev <= MAX_STDDEV:
            raise ConfigError(
                f"noise_multiplier is {self.noise_multiplier:g}, but whole noise on {self.dim} coordinates has "
                f"{MIN_STDDEV / self.grid.units:g} to {MAX_STDDEV / self.grid.units:g}; choose one of these"
            )

    @staticmethod
    def event_of(
        noise_multiplier: float, sampling_probability: float, dim: int, noise: NoiseSource, count: int = 1
    ) -> PoissonGaussianEvent:
        """What ``count`` steps cost; a function of settings alone, whatever the clipping norm and ``keep``."""
        grid = Grid(1.0, fitting_units(dim), dim)
        step = SampledSum(grid, noise_multiplier * grid.units, noise, sampling_probability).event()
        return times(step, count)

    @property
    def grid(self) -> Grid:
        """Where the part of each record is put."""
        return Grid(self.sensitivity, fitting_units(self.dim), self.dim)

    @property
    def _stddev(self) -> float:
        """Of the noise, in units of the grid."""
        return float(self.noise_multiplier) * self.grid.units

    def clip_and_accumulate(self) -> None:
        """Sum the records' whole numbers, int64, into ``p.summed_grad``."""
        grid = self.grid
        sum_D = torch.zeros(self.dim, dtype=torch.int64, device=self.params[0].device)
        for row_RD, factor_R in self.kept_rows():
            sum_D += grid.put(row_RD * factor_R[:, None]).sum(0)
        self.accumulate(sum_D)

    def add_noise(self) -> None:
        """Release the whole sum, and hand the result to the optimiser as ``p.grad``."""
        for p in self.params:
            _check_processed_flag(p.summed_grad)
        sum_D = torch.cat([p.summed_grad.flatten() for p in self.params])
        for p, part in zip(self.params, self.by_parameter(self.release(sum_D)), strict=True):
            p.grad = part.to(p.dtype)
            _mark_as_processed(p.summed_grad)

    def _noisy(self, sum_D: Tensor) -> Tensor:
        """The sum with noise, in real numbers."""
        noise_D = torch.from_numpy(self._noise.sample((self.dim,), self._stddev)).to(sum_D.device)
        return self.grid.back(sum_D + noise_D)
