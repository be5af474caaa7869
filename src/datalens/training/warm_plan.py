"""What a warm start costs, from settings and public sizes alone: two sums, with their share of the budget.

Each is charged for one record *replaced* by another, twice what adding or removing one moves, since a run of DataLens
promises the same epsilon for both (``docs/privacy.md``, 4.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from datalens.errors import ConfigError, LedgerError
from datalens.mechanisms.vector_sum import VectorSum
from datalens.moments.limits import check_memory
from datalens.moments.measuring import MEANS, PRODUCTS, STATES, Measures
from datalens.noise import NoiseSource, make_noise
from datalens.noise.table import MAX_STDDEV, MIN_STDDEV, SLACK_BOUND
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.calibration import tidy
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.privacy.ledger import Ledger, LineKind
from datalens.randomness import Streams
from datalens.training.config import Config
from datalens.training.warm_settings import refuse_warm, require_enabled

NOTE = "warm_start"
"""In the note of a ledger line: that it is of a warm start, and which of its releases, from 0."""
PAID = (LineKind.RELEASE, LineKind.RECOVERED)
"""Lines that charge something."""
RANK = 64
"""Most directions in which images of a class vary, in the law that is learned."""
PARTS = {MEANS: 0.15, PRODUCTS: 0.85}
"""What each of the two sums has of the warm start's mu squared."""
_MOST_NUMBERS = 2**27
"""More than any table holds that fits into memory; to the cost it matters for the sampler's slack alone."""


@dataclass(frozen=True)
class WarmTerms:
    """On which terms a run makes its two releases, fixed before the first.

    Attributes:
        share: of the budget, of mu squared.
        noise_stddev: of each release, in units of its grid.
    """

    share: float
    noise_stddev: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in the ledger's first line."""
        return {"share": self.share, "noise_stddev": dict(self.noise_stddev)}

    @classmethod
    def of(cls, config: Config, image_shape: tuple[int, int, int]) -> WarmTerms | None:
        """As settings give them; None for a run without a warm start."""
        if not config.warm_start.enabled:
            return None
        grids = {what: Measures(image_shape, 1).grid(what) for what in STATES}
        moved = 2 * config.privacy.group_size
        stddevs = {what: _stddev(config, what, float(moved * grids[what].units)) for what in STATES}
        return cls(config.warm_start.share, stddevs)

    @classmethod
    def recorded(cls, ledger: Ledger) -> WarmTerms | None:
        """As a run's ledger has them; None for a run without a warm start.

        Raises:
            LedgerError: they are there by halves.
        """
        match ledger.header.get(NOTE):
            case None:
                return None
            case {"share": float(share), "noise_stddev": dict(stddevs)} if set(stddevs) == set(STATES):
                if all(isinstance(value, float) and 0 <= value < math.inf for value in stddevs.values()):
                    return cls(share, {what: stddevs[what] for what in STATES})
        raise LedgerError(
            f"ledger {ledger.path or 'in memory'} does not hold a warm start's terms; restore it"
        )

    def mechanism(
        self, config: Config, measures: Measures, what: str, noise: NoiseSource | None = None
    ) -> VectorSum:
        """Where the sums of one table become public; without a source of noise, for planning."""
        source = noise or make_noise(config.privacy.noise)
        stddev = self.noise_stddev[what]
        return VectorSum(measures.grid(what), stddev, source, config.privacy.group_size, of_replaced=True)

    def events(self, config: Config, measures: Measures) -> list[GaussianEvent]:
        """What the two releases are charged."""
        return [self.mechanism(config, measures, what).event(measures.coordinates(what)) for what in STATES]

    def real_stddev(self, measures: Measures, what: str) -> float:
        """Noise on the real sums that come out."""
        return self.noise_stddev[what] / measures.grid(what).scale


def check_warm_start(
    config: Config, image_shape: tuple[int, int, int], *, of_groups: bool, num_classes: int = 1
) -> None:
    """Refuse a warm start that cannot be made with these settings on such data.

    Raises:
        ConfigError: names the setting and the remedy.
    """
    settings, privacy = config.warm_start, config.privacy
    require_enabled(settings)
    if of_groups:
        refuse_warm(
            settings,
            "sums what every record adds, and a group may have any number of records",
            "leave it out where records come in groups",
        )
    if privacy.as_published:
        refuse_warm(settings, "has a guarantee, and as_published has none", "leave out one of the two")
    terms = WarmTerms.of(config, image_shape)
    if terms is None:
        return
    check_memory(Measures(image_shape, num_classes).basis, num_classes, RANK)
    most = max(terms.noise_stddev.values())
    if privacy.noise is NoiseKind.ROUNDED and most > MAX_STDDEV:
        raise ConfigError(
            f"warm_start.share = {settings.share:g}: at epsilon = {privacy.epsilon:g} its sums would need noise of "
            f"{most:.0f} units, but there are at most {MAX_STDDEV:.0f}; use a larger share or epsilon, or leave the "
            "warm start out"
        )


def stand_ins(config: Config) -> list[GaussianEvent]:
    """Events that cost what the two releases cost, whatever the size of the images, or by the last digits more.

    Noise follows from the share, in what a person moves; only the sampler's slack depends on sizes.
    """
    privacy = config.privacy
    if not (config.warm_start.enabled and privacy.is_private):
        return []
    return [
        GaussianEvent(1.0, _multiplier(config, what), _MOST_NUMBERS, privacy.noise, SLACK_BOUND)
        for what in STATES
    ]


def noise_of_release(config: Config, what: str) -> NoiseSource:
    """The noise source of a release; with an insecure seed each has a stream of its own."""
    privacy = config.privacy
    if privacy.insecure_seed is None or not privacy.adds_noise:
        return make_noise(privacy.noise)
    streams = Streams.from_insecure_seed(privacy.insecure_seed, "noise")
    return make_noise(privacy.noise, streams.key(f"warm start: {what}"))


def _stddev(config: Config, what: str, moved: float) -> float:
    privacy = config.privacy
    if not privacy.adds_noise:
        return 0.0
    stddev = _multiplier(config, what) * moved
    return max(MIN_STDDEV, stddev) if privacy.noise is NoiseKind.ROUNDED else stddev


def _multiplier(config: Config, what: str) -> float:
    """Noise over what a person moves; rounded up to four digits, so a release never costs more than its share."""
    privacy = config.privacy
    mu = _largest_mu(privacy.epsilon, privacy.delta, privacy.accountant, privacy.noise)
    return tidy(1 / (mu * math.sqrt(config.warm_start.share * PARTS[what])))


@lru_cache(maxsize=256)
def _largest_mu(epsilon: float, delta: float, accountant: AccountantKind, noise: NoiseKind) -> float:
    """The most that one Gaussian release may be to cost ``epsilon``, to one part in a billion, from below."""

    def costs(mu: float) -> float:
        return Accountant(accountant).epsilon(GaussianEvent(mu, 1.0, 1, noise), delta)

    low, high = 0.0, 2.0**-20
    while costs(high) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if costs(middle) <= epsilon else (low, middle)
    return high if low == 0 else low
