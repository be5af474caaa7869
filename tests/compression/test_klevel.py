"""Algorithm 5: even symmetric levels, right on average, a bad gradient silent, equal to its slow twin."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import klevel_loop

from datalens.compression import klevel as kernel
from datalens.compression.klevel import levels_from_uniforms, stochastic_levels
from datalens.compression.rotation import rotate, rotate_back
from datalens.errors import ConfigError

CLIP = 1e-5


def _rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@settings(max_examples=60, deadline=None)
@given(levels=st.integers(2, 128), seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.1, 1.0, 30.0]))
def test_equals_slow_twin(levels: int, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    rotated = rng.normal(size=16) * scale
    uniform = rng.random(16)
    if seed % 5 == 0:
        rotated[3] = math.nan
    vote, failed = levels_from_uniforms(
        torch.from_numpy(rotated)[None, None], levels, 1.0, torch.from_numpy(uniform)[None, None]
    )
    assert vote.flatten().tolist() == klevel_loop(rotated, levels, 1.0, uniform)
    assert failed.item() is bool(seed % 5 == 0)


@pytest.mark.parametrize("levels", [2, 3, 8, 128])
def test_r_d2p_levels_are_even_symmetric_and_as_many_as_asked(levels: int) -> None:
    """Known mistake: levels -k/2 + 2r (and those of the code) are not symmetric, so a vote of nothing has a sign."""
    place = torch.linspace(-3, 3, 4000).reshape(1, 1, -1)
    vote = levels_from_uniforms(place, levels, 1.0, torch.rand(place.shape, generator=_rng()))[0]
    assert sorted(set(vote.flatten().tolist())) == list(range(1 - levels, levels, 2))


@pytest.mark.parametrize("levels", [2, 5, 16])
@pytest.mark.parametrize("share", [-1.0, -0.77, -0.2, 0.0, 0.01, 0.5, 0.93, 1.0, 4.0])
def test_r_d2p_votes_are_right_on_average_for_the_gradient_itself(levels: int, share: float) -> None:
    """Known mistake: g-hat is normalised but g is quantised. The mean is that of the clipped g, no more, no less."""
    draws = 40_000
    rotated = torch.full((draws, 1, 1), share * CLIP)
    votes, _ = levels_from_uniforms(rotated, levels, CLIP, torch.rand(rotated.shape, generator=_rng(levels)))
    mean = votes.double().mean().item() / (levels - 1)
    wanted = min(max(share, -1.0), 1.0)
    step = 2 / (levels - 1)
    spread = step / 2 / math.sqrt(draws)
    assert abs(mean - wanted) <= 4.5 * spread


@pytest.mark.parametrize("levels", [2, 5, 16])
def test_rounding_has_the_variance_of_a_fair_choice_of_two_levels(levels: int) -> None:
    """Neither rounded to the nearest (too little) nor spread over more than two levels (too much)."""
    draws, share = 40_000, 0.3
    rotated = torch.full((draws, 1, 1), share * CLIP)
    votes, _ = levels_from_uniforms(rotated, levels, CLIP, torch.rand(rotated.shape, generator=_rng(7)))
    part = ((share + 1) * (levels - 1) / 2) % 1
    wanted = 4 * part * (1 - part)
    assert votes.double().var().item() == pytest.approx(wanted, abs=0.02)


def test_the_clip_comes_after_the_rotation() -> None:
    """One huge coordinate is spread over all by the rotation first, so that every rotated one is clipped."""
    grad = torch.zeros(1, 1, 16)
    grad[0, 0, 3] = 1.0
    vote = stochastic_levels(grad, 8, CLIP, _rng()).vote_TBD
    assert vote.abs().flatten().tolist() == [7] * 16
    assert torch.equal(vote[0, 0].sign(), rotate(grad)[0, 0].sign().to(torch.int8))


def test_the_mean_of_many_teachers_is_the_gradient_rotated_back() -> None:
    grad = torch.randn(1, 1, 12, generator=_rng(3)) * CLIP / 20
    votes = stochastic_levels(grad.expand(60_000, 1, 12), 4, CLIP, _rng(4)).vote_TBD.double()
    mean = rotate_back(votes.mean(0) / 3, 12)[0] * CLIP
    torch.testing.assert_close(mean, grad[0, 0].double(), atol=4.5 * CLIP / 3 / math.sqrt(60_000), rtol=0)


def test_r16_non_finite_gradients_vote_zero_and_are_named() -> None:
    grad = torch.randn(4, 2, 12, generator=_rng()) * CLIP
    good = stochastic_levels(grad, 4, CLIP, _rng(1)).vote_TBD
    grad[1, 0, 3], grad[2, 1, 0] = math.nan, math.inf
    vote, failed = stochastic_levels(grad, 4, CLIP, _rng(1))
    assert failed.tolist() == [[False, False], [True, False], [False, True], [False, False]]
    assert not vote[1, 0].any()
    assert not vote[2, 1].any()
    assert torch.equal(vote[~failed], good[~failed])


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 23), max_size=4), block=st.integers(1, 4000))
def test_votes_do_not_depend_on_chunks(cuts: list[int], block: int) -> None:
    grad = torch.randn(23, 3, 29, generator=_rng(2)) * CLIP
    whole = stochastic_levels(grad, 7, CLIP, _rng(9)).vote_TBD
    rng, edges = _rng(9), [0, *sorted(cuts), 23]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "BLOCK_ELEMENTS", block)
        parts = [stochastic_levels(grad[a:b], 7, CLIP, rng).vote_TBD for a, b in pairwise(edges)]
    assert torch.equal(torch.cat(parts), whole)


@pytest.mark.parametrize(("levels", "clip"), [(1, CLIP), (129, CLIP), (True, CLIP), (4, 0.0), (4, math.inf)])
def test_settings_without_meaning_are_refused(levels: int, clip: float) -> None:
    with pytest.raises(ConfigError, match=r"levels is|clip_bound is"):
        stochastic_levels(torch.ones(1, 1, 9), levels, clip, _rng())
