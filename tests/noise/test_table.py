"""The look-up table against mpmath, and the slack that it promises."""

from __future__ import annotations

import itertools
import math
import random
import time
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest

from datalens.errors import ConfigError
from datalens.noise.table import LOW_BITS, MAX_STDDEV, MIN_STDDEV, SLACK_BOUND, TABLE_BITS, build_table

UNIT = 2.0**-TABLE_BITS
STDDEVS = (0.25, 0.5, 1.0, 2.0, math.pi, 28.3, 900.0, 5000.0)


def _at_least(magnitude: int, stddev: float) -> mp.mpf:
    """P(|X| >= magnitude) for the ideal rounded Gaussian, magnitude 1 or more."""
    return mp.erfc((mp.mpf(magnitude) - mp.mpf(1) / 2) / (mp.mpf(stddev) * mp.sqrt(2)))


@pytest.mark.parametrize("stddev", STDDEVS)
def test_thresholds_are_within_052_units_of_mpmath(stddev: float) -> None:
    table = build_table(stddev)
    picker = random.Random(1)
    magnitudes = {
        1,
        2,
        table.largest - 1,
        table.largest,
        *(picker.randint(1, table.largest) for _ in range(60)),
    }
    with mp.workprec(600):
        for magnitude in magnitudes:
            threshold = table.thresholds[table.largest - magnitude]
            assert abs(_at_least(magnitude, stddev) * 2**TABLE_BITS - threshold) < 0.52
        assert _at_least(table.largest + 1, stddev) * 2**TABLE_BITS < 0.52


@pytest.mark.parametrize("stddev", STDDEVS)
def test_thresholds_ascend_and_the_leading_bits_are_theirs(stddev: float) -> None:
    table = build_table(stddev)
    assert all(
        low <= high for low, high in pairwise(table.thresholds)
    )  # equal only far out, where masses are below one unit
    assert table.thresholds[0] > 0
    assert table.thresholds[-1] < 2**TABLE_BITS
    assert table.high.tolist() == [threshold >> LOW_BITS for threshold in table.thresholds]
    assert table.high.dtype == np.uint64  # as the words that it is compared with: other types meet as floats


@pytest.mark.parametrize("stddev", STDDEVS)
def test_slack_holds_for_the_table_as_it_is(stddev: float) -> None:
    """Walk the core with mpmath: no log probability off by more than eta, no more than tau outside."""
    table = build_table(stddev)
    eta, tau = table.slack.eta, table.slack.tau
    assert 0 < eta <= SLACK_BOUND.eta
    assert 0 < tau <= SLACK_BOUND.tau
    tails = [2**TABLE_BITS, *reversed(table.thresholds), 0]  # P(|X| >= j) of the sampler, by j
    edge = next(j for j in range(len(tails)) if (tails[j] + 2) * UNIT <= tau * (1 + 1e-9))
    steps = sorted({0, 1, *range(max(0, edge - 20), edge), *range(0, edge, max(1, edge // 60))})
    with mp.workprec(600):
        for j in steps:
            ideal = (mp.mpf(1) if j == 0 else _at_least(j, stddev)) - _at_least(j + 1, stddev)
            drawn = mp.mpf(tails[j] - tails[j + 1]) / 2**TABLE_BITS
            assert abs(mp.log(drawn / ideal)) <= eta
        assert _at_least(edge, stddev) <= tau
        assert tails[edge] * UNIT <= tau


@pytest.mark.parametrize("stddev", [0.5, 900.0, 5000.0])
def test_slack_does_not_show_at_the_papers_sizes(stddev: float) -> None:
    """15 images of 64x64x3, 1000 steps, at epsilon up to 40: below 1e-8 in epsilon and 1e-3 of delta 1e-5."""
    coordinates = 15 * 12288 * 1000
    slack = build_table(stddev).slack
    assert 2 * coordinates * slack.eta < 1e-8
    assert (1 + math.exp(40.0)) * coordinates * slack.tau < 1e-8


def test_a_table_of_the_papers_noise_is_built_in_a_moment() -> None:
    start = time.process_time()
    build_table(5000.0)
    assert time.process_time() - start < 5.0  # measured 0.4 s; a machine may be slow or busy


@pytest.mark.parametrize("stddev", [0.0, -1.0, math.nan, math.inf, MIN_STDDEV / 2, MAX_STDDEV * 2])
def test_standard_deviations_outside_the_tabulated_range_are_refused(stddev: float) -> None:
    with pytest.raises(ConfigError, match=r"goes from 0\.25 to 131072"):
        build_table(stddev)


@pytest.mark.parametrize("stddev", [0.25, 0.5, 2.0, 900.0])
def test_eta_is_what_the_rarest_magnitude_of_the_core_allows_and_no_more(stddev: float) -> None:
    """Two units of error in a mass m are a log ratio of at most 2 / (m - 2); the bound for all tables is looser."""
    table = build_table(stddev)
    tails = [2**TABLE_BITS, *reversed(table.thresholds)]
    masses = [tails[j] - tails[j + 1] for j in range(len(tails) - 1)]
    core = list(itertools.takewhile(lambda mass: mass >= 2 * (2**56 + 1), masses))
    assert table.slack.eta == pytest.approx(2 / (min(core) - 2), rel=1e-12, abs=0)
