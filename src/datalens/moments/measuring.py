"""What every record adds to two tables with a row a class: to the one of means, and to the one of moments.

In both a record is one vector in the row of its class, of bounded length whatever it holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from datalens.mechanisms.vector_sum import Grid, fitting_units
from datalens.models.frequencies import Frequencies
from datalens.moments.law import Centres, Law, centres, fit_law, products
from datalens.moments.limits import ROWS

MEANS, PRODUCTS = "class means", "class moments"
STATES = {MEANS: "means", PRODUCTS: "moments"}
"""What is released, and the name of its tensor in a file."""

_USUAL_LOW = 200


@dataclass(frozen=True)
class Measures:
    """What is measured of images; public choices and sizes. Lengths are root mean squares of a pixel in [0, 1].

    Attributes:
        image_shape: (C, H, W).
        num_classes: Y.
        low_frequencies: cosines a direction and channel whose products are measured; None for as many as make 200 of
            all channels.
        mean_length: to which an image is cut for its class's mean.
        product_length: to which a residual's low cosines are cut for their products.
        energy_length: to which a residual is cut for its energies.
        relative_count: of the constant that counts records, over the longest image's length.
        energy_weight: of energies beside products.

    Guarantee: what a record adds to a table depends on that record, on these numbers and on the means given, and on
    no other record; on the table's :meth:`grid` it is no longer than the grid's ``units``.
    """

    image_shape: tuple[int, int, int]
    num_classes: int
    low_frequencies: int | None = None
    mean_length: float = 0.45
    product_length: float = 0.2
    energy_length: float = 0.29
    relative_count: float = 0.2
    energy_weight: float = 0.3

    @cached_property
    def basis(self) -> Frequencies:
        """The cosines, and which of them are low."""
        channels, height, width = self.image_shape
        usual = max(1, math.isqrt(_USUAL_LOW // channels))
        return Frequencies(self.image_shape, min(self.low_frequencies or usual, height, width))

    @property
    def pixel(self) -> float:
        """Length of an image whose pixels have a root mean square of 1."""
        return math.sqrt(math.prod(self.image_shape))

    @property
    def count_weight(self) -> float:
        """What a record adds to its class's count."""
        return self.relative_count * self.mean_length * self.pixel

    def grid(self, what: str) -> Grid:
        """Where a record's vector of a release is put; it bounds what a record adds."""
        if what == MEANS:
            dim = self.basis.dim + 1
            longest = math.hypot(self.mean_length * self.pixel, self.count_weight)
        else:
            low = self.basis.num_low_coordinates
            dim = low * (low + 1) // 2 + self.basis.num_bins
            squares = [(length * self.pixel) ** 2 for length in (self.product_length, self.energy_length)]
            longest = math.hypot(squares[0], self.energy_weight * squares[1])
        return Grid(longest, fitting_units(dim), dim)

    def coordinates(self, what: str) -> int:
        """Numbers of a release."""
        return self.num_classes * self.grid(what).dim

    def sums(self, what: str, records: tuple[Tensor, Tensor], mean_YD: Tensor | None = None) -> Tensor:
        """Whole numbers int64 [Y, S]: each record's vector, in the row of its class. Private.

        Args:
            what: the table.
            records: images uint8 [R, C, H, W] and classes int64 [R].
            mean_YD: released means, for the table of moments.
        """
        grid = self.grid(what)
        sums_YS = torch.zeros(self.num_classes, grid.dim, dtype=torch.int64)
        for few_RCHW, label_R in zip(*(part.split(ROWS) for part in records), strict=True):
            padded = torch.zeros(ROWS, *self.image_shape, dtype=torch.uint8)
            padded[: len(few_RCHW)] = few_RCHW
            numbers_RD = self.basis.of_bytes(padded)
            if mean_YD is None:
                vectors_RS = self.image_vectors(numbers_RD)
            else:
                residual_RD = numbers_RD.clone()
                residual_RD[: len(few_RCHW)] -= mean_YD[label_R]
                vectors_RS = self.residual_vectors(residual_RD)
            sums_YS.index_add_(0, label_R, grid.put(vectors_RS)[: len(few_RCHW)])
        return sums_YS

    def image_vectors(self, numbers_RD: Tensor) -> Tensor:
        """(an image's numbers, a constant), [R, D + 1]."""
        cut_RD = _cut(numbers_RD, self.mean_length * self.pixel)
        constant_R1 = torch.full((len(cut_RD), 1), self.count_weight, dtype=torch.float64)
        return torch.cat([cut_RD, constant_R1], 1)

    def residual_vectors(self, residual_RD: Tensor) -> Tensor:
        """(products of low numbers, energies of bins), [R, M]."""
        basis = self.basis
        low_RL = _cut(residual_RD[:, basis.low_L], self.product_length * self.pixel)
        square_RD = _cut(residual_RD, self.energy_length * self.pixel).square()
        energy_RG = torch.zeros(len(square_RD), basis.num_bins, dtype=torch.float64)
        energy_RG.index_add_(1, basis.bin_D, square_RD)
        return torch.cat([products(low_RL), self.energy_weight * energy_RG], 1)

    def centres(self, sums_YS: Tensor, noise_stddev: float) -> Centres:
        """The means from their released table; noise on every real sum."""
        return centres(sums_YS, self.count_weight, noise_stddev)

    def law(self, centre: Centres, sums_YM: Tensor | None, noise_stddev: float, rank: int) -> Law:
        """The normal law of each class.

        Args:
            centre: of the first table.
            sums_YM: the released table of moments, float64; None for the law of the means alone.
            noise_stddev: on every real sum of that table.
            rank: most directions a class.
        """
        if sums_YM is None:
            sums_YM = torch.zeros(self.num_classes, self.grid(PRODUCTS).dim, dtype=torch.float64)
        return fit_law(centre, sums_YM, self.basis, rank, self.energy_weight, noise_stddev)


def _cut(rows_RD: Tensor, longest: float) -> Tensor:
    """Rows no longer than ``longest``; a direction stays as it is."""
    length_R1 = torch.linalg.vector_norm(rows_RD, dim=1, keepdim=True)
    return rows_RD * (longest / length_R1.clamp(min=longest))
