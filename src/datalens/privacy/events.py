"""What was released, in the few numbers that decide its cost; accountants read events and nothing else."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from datalens.errors import ConfigError, LedgerError
from datalens.privacy.private_tuning import check_law


class NoiseKind(StrEnum):
    """Where the noise of a release came from; it decides which curve may be used for it."""

    ROUNDED = "rounded-gaussian"
    DISCRETE = "discrete-gaussian"
    CONTINUOUS = "continuous-gaussian"
    NONE = "none"


@dataclass(frozen=True)
class SamplerSlack:
    """How far one noise draw of a real sampler may be from the ideal law, per coordinate.

    There is a set of good values such that every good value has its log probability within ``eta`` of the
    ideal one, and the bad values have probability at most ``tau`` under the ideal law and at most ``tau``
    under the real one. Zero and zero for a sampler that is exact.

    Attributes:
        eta: largest error of a log probability, 0 or more.
        tau: largest probability of the bad values, 0 or more.

    >>> SamplerSlack() == SamplerSlack(0.0, 0.0)
    True
    """

    eta: float = 0.0
    tau: float = 0.0

    def __post_init__(self) -> None:
        for name in ("eta", "tau"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"sampler slack {name}={value!r} must be 0 or more and finite: correct it")
            object.__setattr__(self, name, float(value))


@dataclass(frozen=True)
class GaussianEvent:
    """``count`` releases of an integer or real vector with Gaussian noise on every coordinate.

    Guarantee: one release with continuous or rounded noise is as private as a Gaussian of standard deviation
    ``noise_stddev`` on a number that one record moves by ``sensitivity``.

    Attributes:
        sensitivity: L2 distance that one record can move the whole vector, in votes; above 0.
        noise_stddev: standard deviation of the noise on each coordinate, in votes; 0 only without noise.
        coordinates: length of the vector, all images of a step together (batch_size * D).
        noise: which sampler drew the noise.
        slack: how far that sampler may be from the ideal law, per coordinate.
        count: how many such releases.

    Raises:
        ConfigError: a value outside these ranges.

    >>> GaussianEvent(sensitivity=4.0, noise_stddev=8.0, coordinates=784).mu
    0.5
    """

    tag: ClassVar[str] = "gaussian"
    sensitivity: float
    noise_stddev: float
    coordinates: int
    noise: NoiseKind = NoiseKind.ROUNDED
    slack: SamplerSlack = SamplerSlack()
    count: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", _noise_kind(self.noise))
        _set_positive(self, "sensitivity")
        if self.noise is NoiseKind.NONE and self.noise_stddev == 0:
            object.__setattr__(self, "noise_stddev", 0.0)
        else:
            _set_positive(self, "noise_stddev")
        _set_whole(self, "coordinates")
        _set_whole(self, "count")

    @property
    def mu(self) -> float:
        """Sensitivity over noise for one release (Gaussian DP's mu); infinite without noise."""
        return math.inf if self.noise is NoiseKind.NONE else self.sensitivity / self.noise_stddev

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary; :func:`event_from_json` reads it back exactly."""
        return {
            "type": self.tag,
            "sensitivity": self.sensitivity,
            "noise_stddev": self.noise_stddev,
            "coordinates": self.coordinates,
            "noise": str(self.noise),
            "slack": {"eta": self.slack.eta, "tau": self.slack.tau},
            "count": self.count,
        }


@dataclass(frozen=True)
class PoissonGaussianEvent:
    """``count`` steps of the Poisson-sampled Gaussian mechanism (DP-SGD), charged by RDP only.

    Attributes:
        sampling_probability: chance of each record to be in a step, above 0 and at most 1.
        noise_multiplier: noise standard deviation over what one record moves the sum by; 0 only without noise.
        count: number of steps.
        noise: which sampler drew the noise; the discrete Gaussian has no proof under sampling.
        coordinates: length of the sum.
        slack: how far that sampler may be from the ideal law, per coordinate.

    The pair of neighbours is add-or-remove one record; for replacing one see :mod:`datalens.privacy.replacing`.

    Raises:
        ConfigError: a value outside these ranges.
    """

    tag: ClassVar[str] = "poisson-gaussian"
    sampling_probability: float
    noise_multiplier: float
    count: int = 1
    noise: NoiseKind = NoiseKind.ROUNDED
    coordinates: int = 1
    slack: SamplerSlack = SamplerSlack()

    def __post_init__(self) -> None:
        _set_positive(self, "sampling_probability")
        if self.sampling_probability > 1:
            raise ConfigError(
                f"sampling_probability={self.sampling_probability!r} must be in (0, 1]: lower it"
            )
        object.__setattr__(self, "noise", _noise_kind(self.noise))
        if self.noise is NoiseKind.DISCRETE:
            raise ConfigError(
                f"noise {str(self.noise)!r} has no proved cost in Poisson-sampled steps: use {NoiseKind.ROUNDED}"
            )
        if self.noise is NoiseKind.NONE and self.noise_multiplier == 0:
            object.__setattr__(self, "noise_multiplier", 0.0)
        else:
            _set_positive(self, "noise_multiplier")
        _set_whole(self, "count")
        _set_whole(self, "coordinates")

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary; :func:`event_from_json` reads it back exactly, and older ones without the noise."""
        return {
            "type": self.tag,
            "sampling_probability": self.sampling_probability,
            "noise_multiplier": self.noise_multiplier,
            "count": self.count,
            "noise": str(self.noise),
            "coordinates": self.coordinates,
            "slack": {"eta": self.slack.eta, "tau": self.slack.tau},
        }


@dataclass(frozen=True)
class TuningEvent:
    """``count`` tunings: the best of a secret random number of tries; see :mod:`datalens.privacy.private_tuning`.

    Attributes:
        mu: of one try, all its releases and its score together, above 0.
        expected_tries: E[K], above 1.
        eta: shape of the law of K, above -1; 1 is geometric.
        bad_mass: how far, in total variation, the real outcome may be from the ideal one.
        count: number of such tunings.
    """

    tag: ClassVar[str] = "tuning"
    mu: float
    expected_tries: float
    eta: float = 1.0
    bad_mass: float = 0.0
    count: int = 1

    def __post_init__(self) -> None:
        _set_positive(self, "mu")
        _set_positive(self, "expected_tries")
        object.__setattr__(self, "eta", float(self.eta))
        check_law(self.expected_tries, self.eta)
        if not (math.isfinite(self.bad_mass) and self.bad_mass >= 0):
            raise ConfigError(f"bad_mass={self.bad_mass!r} must be 0 or more and finite: correct it")
        _set_whole(self, "count")

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary; :func:`event_from_json` reads it back exactly."""
        return {
            "type": self.tag,
            "mu": self.mu,
            "expected_tries": self.expected_tries,
            "eta": self.eta,
            "bad_mass": self.bad_mass,
            "count": self.count,
        }


NoisyEvent = GaussianEvent | PoissonGaussianEvent
"""Events with noise of their own, on so many coordinates."""

Event = NoisyEvent | TuningEvent
_LARGEST = 1e50
"""Of every number of an event, and 1 over the least: their squares, ratios and counts together stay within floats."""
_Same = TypeVar("_Same", bound=Event)


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Read an event written by its ``to_json``.

    Raises:
        LedgerError: a missing, unknown or impossible value.

    >>> event = GaussianEvent(2.0, 4.0, 1)
    >>> event_from_json(event.to_json()) == event
    True
    """
    try:
        fields = dict(data)
        tag = fields.pop("type")
        if tag == GaussianEvent.tag:
            return GaussianEvent(**{**fields, "slack": SamplerSlack(**fields["slack"])})
        if tag == PoissonGaussianEvent.tag:
            return PoissonGaussianEvent(**{**fields, "slack": SamplerSlack(**fields.get("slack", {}))})
        if tag == TuningEvent.tag:
            return TuningEvent(**fields)
    except (ConfigError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise LedgerError(
            f"event cannot be read ({error}): the ledger is damaged or from a newer version"
        ) from error
    raise LedgerError(
        f"event type {tag!r} is unknown; known: {GaussianEvent.tag}, {PoissonGaussianEvent.tag}, "
        f"{TuningEvent.tag}"
    )


def times(event: _Same, count: int) -> _Same:
    """The same event ``count`` times as often.

    >>> times(GaussianEvent(2.0, 4.0, 1), 5).count
    5
    """
    return replace(event, count=event.count * count)


def compact(events: Iterable[Event]) -> tuple[Event, ...]:
    """The same releases with equal ones merged into counts, in order of first appearance.

    >>> [event.count for event in compact([GaussianEvent(2.0, 4.0, 1)] * 3)]
    [3]
    """
    counts: dict[Event, int] = {}
    for event in events:
        single = event if event.count == 1 else replace(event, count=1)
        counts[single] = counts.get(single, 0) + event.count
    return tuple(single if count == 1 else replace(single, count=count) for single, count in counts.items())


def _noise_kind(value: str) -> NoiseKind:
    try:
        return NoiseKind(value)
    except ValueError:
        known = ", ".join(NoiseKind)
        raise ConfigError(f"noise {value!r} is unknown; known: {known}") from None


def _set_positive(event: object, name: str) -> None:
    value = getattr(event, name)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number > 0 or math.isinf(number):
        raise ConfigError(f"{name}={value!r:.40} must be above 0 and finite: correct it")
    if not 1 / _LARGEST <= number <= _LARGEST:
        raise ConfigError(f"{name}={value!r} must be from {1 / _LARGEST:g} to {_LARGEST:g}: correct it")
    object.__setattr__(event, name, number)


def _set_whole(event: object, name: str) -> None:
    value = getattr(event, name)
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if not 1 <= number <= _LARGEST:
        most = "" if number < 1 else f", at most {_LARGEST:g}"
        raise ConfigError(f"{name}={value!r} must be a whole number, 1 or more{most}: correct it")
    object.__setattr__(event, name, number)
