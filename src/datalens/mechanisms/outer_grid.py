"""Whole numbers in place of outer products of two real vectors, such as the gradient of a dense layer by record."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from datalens.mechanisms.vector_sum import Grid


@dataclass(frozen=True)
class OuterGrid:
    """Two grids, and the outer product of a vector on each.

    The gradient of a dense layer's weights by one record is (error) x (input). With both on grids of whole numbers, a
    sum of such products over all records is one product of two matrices, and exact.

    Attributes:
        left: of the first vector, A whole numbers.
        right: of the second, B whole numbers.

    Guarantee:
        The outer product of two vectors has the product of their L2 norms as its L2 norm, so with rows from
        ``left.put`` and ``right.put`` one record adds at most ``units`` = ``left.units * right.units``.

    >>> grid = OuterGrid(Grid(1.0, 16, 2), Grid(1.0, 32, 3))
    >>> grid.units, grid.dim
    (512, 6)
    """

    left: Grid
    right: Grid

    @property
    def units(self) -> int:
        """Longest product, in L2 norm."""
        return self.left.units * self.right.units

    @property
    def dim(self) -> int:
        """Numbers of a product, A B."""
        return self.left.dim * self.right.dim

    @property
    def scale(self) -> float:
        """Units that a product of length 1 becomes."""
        return self.left.scale * self.right.scale

    def sums(self, left_RA: Tensor, right_RB: Tensor) -> Tensor:
        """The sum of the rows' outer products, int64 [A, B]; exact.

        Args:
            left_RA: whole numbers, rows of ``left.put``.
            right_RB: whole numbers, rows of ``right.put``.

        Raises:
            ValueError: so many records that a float64 could not hold a sum.
        """
        if len(left_RA) * self.units >= 2**53:
            raise ValueError(f"{len(left_RA)} records are more than an exact sum can hold on this grid")
        product_AB = left_RA.to(torch.float64).T @ right_RB.to(torch.float64)
        return product_AB.round().to(torch.int64)

    def back(self, sums: Tensor) -> Tensor:
        """Real sums, float64, from whole ones."""
        return sums.to(torch.float64) / self.scale


def outer_grid(left_bound: float, left_dim: int, right_bound: float, right_dim: int) -> OuterGrid:
    """A grid fine enough for learning, and coarse enough that much noise can be drawn on it.

    Rounding moves every number by a twelfth of a unit's square on average: 501 numbers by 4% of a vector's squared
    length at 32 units. That is little beside the noise of any epsilon.

    >>> outer_grid(0.04, 10, 1.0, 501).units
    512
    """
    return OuterGrid(
        Grid(left_bound, max(16, _units(left_dim)), left_dim),
        Grid(right_bound, max(32, _units(right_dim)), right_dim),
    )


def _units(dim: int) -> int:
    """A power of two near 1.4 sqrt(dim): rounding takes some 4% of a vector's squared length."""
    return 1 << math.ceil(math.log2(1.4 * math.sqrt(dim)))
