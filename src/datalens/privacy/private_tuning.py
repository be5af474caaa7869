"""What it costs to try settings a random number of times and release the best: Papernot and Steinke (2022).

*Theorem 2* (truncated negative binomial number of tries). Let one try Q satisfy (a, e)- and (b, f)-Rényi privacy
with a > 1 and b >= 1, and let its outputs be totally ordered. Draw K from D(eta, gamma) with eta > -1 and
0 < gamma < 1, run Q K times, release the best output. That is (a, e')-Rényi private with

    e' = e + (1 + eta) (1 - 1/b) f + (1 + eta) log(1/gamma)/b + log E[K]/(a - 1).

A try here is mu-Gaussian: e = a mu^2/2 and f = b mu^2/2 at every order. With h = mu^2/2 and L = log(1/gamma) the
two middle terms are (1 + eta) (h (b - 1) + L/b), least at b = max(1, sqrt(L/h)): :func:`excess`. The tight
conversion at delta then gives

    epsilon(delta) = excess + [tight Gaussian epsilon of mu at delta/E[K]].

*Theorem 6* (Poisson number of tries of mean m). If Q is also (g, d)-private with exp(g) <= 1 + 1/(a - 1), then
e' = e + m d + log(m)/(a - 1): :func:`poisson_rdp`. It is here to compare with; ``datalens tune`` does not use it,
since it may make no try at all.

The number of tries is private: nothing that is released may depend on K but through the best output.

Source: Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022, Theorems 2 and 6.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable

from datalens.errors import BudgetError, ConfigError
from datalens.privacy import gaussian

MOST_TRIES = 100.0
"""Largest expected number of tries: with it the law of K is good to LAW_ERROR in plain floating point."""
LAW_ERROR = 2.0**-40
"""At most this far, in total variation, is the law of :func:`draw_tries` from the ideal one."""
_UNIT = 1 << 128
_ENOUGH_OF_LAW = 1 - 1e-13


def check_law(expected_tries: float, eta: float) -> None:
    """Refuse an expected number of tries or a shape that is out of range.

    Raises:
        ConfigError: says which.
    """
    if not 1 < expected_tries <= MOST_TRIES:
        raise ConfigError(
            f"expected_tries = {expected_tries:g}: must be above 1 and at most {MOST_TRIES:g}; 5 is usual"
        )
    if not (math.isfinite(eta) and -1 < eta <= 16):
        raise ConfigError(f"eta = {eta:g}: must be above -1 and at most 16; 1 is a geometric number of tries")


def expected_of(log_inverse_gamma: float, eta: float) -> float:
    """E[K] of D(eta, gamma), with gamma given as L = log(1/gamma) above 0.

    eta (1 - gamma)/(gamma (1 - gamma^eta)), and (1 - gamma)/(gamma L) at eta = 0.

    >>> round(expected_of(math.log(5.0), 1.0), 9)
    5.0
    """
    odds = math.expm1(log_inverse_gamma)
    if eta == 0:
        return odds / log_inverse_gamma
    return eta * odds / -math.expm1(-eta * log_inverse_gamma)


def log_inverse_gamma(expected_tries: float, eta: float) -> float:
    """log(1/gamma) of the D(eta, gamma) with this expectation; from above, by bisection.

    >>> round(math.exp(log_inverse_gamma(5.0, 1.0)), 9)
    5.0
    """
    check_law(expected_tries, eta)
    low, high = 0.0, 1.0
    while expected_of(high, eta) < expected_tries:
        low, high = high, 2 * high
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if expected_of(middle, eta) < expected_tries:
            low = middle
        else:
            high = middle
    return high


def excess(mu: float, expected_tries: float, eta: float) -> float:
    """What every order pays for choosing the best: min over b >= 1 of (1 + eta)(h (b - 1) + L/b).

    >>> 0.5 < excess(0.2, 5.0, 1.0) < 1.0
    True
    """
    half, price = mu * mu / 2, log_inverse_gamma(expected_tries, eta)
    least = 2 * math.sqrt(half * price) - half if price > half else price
    return (1 + eta) * least


def rdp(order: float, mu: float, expected_tries: float, eta: float) -> float:
    """Theorem 2: Rényi divergence of order ``order`` > 1 of the best of a random number of mu-Gaussian tries."""
    plain = gaussian.rdp(order, mu)
    return plain + excess(mu, expected_tries, eta) + math.log(expected_tries) / (order - 1)


def poisson_rdp(order: float, mu: float, expected_tries: float) -> float:
    """Theorem 6: the same for a Poisson number of tries, none of which leaves a fixed answer.

    >>> poisson_rdp(4.0, 0.2, 5.0) < rdp(4.0, 0.2, 5.0, 1.0)
    True
    """
    plain = gaussian.rdp(order, mu)
    leak = expected_tries * gaussian.delta_of(math.log1p(1 / (order - 1)), mu)
    return plain + leak + math.log(expected_tries) / (order - 1)


def law(expected_tries: float, eta: float) -> Callable[[int], float]:
    """P(K = k) of D(eta, gamma), for k = 1, 2, ...; to be asked in that order."""
    price = log_inverse_gamma(expected_tries, eta)
    stay = -math.expm1(-price)
    first = stay / price if eta == 0 else stay * eta / math.expm1(eta * price)
    known = [first]

    def probability(k: int) -> float:
        while len(known) < k:
            last = len(known)
            known.append(known[-1] * stay * (last + eta) / (last + 1))
        return known[k - 1]

    return probability


def draw_tries(expected_tries: float, eta: float, draw: Callable[[int], int] = secrets.randbelow) -> int:
    """The secret number of tries, 1 or more, from the operating system's entropy.

    Args:
        expected_tries: E[K], above 1.
        eta: shape; 1 is geometric, 0 logarithmic.
        draw: a uniform whole number below its argument.
    """
    probability = law(expected_tries, eta)
    level = draw(_UNIT) / _UNIT
    tries, below = 1, probability(1)
    while below <= level and below < _ENOUGH_OF_LAW:
        tries += 1
        below += probability(tries)
    return tries


def sampler_mass(expected_tries: float, draws: int, eta: float, tau: float) -> float:
    """How far, in total variation, the real best is from the ideal one: of samplers and of the law of K.

    One draw is within tau + exp(eta) - 1 of the ideal one, one try within ``draws`` times that, and the best of K
    tries within E[K] times that again. It is a mass W in (epsilon, delta + (1 + exp(epsilon)) W).
    """
    return expected_tries * draws * (tau + math.expm1(eta)) + LAW_ERROR


def mu_for(cost: Callable[[float], float], epsilon: float) -> float:
    """The largest mu of one try for which ``cost`` of the whole tuning is at most epsilon; from below.

    Raises:
        BudgetError: not even the smallest one fits.
    """
    low, high = 1e-9, 1e-3
    if not cost(low) <= epsilon:
        raise BudgetError(
            f"epsilon = {epsilon:g}: is too small for a tuning; raise epsilon, or expect fewer tries"
        )
    while cost(high) <= epsilon:
        low, high = high, 2 * high
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        if cost(middle) <= epsilon:
            low = middle
        else:
            high = middle
    return low
