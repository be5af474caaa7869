"""Outer products on two grids: never longer than charged, whatever comes in, and sums that are exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.errors import ConfigError
from datalens.mechanisms.outer_grid import OuterGrid, outer_grid
from datalens.mechanisms.vector_sum import Grid

ODD = (0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 1e-300, 0.04, -1.0, 3.0)
"""Numbers of which adversarial rows are made."""


def products(grid: OuterGrid, left_RA: torch.Tensor, right_RB: torch.Tensor) -> list[list[int]]:
    """The sum of outer products in Python's whole numbers, one after the other."""
    left, right = left_RA.tolist(), right_RB.tolist()
    return [
        [
            sum(one[a] * other[b] for one, other in zip(left, right, strict=True))
            for b in range(grid.right.dim)
        ]
        for a in range(grid.left.dim)
    ]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), dims=st.tuples(st.integers(1, 12), st.integers(1, 40)))
def test_no_row_whatever_it_holds_adds_more_than_its_charge(
    data: st.DataObject, dims: tuple[int, int]
) -> None:
    grid = outer_grid(0.04, dims[0], 1.0, dims[1])
    left, right = (
        data.draw(st.lists(st.sampled_from(ODD) | st.floats(-1e6, 1e6), min_size=dim, max_size=dim))
        for dim in dims
    )
    left_1A, right_1B = torch.tensor([left]).double(), torch.tensor([right]).double()
    sum_AB = grid.sums(grid.left.put(left_1A), grid.right.put(right_1B))
    assert sum_AB.shape == dims and sum_AB.dtype == torch.int64
    assert sum(number**2 for row in sum_AB.tolist() for number in row) <= grid.units**2


@pytest.mark.parametrize("dims", [(1, 1), (2, 4), (10, 501), (1000, 33)])
def test_rows_along_rounding_edges_stay_within_the_charge(dims: tuple[int, int]) -> None:
    """Every number a hair above a half: all are rounded up together."""
    grid = outer_grid(0.04, dims[0], 1.0, dims[1])
    for part in (grid.left, grid.right):
        for count in {1, 2, part.dim // 2 or 1, part.dim}:
            row = torch.zeros(1, part.dim).double()
            row[0, :count] = (math.floor(part.units / math.sqrt(count)) - 0.4999) / part.scale
            assert int(part.put(row).square().sum()) <= part.units**2
    longest = grid.left.put(torch.full((1, dims[0]), 1e9)), grid.right.put(torch.full((1, dims[1]), -1e9))
    assert int(grid.sums(*longest).square().sum()) <= grid.units**2


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32), count=st.integers(0, 70), dims=st.tuples(st.integers(1, 6), st.integers(1, 9))
)
def test_sums_are_the_whole_numbers_sums(seed: int, count: int, dims: tuple[int, int]) -> None:
    grid, rng = outer_grid(0.04, dims[0], 1.0, dims[1]), np.random.default_rng(seed)
    left_RA = grid.left.put(torch.from_numpy(rng.normal(size=(count, dims[0]))))
    right_RB = grid.right.put(torch.from_numpy(rng.normal(size=(count, dims[1]))))
    assert grid.sums(left_RA, right_RB).tolist() == products(grid, left_RA, right_RB)
    order = torch.from_numpy(rng.permutation(count))
    assert torch.equal(grid.sums(left_RA[order], right_RB[order]), grid.sums(left_RA, right_RB))


def test_the_largest_sums_that_are_taken_are_exact() -> None:
    """Numbers as large as grids have, up to where a float64 still counts by ones."""
    grid = OuterGrid(Grid(1.0, 2**24, 2), Grid(1.0, 2**24, 3))
    left_RA = torch.tensor([[2**24 - 1, 1]] * 31)
    right_RB = torch.tensor([[2**24 - 3, -1, 1]] * 31)
    assert grid.sums(left_RA, right_RB).tolist() == products(grid, left_RA, right_RB)


def test_more_records_than_a_sum_can_hold_are_refused() -> None:
    grid = OuterGrid(Grid(1.0, 2**24, 2), Grid(1.0, 2**24, 3))
    with pytest.raises(ValueError, match="32 records are more than an exact sum can hold"):
        grid.sums(torch.ones(32, 2).long(), torch.ones(32, 3).long())


def test_real_products_come_back() -> None:
    grid, rng = outer_grid(0.5, 4, 1.0, 20), np.random.default_rng(3)
    left_RA, right_RB = (torch.from_numpy(rng.normal(size=(400, dim))) for dim in (4, 20))
    left_RA *= 0.5 / left_RA.norm(dim=1, keepdim=True)
    right_RB /= right_RB.norm(dim=1, keepdim=True)
    found = grid.back(grid.sums(grid.left.put(left_RA), grid.right.put(right_RB)))
    assert torch.allclose(found, left_RA.T @ right_RB, atol=1.0)
    assert grid.scale == grid.left.scale * grid.right.scale


@pytest.mark.parametrize("dims", [(1, 1), (10, 501), (1000, 3001), (100_000, 10)])
def test_there_is_a_grid_for_every_size(dims: tuple[int, int]) -> None:
    grid = outer_grid(0.04, dims[0], 1.0, dims[1])
    assert grid.dim == dims[0] * dims[1] and grid.units == grid.left.units * grid.right.units
    assert grid.right.units < 2**15, "coordinates are kept as int16"
    with pytest.raises(ConfigError, match="norm_bound"):
        outer_grid(0.0, dims[0], 1.0, dims[1])
