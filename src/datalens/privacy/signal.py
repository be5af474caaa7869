"""How much of what teachers agree on survives the noise: pure functions of public settings."""

from __future__ import annotations

import math
from dataclasses import dataclass

from datalens.errors import ConfigError

BEST_THRESHOLD = 0.612
"""Threshold, in standard deviations of the noise, at which {-1, 0, 1} keeps most of a weak signal.

A mean of size e << 1 under unit noise, cut at t, is seen with signal-to-noise ratio
e * phi(t) * sqrt(2 / Phi(-t)), largest at t = 0.612: 0.90 of what the uncut value has, where the sign alone
(t = 0) has 0.80.
"""

LEAST_MARGIN = 0.05
"""Below this difference between right and wrong a plan is called hopeless."""

GOOD_MARGIN = 0.3
"""From this difference on the verdict is "signal", below it "some signal"."""


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

    @property
    def verdict(self) -> str:
        """In a word or two: ``hopeless``, ``some signal`` or ``signal``."""
        if self.is_hopeless:
            return "hopeless"
        return "some signal" if self.margin < GOOD_MARGIN else "signal"

    def to_json(self) -> dict[str, float | bool | str]:
        """Plain values."""
        return {
            "right": self.right,
            "wrong": self.wrong,
            "from_noise": self.from_noise,
            "margin": self.margin,
            "hopeless": self.is_hopeless,
            "verdict": self.verdict,
        }


def signal_of(
    num_teachers: int, noise_stddev: float, vote_threshold: float, *, share_voting: float = 1.0
) -> Signal:
    """Chances for N teachers, noise sigma (in votes) and threshold beta.

    right = P(V + sigma g >= beta N), wrong = P(V + sigma g <= -beta N), from_noise = 2 Phi(-beta N / sigma),
    with g standard normal and V the teachers that vote on an image. Rounding to whole votes is left out.

    Args:
        num_teachers: N, 1 or more.
        noise_stddev: sigma, 0 (no noise) or more and finite.
        vote_threshold: beta, 0 or more; above V/N even unanimity needs the noise's help.
        share_voting: V/N in (0, 1], below 1 where a teacher votes on some images of a step only.

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
    if not (math.isfinite(vote_threshold) and vote_threshold >= 0):
        raise ConfigError(f"vote_threshold={vote_threshold!r} must be 0 or more and finite: correct it")
    if not 0 < share_voting <= 1:
        raise ConfigError(f"share_voting={share_voting!r} must be above 0 and at most 1: correct it")
    if noise_stddev == 0:
        return Signal(float(share_voting >= vote_threshold), 0.0, 0.0)
    import scipy

    scale = num_teachers / noise_stddev
    return Signal(
        right=float(scipy.special.ndtr((share_voting - vote_threshold) * scale)),
        wrong=float(scipy.special.ndtr(-(share_voting + vote_threshold) * scale)),
        from_noise=min(1.0, 2 * float(scipy.special.ndtr(-vote_threshold * scale))),
    )


def best_threshold(num_teachers: int, noise_stddev: float) -> float:
    """The vote threshold, a fraction of the teachers, that keeps most of a weak signal under this noise.

    >>> best_threshold(4000, 5000.0)
    0.765
    """
    return round(BEST_THRESHOLD * noise_stddev / num_teachers, 4)


def require_signal(
    num_teachers: int, noise_stddev: float, vote_threshold: float, *, share_voting: float = 1.0
) -> Signal:
    """As :func:`signal_of`, but refuse a hopeless plan.

    Raises:
        ConfigError: unanimous teachers would hardly be heard.
    """
    signal = signal_of(num_teachers, noise_stddev, vote_threshold, share_voting=share_voting)
    if signal.is_hopeless:
        raise ConfigError(
            f"num_teachers = {num_teachers} with noise_stddev = {noise_stddev:g} and vote_threshold = "
            f"{vote_threshold:g} leaves no signal (where all agree, right has chance {signal.right:.3f} and "
            f"wrong {signal.wrong:.3f}); take more teachers, less noise, a smaller top_k or batch, fewer "
            "steps, or more epsilon"
        )
    return signal
