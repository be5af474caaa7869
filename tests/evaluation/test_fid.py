"""Frechet distance: closed forms, an independent implementation, and the cases where others break (R20)."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.errors import DataError
from datalens.evaluation.fid import (
    FeatureStatistics,
    feature_statistics,
    frechet_distance,
    root_product_trace,
)


def _features(num: int, dimensions: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(dimensions, dimensions)) / dimensions**0.5
    return rng.normal(size=(num, dimensions)) @ mixing + rng.normal(size=dimensions)


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    return frechet_distance(feature_statistics(a), feature_statistics(b)).value


def test_diagonal_gaussians_have_a_closed_form() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(400, 3))
    base -= base.mean(axis=0)
    white = base @ np.linalg.inv(np.linalg.cholesky(np.cov(base.T))).T
    one, other = np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.5, 3.0])
    shift = np.array([0.5, -1.0, 0.0])
    expected = np.sum((one - other) ** 2) + np.sum(shift**2)
    assert _distance(white * one, white * other + shift) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("dimensions", [2, 16, 64])
def test_agrees_with_torchmetrics_on_the_same_features(dimensions: int) -> None:
    fid = pytest.importorskip("torchmetrics.image.fid", reason="the independent FID comes with torchmetrics")

    class Same(torch.nn.Module):
        num_features = dimensions

        def forward(self, features: torch.Tensor) -> torch.Tensor:
            return features

    real, generated = _features(300, dimensions, 1), _features(250, dimensions, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = fid.FrechetInceptionDistance(feature=Same()).set_dtype(torch.float64)
        theirs.update(torch.from_numpy(real), real=True)
        theirs.update(torch.from_numpy(generated), real=False)
        expected = float(theirs.compute())
    assert _distance(real, generated) == pytest.approx(expected, abs=1e-3)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12), st.integers(1, 12))
def test_is_symmetric_and_not_negative(seed: int, num_real: int, num_generated: int, dimensions: int) -> None:
    real, generated = _features(num_real, dimensions, seed), _features(num_generated, dimensions, seed + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there, back = _distance(real, generated), _distance(generated, real)
        assert there >= 0
        assert there == pytest.approx(back, rel=1e-6, abs=1e-6)
        assert _distance(real, real) < 1e-6


def test_case_r20_fewer_images_than_dimensions_is_finite_and_warned() -> None:
    real, generated = _features(50, 512, 0), _features(40, 512, 1)
    with pytest.warns(UserWarning, match="40 images with 512 feature dimensions"):
        result = frechet_distance(feature_statistics(real), feature_statistics(generated))
    assert np.isfinite(result.value)
    assert result.value >= 0
    assert result.biased
    assert result.to_json() == {
        "value": result.value,
        "num_real": 50,
        "num_generated": 40,
        "dimensions": 512,
        "biased": True,
    }
    with pytest.warns(UserWarning, match="biased"):
        assert _distance(real, real) < 1e-3


def test_case_r20_fifty_against_fifty_colour_images_with_2048_features() -> None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (100, 3 * 32 * 32)) / 255.0
    features = np.maximum(pixels @ rng.normal(size=(3072, 2048)) / 32.0, 0.0).astype(np.float32)
    real, generated = feature_statistics(features[:50]), feature_statistics(features[50:])
    with pytest.warns(UserWarning, match="50 images with 2048 feature dimensions is biased"):
        result = frechet_distance(real, generated)
    assert np.isfinite(result.value)
    assert result.value > 0
    assert (result.num_real, result.num_generated, result.biased) == (50, 50, True)
    with pytest.warns(UserWarning, match="biased"):
        assert frechet_distance(real, real).value < 1e-3


def test_case_r20_no_scipy_takes_part() -> None:
    """So that the value cannot depend on its version."""
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "import numpy as np\n"
        "from datalens.evaluation.fid import FeatureStatistics, feature_statistics, frechet_distance\n"
        "sets = np.random.default_rng(0).normal(size=(2, 60, 8))\n"
        "print(frechet_distance(*(feature_statistics(each) for each in sets)).value)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(printed) == pytest.approx(
        _distance(*np.random.default_rng(0).normal(size=(2, 60, 8))), rel=1e-9
    )


def test_case_r20_as_many_images_as_dimensions_is_singular_too() -> None:
    real = _features(192, 192, 0)
    with pytest.warns(UserWarning, match="give more than 192"):
        assert _distance(real, real) < 1e-3


def test_enough_images_do_not_warn_and_constant_features_work() -> None:
    result = frechet_distance(feature_statistics(np.ones((9, 4))), feature_statistics(np.zeros((9, 4))))
    assert result.value == pytest.approx(4.0)
    assert not result.biased


def test_case_r20_agrees_with_scipy_sqrtm_where_that_is_stable() -> None:
    linalg = pytest.importorskip("scipy.linalg")
    a, b = (feature_statistics(_features(400, 20, seed)) for seed in (0, 1))
    theirs = np.trace(linalg.sqrtm(a.covariance @ b.covariance)).real
    assert root_product_trace(a, b) == pytest.approx(float(theirs), abs=1e-6)


def test_case_r20_the_short_way_for_few_images_is_the_long_way() -> None:
    a, b = (feature_statistics(_features(12, 30, seed)) for seed in (0, 1))
    long_way = [FeatureStatistics(each.mean, each.covariance, each.num_images) for each in (a, b)]
    assert a.root is not None
    assert root_product_trace(a, b) == pytest.approx(root_product_trace(*long_way), rel=1e-9)


def test_statistics_are_numpys() -> None:
    features = _features(30, 5, 0).astype(np.float32)
    statistics = feature_statistics(features)
    np.testing.assert_allclose(statistics.mean, features.astype(float).mean(axis=0))
    np.testing.assert_allclose(statistics.covariance, np.cov(features.astype(float).T))
    assert statistics.num_images == 30


def test_wrong_features_are_refused() -> None:
    for features, rule in (
        (np.zeros((0, 3)), "at least one"),
        (np.zeros(3), "shape"),
        (np.array([[np.nan]]), "NaN"),
    ):
        with pytest.raises(DataError, match=rule):
            feature_statistics(features)
    with pytest.raises(DataError, match="3 and 2"):
        frechet_distance(feature_statistics(np.eye(3)), feature_statistics(np.eye(2)))
