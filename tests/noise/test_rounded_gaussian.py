"""The sampler turns bits into integers exactly as its definition says, and never uses a bit twice."""

from __future__ import annotations

import numpy as np
import pytest
from reference import rounded_gaussian_magnitude

from datalens.errors import ConfigError
from datalens.noise import SeededEntropy
from datalens.noise.rounded_gaussian import RoundedGaussian, cached_table
from datalens.noise.table import LOW_BITS, TABLE_BITS


class GivenBits:
    """Entropy that hands out a script: first the words of the draws, then the words that settle ties."""

    secure = False

    def __init__(self, *batches: list[int]) -> None:
        self.batches = [np.array(batch, dtype=np.uint64) for batch in batches]

    def words(self, count: int) -> np.ndarray:
        batch = self.batches.pop(0)
        assert len(batch) == count
        return batch


def _split(draw: int, sign: int) -> tuple[int, list[int]]:
    """The first word, and the two of a tie, that stand for a 191-bit draw with a sign bit."""
    low = draw & ((1 << LOW_BITS) - 1)
    return ((draw >> LOW_BITS) << 1) | sign, [low >> 64, low & (2**64 - 1)]


@pytest.mark.parametrize("stddev", [0.25, 0.7, 3.0, 12.5])
def test_equals_slow_twin(stddev: float) -> None:
    words = SeededEntropy(b"twin").words(40)
    drawn = RoundedGaussian(GivenBits([int(word) for word in words])).sample((40,), stddev)
    for word, value in zip(words.tolist(), drawn.tolist(), strict=True):
        magnitude = rounded_gaussian_magnitude((word >> 1) << LOW_BITS, stddev)
        assert value == (-magnitude if word & 1 else magnitude)


@pytest.mark.parametrize("stddev", [0.5, 8.0, 5000.0])
def test_ties_are_settled_by_all_192_bits(stddev: float) -> None:
    """Just below and exactly on a threshold: the magnitude is the number of thresholds above the draw."""
    table = cached_table(stddev)
    places = {0, 1, table.largest // 3, table.largest // 2, table.largest - 1}
    for place in places:
        threshold = table.thresholds[place]
        expected_below, expected_on = (
            sum(other > draw for other in table.thresholds) for draw in (threshold - 1, threshold)
        )
        assert expected_below > expected_on
        for draw, expected in ((threshold - 1, expected_below), (threshold, expected_on)):
            first, rest = _split(draw, sign=1)
            assert RoundedGaussian(GivenBits([first], rest)).sample((1,), stddev).tolist() == [-expected]


def test_extremes() -> None:
    table = cached_table(8.0)
    assert RoundedGaussian(GivenBits([0], [0, 0])).sample((1,), 8.0).tolist() == [table.largest]
    top = 2**64 - 1
    assert RoundedGaussian(GivenBits([top])).sample((1,), 8.0).tolist() == [0]
    assert table.thresholds[-1] < 2**TABLE_BITS - 1


def test_the_lowest_bit_is_the_sign() -> None:
    word = 2**62
    plus, minus = (RoundedGaussian(GivenBits([word | sign])).sample((1,), 8.0).item() for sign in (0, 1))
    assert plus == -minus != 0


def test_ties_between_high_words_use_separate_bits() -> None:
    table = cached_table(5000.0)
    first, rest = _split(table.thresholds[-1] - 1, sign=0)
    other, more = _split(table.thresholds[-1], sign=0)
    assert first == other
    drawn = RoundedGaussian(GivenBits([first, 2**64 - 2, other], rest, more)).sample((3,), 5000.0)
    assert drawn.tolist() == [1, 0, 0]


def test_shape_and_type() -> None:
    noise = RoundedGaussian().sample((3, 4, 5), 8.0)
    assert (noise.shape, noise.dtype) == ((3, 4, 5), np.int64)
    assert RoundedGaussian().sample((0, 7), 8.0).shape == (0, 7)


def test_no_draw_is_used_twice() -> None:
    source = RoundedGaussian()
    first, second = source.sample((1000,), 5000.0), source.sample((1000,), 5000.0)
    assert (first == second).mean() < 0.01
    assert (first == RoundedGaussian().sample((1000,), 5000.0)).mean() < 0.01


def test_an_insecure_key_repeats_and_says_so() -> None:
    first, second = (RoundedGaussian(SeededEntropy(b"k")) for _ in range(2))
    np.testing.assert_array_equal(first.sample((50,), 30.0), second.sample((50,), 30.0))
    assert not first.secure
    assert RoundedGaussian().secure


@pytest.mark.parametrize("stddev", [0.0, -2.0, float("nan"), float("inf")])
def test_bad_standard_deviations_are_refused(stddev: float) -> None:
    with pytest.raises(ConfigError, match="noise_stddev is"):
        RoundedGaussian().sample((1,), stddev)
    with pytest.raises(ConfigError, match="noise_stddev is"):
        RoundedGaussian().slack(stddev)
