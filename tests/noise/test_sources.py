"""The other kinds of noise, and how a kind is chosen."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from datalens.errors import ConfigError, MissingExtraError
from datalens.noise import NoiseSource, make_noise
from datalens.noise.gaussian import ContinuousGaussian
from datalens.privacy.events import NoiseKind, SamplerSlack

SECURE = {
    NoiseKind.ROUNDED: True,
    NoiseKind.DISCRETE: True,
    NoiseKind.CONTINUOUS: False,
    NoiseKind.NONE: False,
}


@pytest.mark.parametrize("kind", list(NoiseKind))
def test_every_kind_keeps_the_contract(kind: NoiseKind) -> None:
    source = make_noise(kind)
    assert isinstance(source, NoiseSource)
    assert source.kind is kind
    assert source.secure is SECURE[kind]
    draws = source.sample((5, 3), 40.0)
    assert draws.shape == (5, 3)
    assert draws.dtype == (np.float64 if kind is NoiseKind.CONTINUOUS else np.int64)
    assert draws.flags.writeable
    assert bool(draws.any()) is (kind is not NoiseKind.NONE)
    slack = source.slack(40.0)
    assert (slack == SamplerSlack(0.0, 0.0)) is (kind is not NoiseKind.ROUNDED)


@pytest.mark.parametrize("kind", [NoiseKind.ROUNDED, NoiseKind.CONTINUOUS])
def test_an_insecure_key_makes_any_kind_insecure_and_repeatable(kind: NoiseKind) -> None:
    first, second = make_noise(kind, b"key"), make_noise(kind, b"key")
    assert not first.secure
    np.testing.assert_array_equal(first.sample((9,), 7.0), second.sample((9,), 7.0))


@pytest.mark.parametrize("kind", [NoiseKind.ROUNDED, NoiseKind.CONTINUOUS, NoiseKind.DISCRETE])
@pytest.mark.parametrize("stddev", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_standard_deviations_are_refused(kind: NoiseKind, stddev: float) -> None:
    with pytest.raises(ConfigError, match="noise_stddev is"):
        make_noise(kind).sample((2,), stddev)


def test_discrete_noise_takes_no_seed() -> None:
    with pytest.raises(ConfigError, match="cannot be repeated"):
        make_noise(NoiseKind.DISCRETE, b"key")


def test_a_missing_library_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.mod", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'datalens-dp\[discrete\]'"):
        make_noise(NoiseKind.DISCRETE)


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_continuous_noise_is_finite_for_every_word(word: int) -> None:
    class Same:
        secure = False

        def words(self, count: int) -> np.ndarray:
            return np.full(count, word, np.uint64)

    draws = ContinuousGaussian(Same()).sample((4,), 1.0)
    assert np.isfinite(draws).all()
    assert abs(draws).max() == pytest.approx(math.sqrt(2 * 54 * math.log(2)) if word == 0 else 0, abs=1e-7)


def test_continuous_noise_of_odd_counts() -> None:
    assert make_noise(NoiseKind.CONTINUOUS).sample((3,), 1.0).shape == (3,)
    assert make_noise(NoiseKind.CONTINUOUS).sample((0,), 1.0).shape == (0,)


def test_one_source_draws_anew_each_time_also_at_the_same_width() -> None:
    source = make_noise(NoiseKind.DISCRETE)
    first, second, wide = (source.sample((200,), stddev) for stddev in (40.0, 40.0, 4000.0))
    assert not np.array_equal(first, second)
    assert np.abs(wide).mean() > 10 * np.abs(first).mean()
