"""The public rotation: an isometry with an exact inverse, the same for everybody, equal to its slow twin."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import rotation_loop

from datalens.compression.rotation import padded_dim, public_signs, rotate, rotate_back


@settings(max_examples=30, deadline=None)
@given(dim=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_equals_slow_twin(dim: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=dim)
    slow = rotation_loop(x, public_signs(padded_dim(dim)).tolist())
    np.testing.assert_allclose(rotate(torch.from_numpy(x)).numpy(), slow, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(dim=st.integers(1, 3000), seed=st.integers(0, 2**32 - 1))
def test_keeps_the_norm_and_is_undone(dim: int, seed: int) -> None:
    x = torch.randn(2, dim, generator=torch.Generator().manual_seed(seed % 2**32), dtype=torch.float64)
    turned = rotate(x)
    assert turned.shape == (2, padded_dim(dim))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(rotate_back(turned, dim), x, atol=1e-11, rtol=0)


def test_the_inverse_is_exact_on_integers() -> None:
    tally = torch.randint(-4000, 4001, (3, 1024), generator=torch.Generator().manual_seed(1)).double()
    assert torch.equal(rotate(rotate_back(tally, 1024)), tally)


def test_spreads_one_coordinate_over_all() -> None:
    turned = rotate(torch.eye(784)[5])
    assert torch.equal(turned.abs(), torch.full((1024,), 1 / 32))


@pytest.mark.parametrize("width", [1, 2, 16, 1024])
def test_signs_are_fair_and_the_same_for_everybody(width: int) -> None:
    signs = public_signs(width)
    assert set(signs.tolist()) <= {-1, 1}
    assert signs.shape == (width,)
    if width == 1024:
        assert abs(int(signs.sum())) < 5 * 32
        assert signs[:8].tolist() == [1, -1, 1, -1, 1, -1, 1, 1]
