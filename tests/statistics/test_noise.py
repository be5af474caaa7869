"""Is the noise that ships the noise that was promised? Each check also rejects noise that is wrong.

Every check is a function from draws to a verdict with a false alarm rate of about 1e-6, so that the same
function can be shown to accept the shipped sampler and to refuse a broken one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from datalens.noise import make_noise
from datalens.privacy.events import NoiseKind

ALARM = 1e-6
KINDS = [NoiseKind.ROUNDED, NoiseKind.CONTINUOUS]
Sampler = Callable[[int], np.ndarray]


def _sampler(kind: NoiseKind, stddev: float) -> Sampler:
    source = make_noise(kind)
    return lambda count: source.sample((count,), stddev)


def stddev_is_right(draws: np.ndarray, stddev: float) -> bool:
    """The sum of squares lies in its chi-square interval (rounding adds 1/12 to the variance)."""
    variance = stddev**2 + (1 / 12 if draws.dtype == np.int64 else 0.0)
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], len(draws))
    return low <= float((draws.astype(float) ** 2).sum() / variance) <= high


def masses_are_right(draws: np.ndarray, stddev: float) -> bool:
    """Pearson's test of the counts against the exact probabilities of a rounded Gaussian."""
    edge = math.ceil(3 * stddev)
    values = np.arange(-edge, edge + 1)
    masses = stats.norm.cdf((values + 0.5) / stddev) - stats.norm.cdf((values - 0.5) / stddev)
    counts = np.array([(draws == value).sum() for value in values])
    masses, counts = np.append(masses, 1 - masses.sum()), np.append(counts, len(draws) - counts.sum())
    return bool(stats.chisquare(counts, masses * len(draws)).pvalue > ALARM)


def is_symmetric(draws: np.ndarray, stddev: float) -> bool:
    """As many above zero as below, and a mean within its normal interval."""
    above, below = int((draws > 0).sum()), int((draws < 0).sum())
    limit = stats.norm.isf(ALARM / 2)
    fair = abs(above - below) <= limit * math.sqrt(above + below)
    return fair and abs(draws.mean()) <= limit * math.hypot(stddev, 0.29) / math.sqrt(len(draws))


def coordinates_are_independent(draws: np.ndarray) -> bool:
    """No correlation between coordinates of a vector, of values or of magnitudes, over many vectors."""
    rows, columns = draws.shape
    pairs = columns * (columns - 1) / 2
    limit = stats.norm.isf(ALARM / 4 / pairs) / math.sqrt(rows)
    for values in (draws, np.abs(draws)):
        correlation = np.corrcoef(values, rowvar=False)
        if np.abs(correlation[np.triu_indices(columns, 1)]).max() > limit:
            return False
    return True


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stddev", [1.0, 8.0, 200.0, 5000.0])
def test_stddev_right_and_both_two_thirds_and_three_halves_rejected(kind: NoiseKind, stddev: float) -> None:
    draws = _sampler(kind, stddev)(100_000)
    assert stddev_is_right(draws, stddev)
    for factor in (2 / 3, 3 / 2):
        assert not stddev_is_right(_sampler(kind, stddev * factor)(100_000), stddev)


@pytest.mark.parametrize("stddev", [200.0, 5000.0])
def test_r05_stddev_of_100000_draws_is_within_one_percent(stddev: float) -> None:
    assert abs(_sampler(NoiseKind.ROUNDED, stddev)(100_000).std() / stddev - 1) < 0.01


def test_discrete_gaussian_has_the_stddev_it_is_given() -> None:
    draws = _sampler(NoiseKind.DISCRETE, 30.0)(8_000)
    assert stddev_is_right(draws, math.sqrt(30.0**2 - 1 / 12))
    assert not stddev_is_right(_sampler(NoiseKind.DISCRETE, 20.0)(8_000), 30.0)


@pytest.mark.parametrize("stddev", [0.25, 0.5, 1.0, 2.0, 7.3])
def test_masses_of_small_stddevs(stddev: float) -> None:
    assert masses_are_right(_sampler(NoiseKind.ROUNDED, stddev)(200_000), stddev)
    assert not masses_are_right(_sampler(NoiseKind.ROUNDED, stddev * 1.05)(200_000), stddev)


def test_masses_tell_a_truncated_gaussian_from_a_rounded_one() -> None:
    draws = np.trunc(_sampler(NoiseKind.CONTINUOUS, 2.0)(200_000)).astype(np.int64)
    assert not masses_are_right(draws, 2.0)


def test_masses_of_the_continuous_source_once_rounded() -> None:
    draws = np.rint(_sampler(NoiseKind.CONTINUOUS, 2.0)(200_000)).astype(np.int64)
    assert masses_are_right(draws, 2.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stddev", [0.5, 5000.0])
def test_noise_is_symmetric(kind: NoiseKind, stddev: float) -> None:
    draws = _sampler(kind, stddev)(100_000)
    assert is_symmetric(draws, stddev)
    assert not is_symmetric(draws + math.ceil(stddev / 10), stddev)


@pytest.mark.parametrize("kind", KINDS)
def test_r05_coordinates_are_independent(kind: NoiseKind) -> None:
    draws = make_noise(kind).sample((4000, 24), 900.0)
    assert coordinates_are_independent(draws)
    shared = draws.copy()
    shared[:, 5] = shared[:, 20]
    assert not coordinates_are_independent(shared)
    signs_only = draws.copy()
    signs_only[:, 5] = np.abs(signs_only[:, 20]) * np.sign(signs_only[:, 5])
    assert not coordinates_are_independent(signs_only)


@pytest.mark.parametrize("kind", KINDS)
def test_successive_releases_are_independent(kind: NoiseKind) -> None:
    source = make_noise(kind)
    releases = np.stack([source.sample((4000,), 900.0) for _ in range(12)], axis=1)
    assert coordinates_are_independent(releases)
    releases[:, 7] = releases[:, 2]
    assert not coordinates_are_independent(releases)
