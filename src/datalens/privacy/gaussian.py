"""Closed-form privacy curves of the Gaussian mechanism; ``mu`` is sensitivity over noise everywhere.

Releases with mu_1, mu_2, ... compose to one with mu^2 = mu_1^2 + mu_2^2 + ... (Gaussian differential privacy,
Dong, Roth and Su), also when each may depend on the earlier outputs, as long as the ceiling on the sum was
fixed beforehand. Pure functions; every epsilon is rounded towards the larger.
"""

from __future__ import annotations

import math

import numpy as np

from datalens.errors import ConfigError

_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_LOG_SQRT_TAU = 0.5 * math.log(2 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_SMALL_MU = 0.05
_ROUND_UP = 1e-12


def check_delta(delta: float) -> float:
    """Return ``delta``, or raise ConfigError unless it lies strictly between 0 and 1.

    >>> check_delta(1e-5)
    1e-05
    """
    if not 0 < delta < 1:
        raise ConfigError(f"delta={delta!r} must lie strictly between 0 and 1: use a value such as 1e-5")
    return float(delta)


def delta_of(epsilon: float, mu: float) -> float:
    """Smallest delta at which a Gaussian of ``mu`` is (epsilon, delta)-private; exact.

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang 2018, theorem 8).

    >>> round(delta_of(1.0, 1.0), 4)
    0.1269
    """
    return math.exp(log_delta_of(epsilon, mu))


def log_delta_of(epsilon: float, mu: float) -> float:
    """Logarithm of :func:`delta_of`, without underflow or cancellation.

    With x = epsilon/mu - mu/2, y = x + mu and the Mills ratio m, delta = phi(x) (m(x) - m(y)); for a small mu
    the difference is the integral of -m'(t) = 1 - t m(t) over [x, y].
    """
    mu = _check_mu(mu)
    if math.isnan(epsilon):
        raise ConfigError("epsilon=nan is not a number: give a number")
    if mu == 0:
        return -math.inf if epsilon >= 0 else math.log(-math.expm1(epsilon))
    if math.isinf(mu):
        return 0.0
    if epsilon == math.inf:
        return -math.inf
    import scipy

    x = epsilon / mu - mu / 2
    y = epsilon / mu + mu / 2
    if mu < _SMALL_MU and x > -5:
        nodes = epsilon / mu + (mu / 2) * _NODES
        gap = (mu / 2) * float(np.dot(_WEIGHTS, _mills_slope(nodes)))
    elif x > -5:
        near, far = scipy.special.erfcx(x / math.sqrt(2)), scipy.special.erfcx(y / math.sqrt(2))
        gap = _SQRT_HALF_PI * float(near - far)
    else:  # far on the left, where nearly everything is lost: 1 - Phi(x) - e^epsilon Phi(-y)
        log_left, log_right = float(scipy.special.log_ndtr(x)), float(scipy.special.log_ndtr(-y))
        gone = math.exp(log_left) + math.exp(min(epsilon + log_right, 0.0))
        return math.log1p(-gone) if gone < 1 else -math.inf
    return min(0.0, -x * x / 2 - _LOG_SQRT_TAU + math.log(gap)) if gap > 0 else -math.inf


def epsilon_of(delta: float, mu: float) -> float:
    """Smallest epsilon at which a Gaussian of ``mu`` is (epsilon, delta)-private; exact, never negative.

    Raises:
        ConfigError: delta outside (0, 1), or mu negative or not a number.

    >>> round(epsilon_of(1e-5, 0.5), 4)
    1.9931
    """
    log_delta = math.log(check_delta(delta))
    mu = _check_mu(mu)
    if math.isinf(mu):
        return math.inf
    if mu == 0 or log_delta_of(0.0, mu) <= log_delta:
        return 0.0
    high = rdp_classic_epsilon(mu, delta)
    low = 0.0
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if log_delta_of(middle, mu) <= log_delta:
            high = middle
        else:
            low = middle
    return high * (1 + _ROUND_UP)


def mu_of(epsilon: float, delta: float) -> float:
    """Largest ``mu`` whose exact epsilon at ``delta`` does not exceed ``epsilon``.

    >>> round(mu_of(1.9931, 1e-5), 4)
    0.5
    """
    log_delta = math.log(check_delta(delta))
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise ConfigError(f"epsilon={epsilon!r} must be 0 or more and finite: correct it")
    low, high = 0.0, 1.0
    while log_delta_of(epsilon, high) <= log_delta:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high) or high - low <= 1e-15 * high:
            break
        if log_delta_of(epsilon, middle) <= log_delta:
            low = middle
        else:
            high = middle
    return low


def rdp(order: float, mu: float) -> float:
    """Rényi divergence of order ``order`` > 1 between the two worst outputs: order * mu^2 / 2.

    >>> rdp(2.0, 1.0)
    1.0
    """
    return check_order(order) * _check_mu(mu) ** 2 / 2


def check_order(order: float) -> float:
    """Return the Rényi order, or raise ConfigError unless it is above 1 and finite."""
    if not (math.isfinite(order) and order > 1):
        raise ConfigError(f"Rényi order {order!r} must be above 1 and finite: drop it from the orders")
    return float(order)


def rdp_epsilon(mu: float, delta: float) -> float:
    """Epsilon from RDP by the tight conversion, over all orders above 1 at once.

    epsilon(a) = a mu^2/2 + log(1 - 1/a) - log(delta a)/(a - 1) (Canonne, Kamath and Steinke 2020, proposition
    12). Its derivative is mu^2/2 - (log(1/delta) - log a)/(a - 1)^2, which rises to 0 once and stays
    positive, so the best order is the one root, and no grid has an edge. Zero where delta^2 >= 1 -
    exp(-mu^2/2): the total variation is below sqrt(1 - exp(-KL)).

    >>> round(rdp_epsilon(0.5, 1e-5), 4)
    2.1657
    """
    log_inverse = -math.log(check_delta(delta))
    mu = _check_mu(mu)
    if math.isinf(mu):
        return math.inf
    if -math.expm1(-mu * mu / 2) <= delta * delta:
        return 0.0
    gap = best_order_gap(mu, delta)
    epsilon = (
        (1 + gap) * mu * mu / 2 + math.log(gap) - math.log1p(gap) + (log_inverse - math.log1p(gap)) / gap
    )
    return max(0.0, min(epsilon * (1 + _ROUND_UP), rdp_classic_epsilon(mu, delta)))


def best_order_gap(mu: float, delta: float) -> float:
    """The best Rényi order of :func:`rdp_epsilon`, minus 1."""
    log_inverse = -math.log(delta)
    low, high = -745.0, math.log(2 * log_inverse) / 2 - math.log(mu)
    while high - low >= 1e-10:  # some thousand times the distance of two doubles of this size
        middle = (low + high) / 2
        gap = math.exp(middle)
        if gap * gap * mu * mu / 2 + math.log1p(gap) < log_inverse:
            low = middle
        else:
            high = middle
    return max(math.exp((low + high) / 2), 1e-300)


def rdp_classic_epsilon(mu: float, delta: float) -> float:
    """Epsilon from RDP by the paper's conversion (Theorems 1 to 3), at the best order above 1.

    min over a > 1 of a mu^2/2 + log(1/delta)/(a - 1) = mu^2/2 + mu sqrt(2 log(1/delta)).

    >>> round(rdp_classic_epsilon(0.5, 1e-5), 4)
    2.5243
    """
    log_inverse = -math.log(check_delta(delta))
    mu = _check_mu(mu)
    return (mu * mu / 2 + mu * math.sqrt(2 * log_inverse)) * (1 + _ROUND_UP)


def _mills_slope(t: np.ndarray) -> np.ndarray:
    """1 - t m(t) with the Mills ratio m, for t above -6; the asymptotic series where that would cancel."""
    import scipy

    plain = 1 - t * _SQRT_HALF_PI * scipy.special.erfcx(t / math.sqrt(2))
    inverse = 1 / np.maximum(t, 30.0) ** 2
    series = inverse * (1 - 3 * inverse * (1 - 5 * inverse * (1 - 7 * inverse * (1 - 9 * inverse))))
    return np.where(t > 30, series, plain)


def _check_mu(mu: float) -> float:
    if math.isnan(mu) or mu < 0:
        raise ConfigError(f"mu={mu!r} (sensitivity over noise) must be 0 or more: correct it")
    return float(mu)
