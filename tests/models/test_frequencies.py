"""The cosine transform: SciPy's, exact on bytes in any company, and orthonormal to rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.fft import dctn

from datalens.models.frequencies import Frequencies

SHAPES = [(1, 28, 28), (3, 8, 12), (1, 5, 7)]


def images_of(shape: tuple[int, int, int], count: int = 9) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).integers(0, 256, (count, *shape), dtype=np.uint8))


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_scipys_transform_and_comes_back(shape: tuple[int, int, int]) -> None:
    images = images_of(shape)
    basis = Frequencies(shape, 3)
    found_RD = basis.of_bytes(images)
    expected = dctn(images.numpy() / 255, axes=(2, 3), norm="ortho").reshape(len(images), -1)
    np.testing.assert_allclose(found_RD.numpy(), expected, atol=1e-3)
    np.testing.assert_allclose(basis.to_images(found_RD).numpy(), images.numpy() / 255, atol=1e-3)


def test_an_image_has_the_same_bits_in_any_company() -> None:
    """Sums of whole numbers below 2^53 are exact, however a matrix product is blocked."""
    images = images_of((3, 16, 16), 130)
    basis = Frequencies((3, 16, 16), 4)
    together = basis.of_bytes(images)
    alone = torch.cat([basis.of_bytes(image[None]) for image in images])
    assert torch.equal(together, alone)


@pytest.mark.parametrize("shape", SHAPES)
def test_bins_part_low_from_other_frequencies(shape: tuple[int, int, int]) -> None:
    basis = Frequencies(shape, 3)
    assert int(basis.bin_sizes.sum()) == basis.dim
    assert basis.num_low_coordinates == shape[0] * 9
    assert bool((basis.bin_D[basis.low_L] % 2 == 1).all())
    assert int((basis.bin_D % 2).sum()) == basis.num_low_coordinates
    assert int(basis.bin_D.max()) < basis.num_bins
