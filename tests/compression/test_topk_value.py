"""Top-k with values: exactly what is kept, how it is rounded, and how far one teacher moves the sum."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.compression.topk_value import topk_value
from datalens.errors import ConfigError


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**31), top_k=st.integers(1, 12), unit=st.integers(1, 127), clip=st.floats(1e-3, 10)
)
def test_equals_the_obvious_loop_and_stays_within_its_norm(
    seed: int, top_k: int, unit: int, clip: float
) -> None:
    grad = torch.randn(2, 3, 12, generator=torch.Generator().manual_seed(seed))
    votes = topk_value(grad, top_k, clip, unit)
    assert votes.vote_TBD.dtype == torch.int8
    assert not bool(votes.failed_TB.any())
    for found, row in zip(votes.vote_TBD.reshape(-1, 12), grad.reshape(-1, 12), strict=True):
        kept = set(row.abs().argsort(descending=True)[:top_k].tolist())
        scale = min(float(row.abs().max()), clip)
        for place, value in enumerate(row.tolist()):
            exact = max(-1.0, min(1.0, value / scale)) * unit if place in kept else 0.0
            assert abs(int(found[place]) - exact) <= 0.5 + 1e-4
        assert int(found.long().square().sum()) <= unit**2 * top_k, "in whole numbers: roots would round"


def test_what_is_not_finite_says_nothing() -> None:
    grad = torch.ones(1, 3, 4)
    grad[0, 0, 1], grad[0, 1, 2] = math.nan, math.inf
    votes = topk_value(grad, 4, 1.0, 10)
    assert votes.failed_TB.tolist() == [[True, True, False]]
    assert votes.vote_TBD.tolist() == [[[0] * 4, [0] * 4, [10] * 4]]


@pytest.mark.parametrize("unit", [0, 128])
def test_a_unit_that_an_int8_cannot_hold_is_refused(unit: int) -> None:
    with pytest.raises(ValueError, match="an int8 vote holds 1 to 127"):
        topk_value(torch.ones(1, 1, 4), 2, 1.0, unit)
    assert topk_value(torch.ones(1, 1, 4), 2, 1.0, 127).vote_TBD.max() == 127


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="top_k is 5"):
        topk_value(torch.ones(1, 1, 4), 5, 1.0, 10)
