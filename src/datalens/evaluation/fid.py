"""Frechet distance between two sets of features: features -> mean and covariance -> distance."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from datalens.errors import DataError


@dataclass(frozen=True, eq=False)
class FeatureStatistics:
    """Mean and covariance of a set of features.

    Attributes:
        mean: float64 ``[F]``.
        covariance: float64 ``[F, F]``, divided by N - 1.
        num_images: N.
        root: float64 ``[F, R]`` whose product with its transpose is the covariance, where that is known without
            work: of fewer images than dimensions it is the images themselves.
    """

    mean: npt.NDArray[np.float64]
    covariance: npt.NDArray[np.float64]
    num_images: int
    root: npt.NDArray[np.float64] | None = None

    @property
    def dimensions(self) -> int:
        """F."""
        return len(self.mean)


@dataclass(frozen=True)
class FrechetDistance:
    """A Frechet distance (FID) and what is needed to judge it.

    Attributes:
        value: The distance, finite and at least 0; smaller is closer.
        num_real: Real images behind it.
        num_generated: Generated images behind it.
        dimensions: F.
        biased: Whether a set has no more images than dimensions, which makes the value too large.
    """

    value: float
    num_real: int
    num_generated: int
    dimensions: int
    biased: bool

    def to_json(self) -> dict[str, object]:
        """The same, as plain types."""
        return asdict(self)


def feature_statistics(features_NF: npt.NDArray[np.floating]) -> FeatureStatistics:
    """Mean and covariance in double precision; one image has covariance zero.

    Raises:
        DataError: no features, another shape, or values that are not finite.
    """
    features = np.asarray(features_NF, dtype=np.float64)
    if features.ndim != 2 or 0 in features.shape:
        raise DataError(f"features have shape {features.shape}; give [N, F] with at least one image")
    if not np.isfinite(features).all():
        raise DataError("features hold NaN or infinity; check the images and the feature classifier")
    mean = features.mean(axis=0)
    root = (features - mean).T / np.sqrt(max(len(features) - 1, 1))
    few = len(features) < features.shape[1]
    return FeatureStatistics(mean, root @ root.T, len(features), root if few else None)


def frechet_distance(real: FeatureStatistics, generated: FeatureStatistics) -> FrechetDistance:
    """Squared distance of the means plus ``trace(A + B - 2 (A^1/2 B A^1/2)^1/2)`` of the covariances.

    Guarantee: real, finite and at least 0, also for singular covariances: both square roots are of symmetric
    positive semi-definite matrices and are taken by eigenvalues, with rounding below zero cut off. Warns
    where a set has no more images than dimensions, since the value is then biased upwards.

    Raises:
        DataError: statistics of different features.

    Source: Heusel et al. 2017; Tables 3 and 12 of the paper.

    >>> one = feature_statistics(np.array([[0.0], [2.0]]))
    >>> other = feature_statistics(np.array([[3.0], [5.0]]))
    >>> round(frechet_distance(one, other).value, 6)
    9.0
    """
    if real.dimensions != generated.dimensions:
        raise DataError(
            f"the sets have {real.dimensions} and {generated.dimensions} feature dimensions; "
            "use one feature classifier for both"
        )
    fewest = min(real.num_images, generated.num_images)
    biased = fewest <= real.dimensions
    if biased:
        warnings.warn(
            f"FID from {fewest} images with {real.dimensions} feature dimensions is biased upwards; "
            f"give more than {real.dimensions} images",
            stacklevel=2,
        )
    shift = float(np.sum((real.mean - generated.mean) ** 2))
    traces = float(np.trace(real.covariance) + np.trace(generated.covariance))
    value = shift + traces - 2.0 * root_product_trace(real, generated)
    return FrechetDistance(max(value, 0.0), real.num_images, generated.num_images, real.dimensions, biased)


def root_product_trace(one: FeatureStatistics, other: FeatureStatistics) -> float:
    """trace((A B)^1/2) of the covariances A and B, as the singular values of a product of their roots.

    Singular values of the product of roots are the roots of the eigenvalues of A B, without squaring the
    rounding error: a set against itself gives its own trace.
    """
    product = _root(one).T @ _root(other)
    return float(np.linalg.svd(product, compute_uv=False).sum()) if product.size else 0.0


def _root(statistics: FeatureStatistics) -> npt.NDArray[np.float64]:
    """R with R R^T the covariance, to within rounding; eigenvalues that are rounding are left out."""
    if statistics.root is not None:
        return statistics.root
    matrix = statistics.covariance
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    kept = values > np.finfo(np.float64).eps * len(values) * max(values[-1], 0.0)
    return vectors[:, kept] * np.sqrt(values[kept])
