"""Exact-integer tables for the rounded Gaussian: how likely ``|X| >= j`` is, to 191 bits.

``X`` is a Gaussian with standard deviation ``s`` rounded to the nearest integer. With
``f(j) = exp(-j^2 / (2 s^2))`` the mass of the unit cell around ``j`` is proportional to ``f(j) * G(j)``,

    G(j) = integral of exp(-j t / s^2 - t^2 / (2 s^2)) over t in [-1/2, 1/2],

a power series in ``j^2``. All arithmetic is in Python integers with 320 fractional bits, from the exact
rational value of ``stddev``; the masses are divided by their own sum, so neither pi nor a root is needed.
``docs/privacy.md`` proves the error bound that :attr:`MagnitudeTable.slack` rests on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from datalens.errors import ConfigError
from datalens.privacy.events import SamplerSlack

WORK_BITS = 320
"""Fractional bits of the arithmetic that builds a table."""
TABLE_BITS = 191
"""Bits of a threshold: with the sign, a draw is decided by 192 bits."""
HIGH_BITS = 63
"""Leading bits of a threshold that decide nearly every draw; the rest is looked at only on a tie."""
LOW_BITS = TABLE_BITS - HIGH_BITS

MIN_STDDEV = 0.25
MAX_STDDEV = float(2**17)

SLACK_BOUND = SamplerSlack(eta=2.0**-56, tau=2.0**-120)
"""Holds for every standard deviation in range: for planning, where no table should have to be built."""

_SERIES_BITS = 640
_TAIL_BITS = 200
_CORE_BITS = 56
_ONE = 1 << WORK_BITS


@dataclass(frozen=True, eq=False)
class MagnitudeTable:
    """Thresholds for inverting the distribution of ``|X|``.

    Attributes:
        thresholds: ascending integers ``a``, one for each ``j`` from the largest magnitude down to 1; a
            uniform ``U`` in ``[0, 2**191)`` gives ``|X| >= j`` exactly when ``U < a``.
        high: uint64, the leading 63 bits of each threshold.
        slack: proved distance of the drawn integers from the ideal ones.
    """

    thresholds: tuple[int, ...]
    high: np.ndarray
    slack: SamplerSlack

    @property
    def largest(self) -> int:
        """The largest magnitude that can be drawn."""
        return len(self.thresholds)


def build_table(stddev: float) -> MagnitudeTable:
    """Compute the table for one standard deviation; a pure function.

    Raises:
        ConfigError: ``stddev`` outside [0.25, 131072].
    """
    if not MIN_STDDEV <= stddev <= MAX_STDDEV:
        raise ConfigError(
            f"noise_stddev = {stddev:g}: rounded Gaussian noise goes from {MIN_STDDEV} to {MAX_STDDEV:.0f} "
            "votes; choose a value in between, or another noise kind"
        )
    masses = _cell_masses(Fraction(stddev))
    total = masses[0] + 2 * sum(masses[1:])
    shift = 2 * WORK_BITS
    scale = (2 << (TABLE_BITS + shift)) // total  # 2: both signs of a magnitude
    half = 1 << (shift - 1)
    thresholds: list[int] = []
    tail = 0
    for mass in reversed(masses[1:]):
        tail += mass
        threshold = (tail * scale + half) >> shift
        if threshold:
            thresholds.append(threshold)
    high = np.array([threshold >> LOW_BITS for threshold in thresholds], dtype=np.uint64)
    high.setflags(write=False)
    return MagnitudeTable(tuple(thresholds), high, _slack(thresholds))


def _cell_masses(stddev: Fraction) -> list[int]:
    """Masses of the cells 0, 1, 2, ... in fixed point, up to a common factor, until below 2**-200."""
    inverse = 1 / stddev**2
    reach = math.ceil(float(stddev) * math.sqrt(2 * _TAIL_BITS * math.log(2))) + 1
    log_span = reach.bit_length()
    coefficients = _series(inverse, log_span)
    ratio = _exp_minus(inverse / 2)
    shrink = _exp_minus(inverse)
    bell = _ONE
    masses = []
    for j in range(reach + 1):
        square = j * j
        value = 0
        for coefficient in coefficients:
            value = ((value * square) >> (2 * log_span)) + coefficient
        masses.append((bell * value) >> WORK_BITS)
        bell = (bell * ratio) >> WORK_BITS
        ratio = (ratio * shrink) >> WORK_BITS
    return masses


def _series(inverse: Fraction, log_span: int) -> list[int]:
    """Coefficients of G as a polynomial in ``v = j^2 / 4**log_span`` in [0, 1], highest power first.

    ``G = sum_a (j inverse)^(2a) / (2a)! * sum_b (-inverse / 2)^b / b! / ((2n + 1) 4^n)`` with ``n = a + b``;
    both sums stop where their terms are below 2**-320.
    """
    one = 1 << _SERIES_BITS
    span = int((Fraction(1 << log_span) * inverse) ** 2 * one)
    step_up, step_down = inverse.numerator, 2 * inverse.denominator
    coefficients: list[int] = []
    outer = one
    a = 0
    while True:
        inner, weight, b = 0, one, 0
        while b == 0 or (abs(weight) * outer) >> (2 * _SERIES_BITS - WORK_BITS):
            n = a + b
            inner += weight // ((2 * n + 1) << (2 * n))
            b += 1
            weight = -weight * step_up // (step_down * b)
        coefficients.append((outer * inner) >> (2 * _SERIES_BITS - WORK_BITS))
        a += 1
        outer = ((outer * span) >> _SERIES_BITS) // ((2 * a - 1) * (2 * a))
        falling = 2 * (2 * a + 1) * (2 * a + 2) * one > span
        if falling and not outer >> (_SERIES_BITS - WORK_BITS + 2 * a):
            return coefficients[::-1]


def _exp_minus(exponent: Fraction) -> int:
    """``exp(-exponent)`` in fixed point, for an exponent from 0 to 16, within 2 units in the last place."""
    bits = WORK_BITS + 96
    halvings = 16
    step = int(exponent * (1 << bits)) >> halvings
    term = result = 1 << bits
    n = 1
    while term:  # exp(+exponent / 2**halvings): all terms are positive
        term = (term * step >> bits) // n
        result += term
        n += 1
    for _ in range(halvings):
        result = result * result >> bits
    return (1 << (WORK_BITS + bits)) // result


def _slack(thresholds: list[int]) -> SamplerSlack:
    """Bound eta inside and tau outside the largest core in which every log probability is within 2**-56.

    A threshold is within 0.52 of the ideal one, so the mass of a magnitude is within 2 (units of 2**-191).
    """
    error = 2
    upper = 1 << TABLE_BITS
    smallest = upper
    for threshold in reversed(thresholds):  # magnitudes 0, 1, 2, ...
        mass = upper - threshold
        if mass < error * ((1 << _CORE_BITS) + 1):
            break
        smallest = min(smallest, mass)
        upper = threshold
    eta = math.nextafter(error / (smallest - error), math.inf)
    tau = math.nextafter((upper + error) / (1 << TABLE_BITS), math.inf)
    return SamplerSlack(eta=min(eta, SLACK_BOUND.eta), tau=tau)
