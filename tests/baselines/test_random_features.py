"""Random Fourier features: length 1, the kernel on average, and the same bits for an image in any company."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.baselines.random_features import RandomFeatures, public_length_scale
from datalens.data.shapes import draw_shapes
from datalens.errors import ConfigError
from datalens.mechanisms.vector_sum import Grid

SHAPE = (1, 8, 8)


def _features(num_features: int = 64, scale: float = 3.0, seed: int = 0) -> RandomFeatures:
    return RandomFeatures.draw(num_features, SHAPE, scale, torch.Generator().manual_seed(seed))


def _bytes(seed: int, count: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (count, 64), dtype=np.uint8))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.01, 100.0))
def test_no_feature_is_longer_than_one(seed: int, scale: float) -> None:
    """A known mistake: sqrt(2 / M) cos(W x + b) is up to sqrt(2) long, while 1 is charged."""
    extremes = torch.tensor([[0] * 64, [255] * 64, [0, 255] * 32], dtype=torch.uint8)
    features_RF = _features(scale=scale).of_bytes(torch.cat([_bytes(seed, 20), extremes]))
    assert torch.allclose(features_RF.norm(dim=1), torch.ones(23, dtype=torch.float64), rtol=0, atol=1e-12)
    assert int(Grid(1.0, 512, 64).put(features_RF).square().sum(1).max()) <= 512**2


def test_an_image_has_the_same_bits_in_any_company() -> None:
    """A known mistake: normalising by statistics of the data, so that one record changes all features."""
    features, images = _features(scale=0.7), _bytes(3, 50)
    together = features.of_bytes(images)
    alone = torch.cat([features.of_bytes(image[None]) for image in images])
    behind = features.of_bytes(torch.cat([_bytes(9, 7), images]))[7:]
    assert torch.equal(together, alone) and torch.equal(together, behind)


def test_inner_products_are_the_gaussian_kernel() -> None:
    features, images = _features(20_000, scale=4.0), _bytes(5, 6)
    found = features.of_bytes(images)
    unit = images.double() / 255
    kernel = torch.exp(-torch.cdist(unit, unit).square() / (2 * 4.0**2))
    assert float((found @ found.T - kernel).abs().max()) < 0.05
    assert float(kernel.fill_diagonal_(0).max()) < 0.9  # so that constant features would not pass


def test_generated_images_have_the_features_of_the_same_bytes() -> None:
    features = _features(scale=1.0)
    data = draw_shapes(20, image_size=8)
    exact = features.of_bytes(torch.from_numpy(data.images).flatten(1))
    smooth = features.of_images(data.to_unit())
    assert float((exact - smooth).abs().max()) < 1e-3


def test_generated_features_have_a_gradient() -> None:
    images = torch.full((2, *SHAPE), 0.5, requires_grad=True)
    _features().of_images(images).sum().backward()
    assert images.grad is not None and float(images.grad.abs().min()) > 0


def test_the_public_length_scale_is_the_distance_of_noise_images() -> None:
    noise = torch.rand(2, 4000, 3 * 8 * 8, generator=torch.Generator().manual_seed(1))
    measured = math.sqrt(float((noise[0] - noise[1]).square().sum(1).mean()))
    assert public_length_scale((3, 8, 8)) == pytest.approx(measured, rel=0.01)


def test_a_length_scale_without_exact_phases_is_refused() -> None:
    with pytest.raises(ConfigError, match="length_scale is 1e-09"):
        _features(scale=1e-9)
