"""The quantisers' variance: by drawing, by the votes that training really casts, and its bound over all x."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datalens.compression.topk_sign import topk_sign
from datalens.errors import ConfigError
from datalens.theory.quantiser import Quantiser, quantiser_variance, variance_bound


def send(kept, quantiser, rng, draws):
    """Independent draws [draws, K] of a quantised vector, by the words of the paper."""
    uniform = rng.random((draws, len(kept)))
    if quantiser is Quantiser.BERNOULLI:
        return np.sign(kept) * (uniform < abs(kept))
    return np.where(uniform < (1 + kept) / 2, 1.0, -1.0)


@pytest.mark.parametrize("quantiser", [Quantiser.BERNOULLI, Quantiser.SIGN])
def test_variance_agrees_with_drawing(quantiser):
    rng = np.random.default_rng(0)
    kept = rng.uniform(-1, 1, 40)
    drawn = send(kept, quantiser, rng, 20_000)
    assert abs(drawn.mean(axis=0) - kept).max() < 0.04  # unbiased
    seen = np.square(drawn - kept).sum(axis=1).mean()
    assert seen == pytest.approx(float(quantiser_variance(kept, quantiser)), rel=0.01)


def test_variance_agrees_with_the_votes_of_training():
    """Algorithm 2 as it is run: top-k, clip, divide by the largest, stochastic signs."""
    grad = np.random.default_rng(1).normal(size=64).astype(np.float32)
    top_k, clip = 24, 1.2
    kept = np.argsort(-abs(grad))[:top_k]
    normalised = np.zeros(64)
    normalised[kept] = np.clip(grad[kept], -clip, clip) / clip
    votes = topk_sign(
        torch.from_numpy(grad).expand(8000, 1, 64), top_k, clip, torch.Generator().manual_seed(0)
    ).vote_TBD[:, 0]
    seen = np.square(votes.numpy() - normalised).sum(axis=1).mean()
    assert seen == pytest.approx(float(quantiser_variance(normalised[kept], Quantiser.SIGN)), rel=0.02)


@pytest.mark.parametrize("quantiser", list(Quantiser))
@pytest.mark.parametrize("clip", [1e-5, 0.3, 0.5, 1.0])
def test_the_bound_covers_every_vector_and_is_reached(quantiser, clip):
    rng = np.random.default_rng(2)
    most = float(variance_bound(np.array(16), clip, quantiser))
    assert quantiser_variance(rng.uniform(-clip, clip, (500, 16)), quantiser).max() <= most + 1e-12
    worst = 0.0 if quantiser is Quantiser.SIGN else min(clip, 0.5)
    assert float(quantiser_variance(np.full(16, worst), quantiser)) == pytest.approx(most)


def test_the_bound_grows_with_k():
    k = np.arange(1, 11)
    assert (variance_bound(k, 0.5, Quantiser.BERNOULLI) == k / 4).all()
    assert (variance_bound(k, 1e-5, Quantiser.SIGN) == k).all()
    assert (variance_bound(k, 1e-5, Quantiser.NONE) == 0).all()


def test_a_size_above_one_is_no_probability():
    for call in (
        lambda: quantiser_variance(np.array([1.5]), Quantiser.BERNOULLI),
        lambda: quantiser_variance(np.array([np.nan]), Quantiser.SIGN),
        lambda: variance_bound(np.array(3), 2.0, Quantiser.SIGN),
        lambda: variance_bound(np.array(3), 0.0, Quantiser.NONE),
    ):
        with pytest.raises(ConfigError):
            call()
    assert float(variance_bound(np.array(3), 2.0, Quantiser.NONE)) == 0.0
