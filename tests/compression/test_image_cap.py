"""A teacher's votes stay within the cap on images, whatever its gradients."""

from __future__ import annotations

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import strongest_images_loop, tally_of_images_loop

from datalens.compression.image_cap import strongest_images, tally_of_images
from datalens.compression.topk_sign import topk_sign


@settings(max_examples=25, deadline=None)
@given(
    teachers=st.integers(1, 5),
    images=st.integers(1, 7),
    most=st.integers(1, 7),
    seed=st.integers(0, 2**31),
    spoil=st.sampled_from([None, math.nan, math.inf]),
)
def test_the_strongest_images_are_kept(
    teachers: int, images: int, most: int, seed: int, spoil: float | None
) -> None:
    most = min(most, images)
    rng = torch.Generator().manual_seed(seed)
    grad = torch.randint(-2, 3, (teachers, images, 6), generator=rng).float()  # ties are common
    if spoil is not None:
        grad[0, 0, 0] = spoil
    kept, image = strongest_images(grad, most)
    assert image.tolist() == strongest_images_loop(grad, most)
    for teacher in range(teachers):
        for place, number in enumerate(image[teacher].tolist()):
            assert torch.equal(kept[teacher, place].nan_to_num(), grad[teacher, number].nan_to_num())


@settings(max_examples=40, deadline=None)
@given(most=st.integers(1, 6), top_k=st.integers(1, 9), teacher=st.integers(0, 3), seed=st.integers(0, 2**31))
def test_one_teacher_moves_the_joint_tally_by_at_most_the_stated_sensitivity(
    most: int, top_k: int, teacher: int, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    grad = torch.randn(4, 6, 9, generator=rng)
    other = grad.clone()
    other[teacher] = -grad[teacher] * torch.rand(6, 1, generator=rng)  # opposite signs, other images

    def tally(gradients: torch.Tensor) -> torch.Tensor:
        kept, image = strongest_images(gradients, most)
        votes = topk_sign(kept, top_k, 1e-5, torch.Generator().manual_seed(7)).vote_TBD
        return tally_of_images(votes, image, 6)

    moved = (tally(grad) - tally(other)).double().norm()
    assert moved <= 2 * math.sqrt(most * top_k) + 1e-9


def test_the_bound_is_reached_by_flipped_votes_on_other_coordinates_too() -> None:
    grad = torch.zeros(1, 4, 6)
    grad[0, :2, :3] = 1.0
    kept, image = strongest_images(grad, 2)
    votes = topk_sign(kept, 3, 1e-5, torch.Generator().manual_seed(0)).vote_TBD
    moved = tally_of_images(votes, image, 4) - tally_of_images(-votes, image, 4)
    assert float(moved.double().norm()) == 2 * math.sqrt(2 * 3)


@settings(max_examples=25, deadline=None)
@given(
    teachers=st.integers(0, 4), images=st.integers(1, 6), most=st.integers(1, 6), seed=st.integers(0, 2**31)
)
def test_the_tally_counts_each_vote_once(teachers: int, images: int, most: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    votes = torch.randint(-1, 2, (teachers, min(most, images), 3), generator=rng, dtype=torch.int8)
    chosen = torch.rand(teachers, images, generator=rng).argsort(1)[:, :most]
    tally = tally_of_images(votes, chosen, images)
    assert tally.dtype == torch.int32
    assert tally.tolist() == tally_of_images_loop(votes, chosen, images)


def test_a_tally_beyond_what_a_float_holds_is_still_exact() -> None:
    votes = torch.full((140_000, 1, 1), 127, dtype=torch.int8)  # float32 counts by ones up to 2**24 only
    tally = tally_of_images(votes, torch.zeros(140_000, 1, dtype=torch.int64), 1)
    assert tally.tolist() == [[127 * 140_000]]
