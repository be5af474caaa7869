"""The one sensitivity: reached by the worst votes, never passed by any."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.mechanisms.topagg import TopAgg
from datalens.noise import make_noise
from datalens.privacy.events import NoiseKind
from datalens.privacy.sensitivity import images_voted, sketch_sensitivity, topagg_sensitivity
from datalens.training.config import Voting


@pytest.mark.parametrize(("top_k", "images", "group"), [(1, 1, 1), (5, 3, 1), (200, 15, 4)])
def test_opposite_votes_reach_it(top_k: int, images: int, group: int) -> None:
    votes = np.ones((group, images * top_k))
    assert np.linalg.norm((votes - -votes).sum(0)) == pytest.approx(topagg_sensitivity(top_k, images, group))


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_no_votes_pass_it(seed: int, top_k: int, images: int) -> None:
    rng = np.random.default_rng(seed)
    before, after = np.zeros((2, images, 6))
    for image in range(images):
        for votes in (before, after):
            chosen = rng.choice(6, top_k, replace=False)
            votes[image, chosen] = rng.choice([-1, 1], top_k)
    assert np.linalg.norm(before - after) <= topagg_sensitivity(top_k, images) * (1 + 1e-12)


@pytest.mark.parametrize(("batch", "cap", "voted"), [(30, 15, 15), (30, None, 30), (8, 15, 8)])
def test_what_is_charged_is_for_the_images_voted_on(batch: int, cap: int | None, voted: int) -> None:
    assert images_voted(batch, cap) == voted
    assert Voting(batch_size=batch, images_per_teacher=cap).images_voted == voted
    mechanism = TopAgg(10, 5, 50.0, 0.5, make_noise(NoiseKind.ROUNDED), cap, 3)
    assert mechanism.event(batch, 64).sensitivity == topagg_sensitivity(5, voted, 3)


@pytest.mark.parametrize(("dim", "rows", "buckets"), [(6, 3, 5), (40, 3, 5), (30, 1, 200)])
def test_a_sketch_moves_by_at_most_its_spectral_norm_or_its_fullest_buckets(
    dim: int, rows: int, buckets: int
) -> None:
    """Against the matrix written out: the norm is NumPy's, and no vote of k signs moves its sketch further."""
    rng = np.random.default_rng(dim)
    bucket_JD, sign_JD = rng.integers(0, buckets, (rows, dim)), rng.choice([-1, 1], (rows, dim))
    matrix = np.zeros((rows, buckets, dim))
    for row in range(rows):
        for place in range(dim):
            matrix[row, bucket_JD[row, place], place] = sign_JD[row, place]
    norm = float(np.linalg.norm(matrix.reshape(rows * buckets, dim), 2))
    for top_k in (1, 3, dim):
        found = sketch_sensitivity(bucket_JD, sign_JD, buckets, top_k, 4, 3) / (3 * 2 * 2)
        assert found <= norm * np.sqrt(top_k) * (1 + 1e-8)
        furthest = 0.0
        for _ in range(300):
            vote_D = np.zeros(dim)
            vote_D[rng.choice(dim, top_k, replace=False)] = rng.choice([-1.0, 1.0], top_k)
            furthest = max(furthest, float(np.linalg.norm(matrix @ vote_D)))
        assert 0 < furthest <= found
    assert sketch_sensitivity(bucket_JD, sign_JD, buckets, 1, 1) == pytest.approx(2 * np.sqrt(rows))


def test_no_vote_at_all_passes_the_bound_of_a_sketch() -> None:
    """Every set of coordinates with every sign: the bound by the fullest buckets is reached by some of them."""
    bucket_JD, sign_JD = np.array([[0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]]), np.ones((2, 6))
    sketch = np.zeros((2, 3, 6))
    for row, place in itertools.product(range(2), range(6)):
        sketch[row, bucket_JD[row, place], place] = sign_JD[row, place]
    for top_k in range(1, 7):
        furthest = max(
            float(np.linalg.norm(sketch[:, :, list(places)] @ np.array(signs)))
            for places in itertools.combinations(range(6), top_k)
            for signs in itertools.product([-1.0, 1.0], repeat=top_k)
        )
        bound = sketch_sensitivity(bucket_JD, sign_JD, 3, top_k, 1) / 2
        assert furthest <= bound * (1 + 1e-12)
        assert bound <= furthest * 1.2
