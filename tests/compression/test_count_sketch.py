"""The count sketch: linear, public, equal to its slow twin, and good at finding what is large."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import sketch_loop, unsketch_loop

from datalens.compression.count_sketch import count_sketch, keep_top
from datalens.errors import ConfigError


def _tally(seed: int, images: int, dim: int, largest: int = 9) -> torch.Tensor:
    draws = np.random.default_rng(seed).integers(-largest, largest + 1, (images, dim))
    return torch.from_numpy(draws.astype(np.int32))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 30),
    rows=st.sampled_from([1, 3, 5]),
    buckets=st.integers(1, 20),
)
def test_equals_slow_twin(seed: int, dim: int, rows: int, buckets: int) -> None:
    sketch, tally = count_sketch(dim, rows, buckets), _tally(seed, 2, dim)
    table = sketch.sketch(tally)
    hashes = sketch.bucket_JD.tolist(), sketch.sign_JD.tolist()
    assert table.tolist() == [sketch_loop(row, *hashes, buckets) for row in tally.tolist()]
    assert sketch.unsketch(table).tolist() == [unsketch_loop(rows, *hashes) for rows in table.tolist()]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), teachers=st.integers(1, 6))
def test_the_sketch_of_a_sum_is_the_sum_of_sketches(seed: int, teachers: int) -> None:
    sketch = count_sketch(40, 3, 11)
    votes = [_tally(seed + t, 2, 40, 1) for t in range(teachers)]
    assert torch.equal(sketch.sketch(sum(votes)), sum(sketch.sketch(vote) for vote in votes))


def test_finds_the_largest_coordinates_among_small_ones() -> None:
    tally = _tally(0, 1, 784, 20)
    places = [3, 100, 500, 783]
    tally[0, places] = torch.tensor([4000, -3900, 3800, -3700], dtype=torch.int32)
    sketch = count_sketch(784, 5, 500)
    kept = keep_top(sketch.unsketch(sketch.sketch(tally)), 4)
    assert kept[0].nonzero().flatten().tolist() == places
    assert kept[0, places].sign().tolist() == [1, -1, 1, -1]


def test_hashes_are_even_and_the_same_for_everybody() -> None:
    sketch = count_sketch(10_000, 5, 50)
    fills = np.stack([np.bincount(row, minlength=50) for row in sketch.bucket_JD])
    assert np.abs(fills - 200).max() < 6 * np.sqrt(200)
    assert np.abs(sketch.sign_JD.sum(1)).max() < 5 * 100
    assert set(np.unique(sketch.sign_JD).tolist()) == {-1, 1}
    assert count_sketch(784, 5, 500).bucket_JD[:, 0].tolist() == [412, 444, 430, 343, 110]


@pytest.mark.parametrize("sizes", [(0, 5, 9), (9, 2, 9), (9, 0, 9), (9, 5, 0)])
def test_sizes_without_meaning_are_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigError, match="rows must be odd"):
        count_sketch(*sizes)
