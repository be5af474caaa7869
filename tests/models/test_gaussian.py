"""A generator that is one Gaussian a class: its images have the law that it was given."""

from __future__ import annotations

import torch

from datalens.models.frequencies import Frequencies
from datalens.models.gaussian import GaussianImages

BASIS = Frequencies((1, 8, 8), 4)


def generator(grain: float = 0.0) -> GaussianImages:
    """Two classes of grey images; the second varies along one direction."""
    made = GaussianImages(BASIS, 2, 3)
    mean_YD = torch.zeros(2, 64)
    mean_YD[:, 0] = 8 * 0.5  # the first cosine is constant, 1/8 everywhere
    factor_YKL = torch.zeros(2, 3, 16)
    factor_YKL[1, 0, 1] = 0.3
    made.set_law(mean_YD, factor_YKL, torch.full((2, BASIS.num_bins), grain))
    return made


def draw(made: GaussianImages, label: int, count: int = 4000) -> torch.Tensor:
    latents = torch.randn(count, made.latent_dim, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        return made(latents, torch.full((count,), label))


def test_a_class_varies_along_its_own_directions_only() -> None:
    made = generator()
    assert torch.allclose(draw(made, 0), torch.tensor(0.5), atol=1e-6)
    numbers_BD = draw(made, 1).double().flatten(1)
    varying = numbers_BD - 0.5
    covariance = varying.T @ varying / len(varying)
    value, direction = torch.linalg.eigh(covariance)
    assert abs(float(value[-1]) - 0.09) < 0.01 and float(value[-2]) < 1e-6
    wanted = BASIS.to_images(torch.eye(64)[BASIS.low_L[1]][None]).flatten().double()
    assert abs(float(direction[:, -1] @ wanted)) > 0.999


def test_grain_has_its_strength_on_grey_and_none_on_black() -> None:
    made = generator(grain=0.05)
    assert abs(float(draw(made, 0).std()) - 0.05) < 0.002
    made.mean_YD.data.zero_()
    assert float(draw(made, 0).max()) == 0.0


def test_images_are_in_range_whatever_the_law() -> None:
    made = generator(grain=3.0)
    made.factor_YKL.data.mul_(100)
    images = draw(made, 1, 200)
    assert float(images.min()) >= 0 and float(images.max()) <= 1 and bool(torch.isfinite(images).all())
