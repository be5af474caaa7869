"""From events to epsilon: three accountants with the same methods, none of which keeps or changes
anything."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from datalens.errors import ConfigError
from datalens.privacy import gaussian, private_tuning
from datalens.privacy.events import Event, GaussianEvent, NoiseKind, NoisyEvent, TuningEvent

_SMALL_ORDERS: tuple[float, ...] = tuple(
    sorted(
        {
            *(1 + float(gap) for gap in (0.01, 0.02, 0.035, *np.geomspace(0.05, 9.5, 32))),
            *map(float, range(2, 65)),
        }
    )
)
_LARGE_ORDERS: tuple[float, ...] = tuple(float(int(2 ** (step / 4))) for step in range(25, 69))
POISSON_ORDERS = _SMALL_ORDERS + _LARGE_ORDERS


class AccountantKind(StrEnum):
    """How a list of events becomes epsilon."""

    EXACT = "exact"
    RDP = "rdp"
    CLASSIC = "rdp-classic"


@dataclass(frozen=True)
class _Totals:
    """Everything about a list of events that decides its cost."""

    mu: float
    poisson: tuple[tuple[float, float, int], ...]
    only_continuous: bool
    log_ratio: float
    bad_mass: float
    tuning_excess: float = 0.0
    log_tries: float = 0.0


@dataclass(frozen=True)
class Accountant:
    """Costs of events under one conversion.

    ``exact``: the curve of composed Gaussians; ``rdp``: Rényi with the tight conversion; ``rdp-classic``: the
    paper's conversion. Sums that hold anything but rounded or continuous Gaussian noise (discrete Gaussian,
    Poisson sampling, tuning) have no exact curve here and are charged by ``rdp`` instead, all of it.

    Guarantee: the transcript of the events is (epsilon, delta)-private. Parameters of later Gaussian events
    may depend on earlier outputs as long as the ceiling was fixed beforehand; a list with Poisson-sampled
    or tuning events needs a plan that was fixed before its first release. Sampler slack is included: with
    ideal (e, d), H = sum of coordinates * eta and W = sum of coordinates * tau, the real transcript is
    (e + 2H, exp(H) d + (1 + exp(e + 2H)) W)-private.

    >>> event = GaussianEvent(sensitivity=4.0, noise_stddev=8.0, coordinates=784)
    >>> [round(Accountant(kind).epsilon(event, 1e-5), 3) for kind in AccountantKind]
    [1.993, 2.166, 2.524]
    """

    kind: AccountantKind = AccountantKind.EXACT

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "kind", AccountantKind(self.kind))
        except ValueError:
            known = ", ".join(AccountantKind)
            raise ConfigError(f"accountant {self.kind!r} is unknown; known: {known}") from None

    def epsilon(self, events: Event | Iterable[Event], delta: float) -> float:
        """Epsilon of the events together at ``delta``; 0 for none, infinite without noise, never NaN.

        Raises:
            ConfigError: delta outside (0, 1).
        """
        gaussian.check_delta(delta)
        totals = _totals(events)
        if totals.poisson:
            _warn_at_edge(totals, delta, classic=self.kind is AccountantKind.CLASSIC)
        return _with_slack(self._ideal(totals), totals, delta)

    def delta(self, events: Event | Iterable[Event], epsilon: float) -> float:
        """Delta of the events together at ``epsilon`` (0 or more); at most 1.

        Raises:
            ConfigError: epsilon negative or not a number.
        """
        if not epsilon >= 0:
            raise ConfigError(f"epsilon={epsilon!r} must be 0 or more: correct it")
        totals = _totals(events)
        base = epsilon - 2 * totals.log_ratio
        if base < 0 or math.isinf(totals.mu):
            return 1.0
        if totals.mu == 0 and not totals.poisson:
            ideal = 0.0
        elif self._conversion(totals) is AccountantKind.EXACT:
            ideal = gaussian.delta_of(base, totals.mu)
        else:
            ideal = _invert(self._ideal(totals), base)
        if totals.bad_mass > 0:
            slack = totals.bad_mass * (1 + math.exp(min(epsilon, 700.0)))
        else:
            slack = 0.0
        return min(1.0, math.exp(min(totals.log_ratio, 700.0)) * ideal + slack)

    def used_for(self, events: Event | Iterable[Event]) -> AccountantKind:
        """The conversion that these events are really charged by (see the class)."""
        return self._conversion(_totals(events))

    def _conversion(self, totals: _Totals) -> AccountantKind:
        if self.kind is AccountantKind.EXACT and not totals.only_continuous:
            return AccountantKind.RDP
        return self.kind

    def _ideal(self, totals: _Totals) -> Callable[[float], float]:
        conversion = self._conversion(totals)
        if totals.poisson:
            return lambda delta: _grid_epsilon(totals, delta, classic=conversion is AccountantKind.CLASSIC)
        if totals.log_tries > 0:
            return lambda delta: _tuned_epsilon(totals, delta, classic=conversion is AccountantKind.CLASSIC)
        formula = {
            AccountantKind.EXACT: lambda delta: gaussian.epsilon_of(delta, totals.mu),
            AccountantKind.RDP: lambda delta: gaussian.rdp_epsilon(totals.mu, delta),
            AccountantKind.CLASSIC: lambda delta: gaussian.rdp_classic_epsilon(totals.mu, delta),
        }[conversion]
        return (lambda delta: 0.0) if totals.mu == 0 else formula


def _totals(events: Event | Iterable[Event]) -> _Totals:
    mu_squared: list[float] = []
    log_ratios: list[float] = []
    bad_masses: list[float] = []
    poisson: dict[tuple[float, float], int] = {}
    tunings: list[TuningEvent] = []
    only_continuous = True
    for event in [events] if isinstance(events, Event) else events:
        if isinstance(event, NoisyEvent):
            draws = event.coordinates * event.count
            log_ratios.append(draws * event.slack.eta)
            bad_masses.append(draws * event.slack.tau)
        if isinstance(event, GaussianEvent):
            mu_squared.append(event.mu**2 * event.count)
            only_continuous &= event.noise in (NoiseKind.ROUNDED, NoiseKind.CONTINUOUS)
        elif isinstance(event, TuningEvent):
            tunings.append(event)
            mu_squared.append(event.mu**2 * event.count)
            bad_masses.append(event.bad_mass * event.count)
            only_continuous = False
        else:
            only_continuous = False
            if event.noise is NoiseKind.NONE:
                mu_squared.append(math.inf)
                continue
            key = (event.sampling_probability, event.noise_multiplier)
            poisson[key] = poisson.get(key, 0) + event.count
    return _Totals(
        mu=math.inf if math.inf in mu_squared else math.sqrt(math.fsum(mu_squared)),
        poisson=tuple(sorted((*key, count) for key, count in poisson.items())),
        only_continuous=only_continuous,
        log_ratio=math.fsum(log_ratios),
        bad_mass=math.fsum(bad_masses),
        tuning_excess=math.fsum(
            event.count * private_tuning.excess(event.mu, event.expected_tries, event.eta)
            for event in tunings
        ),
        log_tries=math.fsum(event.count * math.log(event.expected_tries) for event in tunings),
    )


def _tuned_epsilon(totals: _Totals, delta: float, *, classic: bool) -> float:
    """Epsilon of Gaussian and tuning events together: their Rényi curve is a Gaussian's, plus the excess at every
    order, plus log E[K]/(order - 1), which is what delta/E[K] would do."""
    log_delta = math.log(delta) - totals.log_tries
    if math.isinf(totals.mu) or log_delta < -690:
        return math.inf
    shared = math.exp(log_delta)
    plain = 0.0 if classic else gaussian.rdp_epsilon(totals.mu, shared)
    if plain == 0:
        plain = gaussian.rdp_classic_epsilon(totals.mu, shared)
    return totals.tuning_excess + plain


def _with_slack(ideal: Callable[[float], float], totals: _Totals, delta: float) -> float:
    """Smallest epsilon found that is proved for a sampler with slack; see :class:`Accountant`.

    With e the ideal epsilon, it is enough that ideal(d(e)) <= e for d(e) = (delta - (1 + exp(e + 2H))
    W)/exp(H). Iterating e -> ideal(d(e)) from 0 climbs to the smallest such e; a value is returned only after
    the condition has been checked for it.
    """
    if totals.log_ratio == 0 and totals.bad_mass == 0:
        return ideal(delta)

    def needed(epsilon: float) -> float:
        shifted = epsilon + 2 * totals.log_ratio
        if shifted > 700 and totals.bad_mass > 0:
            return math.inf
        left = delta - (1 + math.exp(min(shifted, 700.0))) * totals.bad_mass
        budget = left * math.exp(-totals.log_ratio)
        return ideal(budget) if budget > 0 else math.inf

    epsilon = 0.0
    for _ in range(200):
        following = needed(epsilon)
        if following <= epsilon:
            return epsilon + 2 * totals.log_ratio
        if math.isinf(following):
            return math.inf
        epsilon = following * (1 + 1e-12)
    return math.inf


def _invert(ideal: Callable[[float], float], epsilon: float) -> float:
    """Smallest delta (to one part in a million) at which ``ideal`` does not exceed ``epsilon``; from
    above."""
    low, high = math.log(1e-300), math.log1p(-1e-15)
    if ideal(math.exp(high)) > epsilon:
        return 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        if ideal(math.exp(middle)) <= epsilon:
            high = middle
        else:
            low = middle
    return math.exp(high)


@lru_cache(maxsize=1024)
def _poisson_curve(
    sampling_probability: float, noise_multiplier: float, orders: tuple[float, ...]
) -> np.ndarray:
    """Rényi divergences of one Poisson-sampled Gaussian step at rising orders.

    dp-accounting up to order 64; above it the sum of integer orders (Mironov, Talwar and Zhang 2019, section
    3.3), which dp-accounting takes term by term.
    """
    import dp_accounting
    from dp_accounting import rdp

    step = dp_accounting.PoissonSampledDpEvent(
        sampling_probability, dp_accounting.GaussianDpEvent(noise_multiplier)
    )
    small = [order for order in orders if order <= _SMALL_ORDERS[-1]]
    large = [order for order in orders if order > _SMALL_ORDERS[-1]]
    accountant = rdp.RdpAccountant(small, dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    absl_logger = logging.getLogger("absl")
    level = absl_logger.level
    absl_logger.setLevel(logging.ERROR)  # it reports each order whose series does not converge: infinite here
    try:
        accountant.compose(step)
    finally:
        absl_logger.setLevel(level)
    whole = [_integer_order(int(order), sampling_probability, noise_multiplier) for order in large]
    curve = np.array([*accountant.rdp, *whole], dtype=np.float64)
    curve.setflags(write=False)
    return curve


def _integer_order(order: int, sampling_probability: float, noise_multiplier: float) -> float:
    """log of sum over k of C(order, k) (1-q)^(order-k) q^k exp(k(k-1)/(2 sigma^2)), over order - 1."""
    if sampling_probability == 1:
        return order / (2 * noise_multiplier**2)
    import scipy

    k = np.arange(order + 1, dtype=np.float64)
    log_factorial = scipy.special.gammaln(k + 1)
    terms = log_factorial[-1] - log_factorial - log_factorial[::-1]
    terms = terms + (order - k) * math.log1p(-sampling_probability) + k * math.log(sampling_probability)
    terms = terms + k * (k - 1) / (2 * noise_multiplier**2)
    largest = float(terms.max())
    return max(0.0, largest + math.log(float(np.exp(terms - largest).sum()))) / (order - 1)


def _grid_epsilon(totals: _Totals, delta: float, *, classic: bool) -> float:
    """Epsilon from the summed Rényi curve at POISSON_ORDERS."""
    return _best_on_grid(totals, delta, classic=classic)[0]


def _warn_at_edge(totals: _Totals, delta: float, *, classic: bool) -> None:
    epsilon, best = _best_on_grid(totals, delta, classic=classic)
    if best in (0, len(POISSON_ORDERS) - 1) and 0 < epsilon < math.inf:
        order = POISSON_ORDERS[best]
        text = f"epsilon={epsilon:g} has its best Rényi order at the edge ({order:g}): it holds but is loose"
        warnings.warn(text, stacklevel=3)


def _best_on_grid(totals: _Totals, delta: float, *, classic: bool) -> tuple[float, int]:
    """Epsilon and the place of the best order in POISSON_ORDERS, after a finer look between its
    neighbours."""
    values = _values_at(POISSON_ORDERS, totals, delta, classic=classic)
    best = int(np.argmin(values))
    if values[best] <= 0 or best in (0, len(POISSON_ORDERS) - 1) or not math.isfinite(values[best]):
        return max(0.0, float(values[best])), best
    between = np.linspace(POISSON_ORDERS[best - 1], POISSON_ORDERS[best + 1], 15)[1:-1]
    if POISSON_ORDERS[best + 1] > _SMALL_ORDERS[-1]:
        between = np.unique(np.floor(between))  # above order 64 whole orders are fine enough
    finer = _values_at(tuple(between.tolist()), totals, delta, classic=classic)
    return max(0.0, float(min(values[best], finer.min()))), best


def _values_at(orders: tuple[float, ...], totals: _Totals, delta: float, *, classic: bool) -> np.ndarray:
    """Epsilon that each order gives; 0 where the order's divergence alone shows delta to be enough."""
    order = np.array(orders)
    curve = order * (totals.mu**2 / 2) + totals.tuning_excess + totals.log_tries / (order - 1)
    for sampling_probability, noise_multiplier, count in totals.poisson:
        curve = curve + float(count) * _poisson_curve(sampling_probability, noise_multiplier, orders)
    curve = np.where(np.isnan(curve) | (curve < 0), np.inf, curve)
    values = curve - math.log(delta) / (order - 1)
    if classic:
        return values
    values = values + np.log1p(-1 / order) - np.log(order) / (order - 1)
    return np.where(-np.expm1(-curve) <= delta * delta, 0.0, values)
