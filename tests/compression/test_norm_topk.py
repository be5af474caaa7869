"""Algorithm 4's selection: equal to its slow twin, bounded whatever rounding does, bad rows silent."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import dimension_topk_loop, norm_topk_loop

from datalens.compression import norm_topk as kernel
from datalens.compression.norm_topk import (
    by_dimension,
    by_norm,
    clip_factor,
    dimension_topk,
    norm_topk,
    within_parts,
)
from datalens.errors import ConfigError

KEEPS = [0.05, 0.5, 0.6, 0.75, 0.8, 0.999, 1.0]


def rows(seed: int, shape: tuple[int, int], levels: int, scale: float) -> torch.Tensor:
    """Gradients with many ties and zeros where there are few levels."""
    values = np.round(np.random.default_rng(seed).normal(size=shape) * levels) / levels * scale
    return torch.from_numpy(values.astype(np.float32))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 60),
    levels=st.sampled_from([1, 3, 100]),
    scale=st.sampled_from([1e-30, 1e-22, 1e-20, 1e-18, 1e-15, 1e-5, 1.0, 1e15, 1e30]),
    keep=st.sampled_from(KEEPS),
    bad=st.sampled_from([None, math.nan, math.inf, -math.inf]),
)
def test_equals_slow_twin(
    seed: int, dim: int, levels: int, scale: float, keep: float, bad: float | None
) -> None:
    grad_RD = rows(seed, (4, dim), levels, scale)
    if bad is not None:
        grad_RD[1, seed % dim] = bad
    expected = norm_topk_loop(grad_RD.numpy(), keep) if keep < 1 else kept_whole(grad_RD)
    np.testing.assert_array_equal(norm_topk(grad_RD, keep).numpy(), expected)
    expected = dimension_topk_loop(grad_RD.numpy(), keep) if keep < 1 else kept_whole(grad_RD)
    np.testing.assert_array_equal(dimension_topk(grad_RD, keep).numpy(), expected)


def kept_whole(grad_RD: torch.Tensor) -> np.ndarray:
    """The rows, those that cannot be used set to zero."""
    return torch.where(torch.isfinite(grad_RD.square().sum(1, keepdim=True)), grad_RD, 0.0).numpy()


@pytest.mark.parametrize("keep", [0.05, 0.6, 0.999])
def test_wide_rows_equal_slow_twin(keep: float) -> None:
    """So wide that what is taken reaches beyond the first part that is looked at, and in some rows only."""
    grad_RD = torch.randn(5, 300, generator=torch.Generator().manual_seed(1))
    grad_RD[1] *= torch.logspace(0, -6, 300)
    grad_RD[2] = 1.0
    grad_RD[3] = grad_RD[3].sign() * (torch.arange(300) % 7)
    expected = norm_topk_loop(grad_RD.numpy(), keep) if keep < 1 else grad_RD.numpy()
    np.testing.assert_array_equal(norm_topk(grad_RD, keep).numpy(), expected)


@pytest.mark.parametrize("keep", [0.05, 0.6, 0.999, 1 - 1e-9])
@pytest.mark.parametrize("scale", [1e-22, 1e-20, 1e-18, 1e-16, 1e-14, 1.0])
def test_rows_of_zeros_and_of_squares_next_to_nothing_equal_slow_twin(keep: float, scale: float) -> None:
    """Where bits are changed so that zeros differ, no square that counts may change."""
    rng = torch.Generator().manual_seed(2)
    grad_RD = torch.randn(6, 400, generator=rng) * scale
    grad_RD[torch.rand(6, 400, generator=rng) < 0.6] = 0.0
    grad_RD[1] *= torch.logspace(0, -10, 400)
    grad_RD[2, 50:] = 0.0
    grad_RD[3] = torch.where(torch.rand(400, generator=rng) < 0.5, scale, 1e-21)
    grad_RD[4] = 0.0
    np.testing.assert_array_equal(norm_topk(grad_RD, keep).numpy(), norm_topk_loop(grad_RD.numpy(), keep))


def test_selection_on_other_devices_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """There ``topk`` takes the place of NumPy's selection."""
    grad_RD = rows(3, (6, 500), 20, 1.0)
    here = norm_topk(grad_RD, 0.8)
    monkeypatch.setattr(kernel, "_largest", lambda square, count: square.topk(count, dim=1).values)
    assert torch.equal(here, norm_topk(grad_RD, 0.8))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 300),
    exponent=st.integers(-30, 18),
    bound_exponent=st.integers(-12, 12),
    keep=st.sampled_from(KEEPS),
    select=st.sampled_from([by_norm, by_dimension]),
)
def test_bound_holds_exactly_in_the_numbers_that_leave(
    seed: int, dim: int, exponent: int, bound_exponent: int, keep: float, select: kernel.Selection
) -> None:
    """The squared norm, summed in fractions, never exceeds ``keep * C**2``: not by one bit."""
    grad_RD = rows(seed, (2, dim), 7, 10.0**exponent)
    max_grad_norm = 10.0**bound_exponent
    share = keep if select is by_norm else 1.0
    kept = select(grad_RD.square(), keep)
    factor_R = clip_factor(kept, max_grad_norm, math.sqrt(share) * max_grad_norm)
    out_RD = grad_RD * kept.mask_RD * factor_R[:, None]
    for row in out_RD.numpy():
        total = sum(Fraction(float(value)) ** 2 for value in row)
        assert total <= Fraction(math.sqrt(share) * max_grad_norm) ** 2


def test_bound_does_not_rest_on_the_selection() -> None:
    """Were too much kept, by a slip or by rounding, rows would be shortened to the bound all the same."""
    grad_RD = torch.randn(3, 50, generator=torch.Generator().manual_seed(0)) * 10
    kept = by_norm(grad_RD.square(), 1.0)
    factor_R = clip_factor(kept, 1.0, math.sqrt(0.5))
    lengths = torch.linalg.vector_norm(grad_RD.double() * factor_R[:, None].double(), dim=1)
    assert (lengths <= math.sqrt(0.5)).all() and (lengths > 0.999 * math.sqrt(0.5)).all()


def test_short_rows_are_not_stretched() -> None:
    grad_RD = torch.tensor([[0.3, 0.1], [0.0, 0.0], [0.0, 1e-30]])
    kept = by_norm(grad_RD.square(), 0.95)
    assert clip_factor(kept, 1.0, 1.0).tolist() == [1.0, 1.0, 1.0]


def test_rows_that_cannot_be_used_are_zeros_and_harm_no_other() -> None:
    grad_RD = torch.tensor([[1.0, 2.0], [math.nan, 2.0], [1.0, -math.inf], [3e38, 3e38], [1.0, 2.0]])
    for topk in (norm_topk, dimension_topk):
        out_RD = topk(grad_RD, 0.9)
        assert out_RD[1:4].eq(0).all()
        assert torch.equal(out_RD[0], out_RD[4]) and out_RD[0].any()
    assert by_norm(grad_RD.square(), 0.9).failed_R.tolist() == [False, True, True, True, False]


def test_one_coordinate_above_the_share_leaves_nothing() -> None:
    """Algorithm 4 stops right below the target, and the first step would overshoot."""
    grad_RD = torch.tensor([[10.0, 1.0, 1.0]])
    assert norm_topk(grad_RD, 0.8).eq(0).all()
    assert norm_topk(grad_RD, 0.995).tolist() == [[10.0, 1.0, 0.0]]
    assert dimension_topk(grad_RD, 0.4).tolist() == [[10.0, 0.0, 0.0]]


@pytest.mark.parametrize("keep", [0.3, 0.8])
def test_what_is_kept_is_a_matter_of_direction_only(keep: float) -> None:
    """So clipping may come before or after: a power of two changes no bit of the selection."""
    grad_RD = torch.randn(4, 200, generator=torch.Generator().manual_seed(2))
    assert torch.equal(norm_topk(grad_RD * 2**-9, keep), norm_topk(grad_RD, keep) * 2**-9)


def test_all_is_kept_again_and_again_only_by_keep_one() -> None:
    grad_RD = torch.randn(3, 40, generator=torch.Generator().manual_seed(2))
    assert torch.equal(norm_topk(grad_RD, 1.0), grad_RD)
    once = norm_topk(grad_RD, 0.8)
    assert (norm_topk(once, 0.8) != once).any(1).all()
    assert torch.equal(dimension_topk(dimension_topk(grad_RD, 0.5), 0.5), dimension_topk(grad_RD, 0.5))


def test_no_rows_and_other_types() -> None:
    assert norm_topk(torch.zeros(0, 7), 0.8).shape == (0, 7)
    double = norm_topk(torch.tensor([[3.0, 4.0, 1.0]], dtype=torch.float64), 0.9)
    assert double.dtype == torch.float64 and double.any()
    assert norm_topk(torch.ones(1, 4, dtype=torch.bfloat16), 0.5).tolist() == [[1.0, 1.0, 0.0, 0.0]]


@pytest.mark.parametrize("keep", [0, -0.1, 1.1, math.nan, True, "0.8"])
def test_shares_outside_the_range_are_refused(keep: float) -> None:
    with pytest.raises(ConfigError, match=r"keep is .*above 0 and at most 1"):
        norm_topk(torch.ones(1, 2), keep)


def test_shapes_without_a_meaning_are_refused() -> None:
    with pytest.raises(ConfigError, match="records, coordinates"):
        norm_topk(torch.ones(3), 0.5)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    levels=st.sampled_from([1, 3, 100]),
    keep=st.sampled_from(KEEPS),
    bad=st.sampled_from([None, math.nan, math.inf]),
)
def test_parts_are_selected_by_themselves_and_rows_keep_the_bound(
    seed: int, sizes: list[int], levels: int, keep: float, bad: float | None
) -> None:
    grad_RD = rows(seed, (4, sum(sizes)), levels, 1.0)
    grad_RD[:, sizes[0] :] *= 1e-3  # one part is far below the other
    if bad is not None:
        grad_RD[1, seed % sum(sizes)] = bad
    kept = within_parts(grad_RD.square(), keep, sizes, by_norm)
    selected = torch.cat([norm_topk(part, keep) for part in grad_RD.split(sizes, 1)], 1)
    failed_R = ~torch.isfinite(grad_RD).all(1)
    assert kept.failed_R.tolist() == failed_R.tolist()
    assert not kept.mask_RD[failed_R].any(), "nothing of a failed row stays, its other parts neither"
    selected[failed_R] = 0.0
    grad_RD[failed_R] = 0.0
    np.testing.assert_array_equal((grad_RD * kept.mask_RD).numpy(), selected.numpy())
    torch.testing.assert_close(kept.kept_R, selected.double().square().sum(1), rtol=1e-6, atol=1e-30)
    torch.testing.assert_close(kept.total_R, grad_RD.double().square().sum(1), rtol=1e-6, atol=1e-30)
    bound = math.sqrt(keep) * 0.01
    moved_R = (grad_RD * kept.mask_RD * clip_factor(kept, 0.01, bound)[:, None]).double().norm(dim=1)
    assert float(moved_R.max()) <= bound


def test_off_the_cpu_the_largest_are_chosen_without_reading_a_value() -> None:
    found = kernel._largest(torch.empty(2, 8, device="meta"), 3)
    assert (found.shape, found.device.type) == ((2, 3), "meta")
