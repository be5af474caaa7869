"""G-PATE's votes: one bin a coordinate at most, as the slow twin counts them, and what comes back from bins."""

from __future__ import annotations

import itertools
import math

import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.compression.projection import NO_ANSWER, bin_votes, decode_bins, draw_projection
from datalens.errors import ConfigError


def _rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), num_bins=st.integers(2, 7), clip=st.sampled_from([0.05, 0.6, 3.0]))
def test_votes_equal_the_slow_twin(seed: int, num_bins: int, clip: float) -> None:
    """Where a coordinate does not lie on an edge to a millionth of a bin, which float32 cannot decide."""
    grad, basis = torch.randn(4, 3, 9, generator=_rng(seed)), draw_projection(9, 5, _rng(seed + 1))
    grad[0, 1], grad[2, 2, 4], grad[3, 0, 1] = 0.0, math.nan, math.inf
    vote = bin_votes(grad, basis, clip, num_bins)
    slow = torch.tensor(reference.bin_votes_loop(grad, basis, clip, num_bins))
    found = torch.where(vote.sum(3) > 0, vote.argmax(3), NO_ANSWER)
    assert vote.dtype == torch.int8
    assert (found != slow).sum() <= 1
    assert ((found - slow).abs() <= 1).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_row_that_is_not_finite_votes_for_nothing_and_spoils_no_other(bad: float) -> None:
    grad, basis = torch.randn(3, 2, 6, generator=_rng(0)), draw_projection(6, 4, _rng(1))
    sound = bin_votes(grad, basis, 1.0, 5)
    grad[1, 0, 3] = bad
    vote = bin_votes(grad, basis, 1.0, 5)
    assert not vote[1, 0].any()
    vote[1, 0] = sound[1, 0]
    assert torch.equal(vote, sound)


@pytest.mark.parametrize("scale", [1e-38, 1e-20, 1.0, 1e20, 3e38])
def test_votes_do_not_depend_on_the_scale_of_a_gradient(scale: float) -> None:
    grad = torch.tensor([[[0.25, -1.0, 0.5]]])
    basis = draw_projection(3, 3, _rng(4))
    assert torch.equal(bin_votes(grad * scale, basis, 1.0, 8), bin_votes(grad, basis, 1.0, 8))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=4, max_size=4),
        min_size=2,
        max_size=2,
    )
)
def test_whatever_a_teacher_holds_it_moves_the_votes_by_no_more_than_the_guarantee(rows) -> None:
    basis = draw_projection(4, 3, _rng(2))
    votes = [bin_votes(torch.tensor(row).view(1, 1, 4), basis, 0.5, 4).double() for row in rows]
    for vote in votes:
        assert set(vote.sum(3).flatten().tolist()) <= {0.0, 1.0}
    assert (votes[0] - votes[1]).norm() <= math.sqrt(2 * 3) + 1e-12


def test_the_guarantee_is_reached_by_opposite_gradients() -> None:
    grad = torch.randn(1, 4, 20, generator=_rng(5))
    basis = draw_projection(20, 6, _rng(6))
    votes = [bin_votes(sign * grad, basis, 0.5, 10).double() for sign in (1, -1)]
    assert (votes[0] - votes[1]).norm() == pytest.approx(math.sqrt(2 * 4 * 6))


def test_projected_vectors_keep_their_length_on_average() -> None:
    vector = torch.randn(50, generator=_rng(7))
    lengths = torch.stack(
        [(vector @ draw_projection(50, 8, _rng(seed))).square().sum() for seed in range(400)]
    )
    assert float(lengths.mean() / vector.square().sum()) == pytest.approx(1, abs=0.1)


def test_what_is_decoded_points_where_the_gradient_points() -> None:
    """With all coordinates kept and fine bins nothing but rounding is lost; the turn is by basis @ basis.T."""
    grad, basis = torch.randn(1, 2, 12, generator=_rng(8)), draw_projection(12, 12, _rng(9))
    vote = bin_votes(grad, basis, 3.0, 4000)
    back = decode_bins(vote.sum(0, dtype=torch.int32).argmax(2), basis, 3.0, 4000)
    expected = grad[0] / grad[0].norm(dim=1, keepdim=True) @ basis @ basis.T
    assert torch.allclose(back, expected, atol=0.02)


def test_no_answer_moves_nothing_and_bins_decode_to_their_centres() -> None:
    basis = torch.eye(3)
    assert decode_bins(torch.full((2, 3), NO_ANSWER), basis, 1.0, 4).tolist() == [[0.0] * 3] * 2
    assert decode_bins(torch.tensor([[0, 1, NO_ANSWER]]), basis, 2.0, 2).tolist() == [[-1.0, 1.0, 0.0]]
    centres = [decode_bins(torch.tensor([[k]]), torch.eye(1), 1.0, 5).item() for k in range(5)]
    assert centres == pytest.approx([-0.8, -0.4, 0.0, 0.4, 0.8])
    assert all(a < b for a, b in itertools.pairwise(centres))


@pytest.mark.parametrize(("clip", "bins"), [(0.0, 4), (math.inf, 4), (math.nan, 4), (1.0, 1), (1.0, True)])
def test_bins_without_meaning_are_refused(clip: float, bins: int) -> None:
    with pytest.raises(ConfigError, match=r"^(clip_bound|num_bins) is"):
        bin_votes(torch.ones(1, 1, 2), torch.eye(2), clip, bins)
    with pytest.raises(ConfigError, match=r"^num_projected is"):
        draw_projection(4, 5, _rng(0))
