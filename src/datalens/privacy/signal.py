"""How much of what teachers agree on survives the noise: pure functions of public settings."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtr

from datalens.errors import ConfigError

LEAST_MARGIN = 0.05
"""Below this difference between right and wrong a plan is called hopeless."""


@dataclass(frozen=True)
class Signal:
    """Chances of one coordinate after noise and threshold.

    Attributes:
        right: a coordinate on which all teachers agree comes out with their sign.
        wrong: it comes out with the opposite sign.
        from_noise: a coordinate for which no teacher votes comes out set, either way.

    >>> signal_of(4000, 5000.0, 0.7).is_hopeless
    False
    """

    right: float
    wrong: float
    from_noise: float

    @property
    def margin(self) -> float:
        """Right minus wrong: what unanimity is worth; 0 says that noise alone decides."""
        return self.right - self.wrong

    @property
    def is_hopeless(self) -> bool:
        """Whether even unanimous teachers are hardly heard, so that a budget would be spent for nothing."""
        return self.margin < LEAST_MARGIN

    def to_json(self) -> dict[str, float | bool]:
        """Plain values."""
        return {
            "right": self.right,
            "wrong": self.wrong,
            "from_noise": self.from_noise,
            "margin": self.margin,
            "hopeless": self.is_hopeless,
        }


def signal_of(num_teachers: int, noise_stddev: float, vote_threshold: float) -> Signal:
    """Chances for N teachers, noise sigma (in votes) and threshold beta.

    right = P(N + sigma g >= beta N), wrong = P(N + sigma g <= -beta N), from_noise = 2 Phi(-beta N / sigma),
    with g standard normal. Rounding to whole votes is left out.

    Args:
        num_teachers: N, 1 or more.
        noise_stddev: sigma, 0 (no noise) or more and finite.
        vote_threshold: beta in [0, 1].

    Raises:
        ConfigError: a value outside its range.

    >>> signal = signal_of(4000, 5000.0, 0.7)
    >>> round(signal.right, 3), round(signal.wrong, 3), round(784 * signal.from_noise)
    (0.595, 0.087, 451)
    """
    if num_teachers < 1:
        raise ConfigError(f"num_teachers={num_teachers!r} must be 1 or more: choose how many teachers vote")
    if not (math.isfinite(noise_stddev) and noise_stddev >= 0):
        raise ConfigError(f"noise_stddev={noise_stddev!r} must be 0 or more and finite: correct it")
    if not 0 <= vote_threshold <= 1:
        raise ConfigError(f"vote_threshold={vote_threshold!r} must be from 0 to 1: correct it")
    if noise_stddev == 0:
        return Signal(1.0, 0.0, 0.0)
    scale = num_teachers / noise_stddev
    return Signal(
        right=float(ndtr((1 - vote_threshold) * scale)),
        wrong=float(ndtr(-(1 + vote_threshold) * scale)),
        from_noise=min(1.0, 2 * float(ndtr(-vote_threshold * scale))),
    )


def require_signal(num_teachers: int, noise_stddev: float, vote_threshold: float) -> Signal:
    """As :func:`signal_of`, but refuse a hopeless plan.

    Raises:
        ConfigError: unanimous teachers would hardly be heard; says how many teachers would be.
    """
    signal = signal_of(num_teachers, noise_stddev, vote_threshold)
    if signal.is_hopeless:
        enough = teachers_needed(noise_stddev, vote_threshold)
        raise ConfigError(
            f"num_teachers = {num_teachers} with noise_stddev = {noise_stddev:g} leaves no signal: a "
            f"coordinate on which all agree comes out right with chance {signal.right:.3f}, wrong with "
            f"{signal.wrong:.3f}; take {enough} teachers or more, a smaller top_k or batch, fewer steps, "
            "or a larger epsilon"
        )
    return signal


def teachers_needed(noise_stddev: float, vote_threshold: float) -> int:
    """The smallest number of teachers whose unanimity is heard.

    >>> teachers_needed(5000.0, 0.7)
    324
    """
    low, high = 0, 1
    while signal_of(high, noise_stddev, vote_threshold).is_hopeless:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if signal_of(middle, noise_stddev, vote_threshold).is_hopeless:
            low = middle
        else:
            high = middle
    return high
