"""Algorithm 2: exactly the k largest, ties by index, bad gradients silent, and equal to its slow twin."""

from __future__ import annotations

import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import topk_sign_loop

from datalens.compression import topk_sign as kernel
from datalens.compression.topk_sign import _first_of_ties, keep_largest, signs_from_uniforms, topk_sign
from datalens.errors import ConfigError

CLIP = 1e-5


def _rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _gradients(seed: int, shape: tuple[int, int, int], levels: int, scale: float) -> torch.Tensor:
    """Gradients with many ties and zeros when there are few levels."""
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=shape) * levels) / levels * scale
    return torch.from_numpy(values.astype(np.float32))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 40),
    levels=st.sampled_from([1, 3, 1000]),
    scale=st.sampled_from([1e-38, 1e-44, 1e-5, 3e-5, 1.0, 1e37]),
    data=st.data(),
)
def test_equals_slow_twin(seed: int, dim: int, levels: int, scale: float, data: st.DataObject) -> None:
    top_k = data.draw(st.integers(1, dim))
    grad = _gradients(seed, (3, 2, dim), levels, scale)
    bad = data.draw(st.sampled_from([None, math.nan, math.inf, -math.inf]))
    if bad is not None:
        grad[1, 0, seed % dim] = bad
    uniform = torch.rand(grad.shape, generator=_rng(seed)) * 2 - 1
    vote, failed = signs_from_uniforms(grad, top_k, CLIP, uniform)
    slow_vote, slow_failed = topk_sign_loop(grad.numpy(), top_k, CLIP, uniform.numpy())
    np.testing.assert_array_equal(vote.numpy(), slow_vote)
    np.testing.assert_array_equal(failed.numpy(), slow_failed)


@pytest.mark.parametrize("top_k", [1, 7, 200, 784])
def test_exactly_k_votes_on_the_largest_coordinates(top_k: int) -> None:
    grad = torch.randn(6, 3, 784, generator=_rng()) * 1e-4
    vote = topk_sign(grad, top_k, CLIP, _rng(1)).vote_TBD
    assert vote.dtype == torch.int8
    assert (vote.abs().sum(-1) == top_k).all()
    smallest_kept = torch.where(vote != 0, grad.abs(), math.inf).amin(-1)
    largest_dropped = torch.where(vote == 0, grad.abs(), -1.0).amax(-1)
    assert (smallest_kept > largest_dropped).all()


def test_topk_with_ties_keeps_exactly_k() -> None:
    """Mutation named in the audit: top-k by threshold, which keeps every tied coordinate."""
    grad = torch.full((4, 2, 50), -3.0)
    vote = topk_sign(grad, 10, CLIP, _rng()).vote_TBD
    assert (vote[..., :10] == -1).all()
    assert (vote[..., 10:] == 0).all()


def test_kept_zeros_do_not_vote() -> None:
    grad = torch.zeros(1, 2, 8)
    grad[0, 1, 5] = 1e-9
    result = topk_sign(grad, 4, CLIP, _rng())
    assert result.vote_TBD.tolist() == [[[0] * 8, [0, 0, 0, 0, 0, 1, 0, 0]]]
    assert not result.failed_TB.any()


def test_r16_non_finite_gradients_vote_zero_and_are_named() -> None:
    grad = torch.randn(5, 1, 784, generator=_rng())
    good = topk_sign(grad, 10, CLIP, _rng(3)).vote_TBD
    grad[2, 0, 100], grad[3, 0, 783] = math.nan, math.inf
    vote, failed = topk_sign(grad, 10, CLIP, _rng(3))
    assert failed[:, 0].tolist() == [False, False, True, True, False]
    assert not vote[2:4].any()
    assert torch.equal(vote[[0, 1, 4]], good[[0, 1, 4]])


def test_denormal_gradients_vote_their_sign() -> None:
    grad = torch.tensor([[[1e-45, -1e-45, 0.0, 1e-45]]])
    assert topk_sign(grad, 3, CLIP, _rng()).vote_TBD.tolist() == [[[1, -1, 0, 1]]]


def test_clipped_coordinates_all_vote_their_sign() -> None:
    grad = torch.tensor([[[5.0, -0.5, 1e-5, -1e-5, 1e-7]]]).expand(50, 20, 5)
    vote = topk_sign(grad, 4, CLIP, _rng()).vote_TBD
    assert (vote == torch.tensor([1, -1, 1, -1, 0])).all()


@pytest.mark.parametrize("ratio", [-0.9, -0.25, 0.01, 0.5])
def test_sign_probability_follows_the_normalised_gradient(ratio: float) -> None:
    """P(+1) = (1 + g) / 2 with g normalised by this teacher's own largest kept magnitude, not by the clip."""
    draws = 40_000
    grad = torch.tensor([4e-6, 4e-6 * ratio]).expand(draws, 1, 2)
    vote = topk_sign(grad, 2, CLIP, _rng(5)).vote_TBD[:, 0].double()
    assert (vote[:, 0] == 1).all()
    spread = math.sqrt((1 - ratio**2) / draws)
    assert abs(vote[:, 1].mean().item() - ratio) < 4.5 * spread


def test_scale_is_each_teachers_own() -> None:
    grad = torch.randn(4, 3, 20, generator=_rng())
    rescaled = grad * torch.tensor([1.0, 2.0, 2.0**-20, 2.0**60]).reshape(4, 1, 1)
    assert torch.equal(
        topk_sign(grad * 2.0**-60, 5, CLIP, _rng(1)).vote_TBD,
        topk_sign(rescaled * 2.0**-90, 5, CLIP, _rng(1)).vote_TBD,
    )


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 23), max_size=4), block=st.integers(1, 4000))
def test_votes_do_not_depend_on_chunks(cuts: list[int], block: int) -> None:
    grad = torch.randn(23, 3, 29, generator=_rng(2))
    whole = topk_sign(grad, 7, CLIP, _rng(9))
    rng, edges = _rng(9), [0, *sorted(cuts), 23]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "BLOCK_ELEMENTS", block)
        parts = [topk_sign(grad[a:b], 7, CLIP, rng) for a, b in pairwise(edges)]
    assert torch.equal(torch.cat([part.vote_TBD for part in parts]), whole.vote_TBD)


def test_two_calls_draw_different_signs() -> None:
    grad = torch.rand(20, 2, 30, generator=_rng()) * 1e-6
    rng = _rng()
    assert not torch.equal(topk_sign(grad, 30, CLIP, rng).vote_TBD, topk_sign(grad, 30, CLIP, rng).vote_TBD)


def test_the_gradient_is_left_as_it_was() -> None:
    grad = torch.randn(3, 2, 9, generator=_rng())
    before = grad.clone()
    topk_sign(grad, 3, CLIP, _rng())
    assert torch.equal(grad, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_and_strides(dtype: torch.dtype) -> None:
    grad = (torch.randn(9, 4, 3, generator=_rng()) * 1e-3).to(dtype).permute(2, 1, 0)
    grad.requires_grad_()
    vote = topk_sign(grad, 4, CLIP, _rng(1)).vote_TBD
    assert torch.equal(vote, topk_sign(grad.detach().contiguous().float(), 4, CLIP, _rng(1)).vote_TBD)
    assert (vote.abs().sum(-1) == 4).all()


@pytest.mark.parametrize("top_k", [1, 7, 20, 40])
def test_ties_are_cut_alike_whether_or_not_they_are_looked_for(top_k: int) -> None:
    """Devices other than the CPU always cut ties, since asking whether there are any would wait for them."""
    magnitude = torch.randint(0, 6, (30, 3, 40), generator=torch.Generator().manual_seed(top_k)).float()
    bits = magnitude.view(torch.int32)
    cut = bits.topk(top_k, dim=-1).values[..., -1:].clamp(min=1)
    assert torch.equal(_first_of_ties(bits, cut, top_k), keep_largest(magnitude, top_k))


def test_keep_largest_path_of_other_devices_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The k-th largest by torch.topk, as on an accelerator, gives the same mask as NumPy's selection."""
    magnitude = _gradients(3, (50, 2, 61), 5, 1.0).abs()
    expected = keep_largest(magnitude, 20)
    monkeypatch.setattr(kernel, "_kth_largest", lambda keys, k: keys.topk(k, dim=-1).values[..., -1:])
    assert torch.equal(keep_largest(magnitude, 20), expected)


def test_the_kth_largest_of_other_devices_is_torchs() -> None:
    keys = torch.randint(0, 9, (4, 2, 30), dtype=torch.int32, generator=torch.Generator().manual_seed(0))
    elsewhere = SimpleNamespace(device=torch.device("meta"), topk=keys.topk)
    assert torch.equal(kernel._kth_largest(elsewhere, 7), kernel._kth_largest(keys, 7))  # type: ignore[arg-type]


def test_all_four_draws_of_a_word_are_even() -> None:
    """Each is one of 2^16 numbers in [-1, 1): counts in 16 equal parts, with a chance of error of 1 in 10^7."""
    draws = kernel._draw_signed_uniforms(torch.empty(1, 1, 4 * 40_000), torch.Generator().manual_seed(0))
    for lane in draws.reshape(-1, 4).T:
        counts = torch.histc(lane, 16, -1, 1)
        assert float(((counts - 2500) ** 2 / 2500).sum()) < 64


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), top_k=st.integers(1, 12), images=st.integers(1, 4))
def test_one_teacher_moves_the_tally_by_at_most_two_root_k(seed: int, top_k: int, images: int) -> None:
    grad = _gradients(seed, (6, images, 12), 3, 1e-5)
    neighbour = grad.clone()
    neighbour[seed % 6] = _gradients(seed + 1, (1, images, 12), 2, 10.0)[0]
    rng_a, rng_b = _rng(seed % 1000), _rng(seed % 1000)
    vote, other = (topk_sign(x, top_k, CLIP, r).vote_TBD for x, r in ((grad, rng_a), (neighbour, rng_b)))
    assert (vote.abs().sum(-1) <= top_k).all()
    change = (vote.sum(0) - other.sum(0)).double()
    assert (change.norm(dim=-1) <= 2 * math.sqrt(top_k) + 1e-9).all()
    assert change.norm() <= 2 * math.sqrt(top_k * images) + 1e-9


def test_flipped_votes_attain_the_sensitivity() -> None:
    grad = torch.randn(5, 3, 784, generator=_rng())
    flipped = grad.clone()
    flipped[4] = -flipped[4]
    first, second = (topk_sign(x, 200, CLIP, _rng(1)).vote_TBD for x in (grad, flipped))
    change = first.sum(0) - second.sum(0)
    norms = change.double().square().sum(-1)
    assert norms.tolist() == [4 * 200] * 3


@pytest.mark.parametrize(
    ("top_k", "clip"),
    [(0, CLIP), (-1, CLIP), (10, CLIP), (True, CLIP), (2, 0.0), (2, -1.0), (2, math.inf), (2, math.nan)],
)
def test_settings_without_meaning_are_refused(top_k: int, clip: float) -> None:
    with pytest.raises(ConfigError, match=r"top_k is|clip_bound is"):
        topk_sign(torch.ones(1, 1, 9), top_k, clip, _rng())


@pytest.mark.parametrize("grad", [torch.ones(3, 9), torch.ones(1, 1, 9, dtype=torch.int64)])
def test_gradients_of_the_wrong_kind_are_refused(grad: torch.Tensor) -> None:
    with pytest.raises(ConfigError, match="cannot be compressed"):
        topk_sign(grad, 2, CLIP, _rng())


def test_no_teachers_is_an_empty_vote() -> None:
    assert topk_sign(torch.zeros(0, 2, 9), 3, CLIP, _rng()).vote_TBD.shape == (0, 2, 9)


def test_off_the_cpu_no_value_is_read() -> None:
    """To read one would wait for the device; on "meta", where there are none, it is an error."""
    magnitude = torch.empty(2, 3, 8, device="meta")
    kept = keep_largest(magnitude, 2)
    assert (kept.shape, kept.dtype, kept.device.type) == (magnitude.shape, torch.bool, "meta")
    votes = topk_sign(magnitude, 2, CLIP, rng=torch.Generator())
    assert (votes.vote_TBD.shape, votes.failed_TB.shape) == (magnitude.shape, (2, 3))
