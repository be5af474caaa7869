"""Kernel distance between two sets of features: unbiased however few the images, where FID is not."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from datalens.errors import ConfigError, DataError


@dataclass(frozen=True)
class KernelDistance:
    """A kernel distance (KID): 0 is expected of two sets from one source, so a draw may lie below it.

    Attributes:
        mean: Mean over the subsets.
        stddev: Standard deviation over the subsets.
        subsets: How many were drawn.
        subset_size: Images of each set in a subset.
        num_real: Real images drawn from.
        num_generated: Generated images drawn from.
    """

    mean: float
    stddev: float
    subsets: int
    subset_size: int
    num_real: int
    num_generated: int

    def to_json(self) -> dict[str, object]:
        """The same, as plain types."""
        return asdict(self)


def kernel_distance(
    real_NF: npt.NDArray[np.floating],
    generated_NF: npt.NDArray[np.floating],
    *,
    subsets: int = 100,
    subset_size: int = 1000,
    rng: np.random.Generator,
) -> KernelDistance:
    """Unbiased squared maximum mean discrepancy under the kernel ``(x.y / F + 1)^3``, averaged over subsets.

    A set smaller than ``subset_size`` reduces it, with a warning.

    Raises:
        ConfigError: no subset, or a subset of fewer than 2 images.
        DataError: fewer than 2 images, features of different length, or values that are not finite.

    Source: Binkowski et al. 2018.
    """
    real, generated = (np.asarray(features, dtype=np.float64) for features in (real_NF, generated_NF))
    if real.ndim != 2 or generated.ndim != 2 or real.shape[1:] != generated.shape[1:]:
        raise DataError(
            f"features have shapes {real.shape} and {generated.shape}; give [N, F] from one feature network"
        )
    if subsets < 1 or subset_size < 2:
        raise ConfigError(
            f"subsets is {subsets}, subset_size {subset_size}; give at least 1 subset of at least 2 images"
        )
    fewest = min(len(real), len(generated))
    if fewest < 2:
        raise DataError(f"KID needs at least 2 images in each set, not {fewest}; give more")
    if not (np.isfinite(real).all() and np.isfinite(generated).all()):
        raise DataError("features hold NaN or infinity; check the images and the feature classifier")
    if fewest < subset_size:
        warnings.warn(
            f"{fewest} images cannot fill a KID subset of {subset_size}; subset_size is reduced to {fewest}",
            stacklevel=2,
        )
        subset_size = fewest
    values = [
        subset_distance(
            real[rng.choice(len(real), subset_size, replace=False)],
            generated[rng.choice(len(generated), subset_size, replace=False)],
        )
        for _ in range(subsets)
    ]
    return KernelDistance(
        float(np.mean(values)), float(np.std(values)), subsets, subset_size, len(real), len(generated)
    )


def subset_distance(one_NF: npt.NDArray[np.float64], other_NF: npt.NDArray[np.float64]) -> float:
    """The unbiased estimate from two sets of equally many features, at least 2."""
    count = len(one_NF)
    within = sum(
        (kernel.sum() - np.trace(kernel)) / (count * (count - 1))
        for kernel in (_kernel(one_NF, one_NF), _kernel(other_NF, other_NF))
    )
    return float(within - 2.0 * _kernel(one_NF, other_NF).mean())


def _kernel(a_NF: npt.NDArray[np.float64], b_NF: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    base = a_NF @ b_NF.T / a_NF.shape[1] + 1.0
    return base * base * base  # NumPy's power is many times slower
