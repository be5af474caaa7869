"""What guesses about fair coins say of epsilon, from one training run."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from datalens.errors import ConfigError

_MOST = 60.0


def guess_p_value(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Bound on the chance of so many right guesses under any (epsilon, delta)-private training.

    Each of ``canaries`` records took part by a fair coin of its own; an attacker who sees the output guesses
    ``guesses`` of the coins, in any way, and is right ``correct`` times. With q = e^eps/(1 + e^eps), W ~
    Binomial(guesses, q):  P <= P(W >= v) + 2 m delta max over i from 1 to m of P(v - i <= W < v) / i.

    Source: Steinke, Nasr and Jagielski 2023, theorem 5.2.

    >>> round(guess_p_value(60, 100, 100, 0.0, 0.0), 4)
    0.0284
    """
    if not (0 <= correct <= guesses <= canaries and canaries >= 1):
        raise ConfigError(f"{correct} right of {guesses} guesses about {canaries} canaries: these do not fit")
    chance = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(correct - 1, guesses, chance))
    if delta == 0 or correct == 0:
        return min(1.0, tail)
    below = binom.pmf(np.arange(correct - 1, -1, -1), guesses, chance)  # past i = v nothing is added
    excess = float((np.cumsum(below) / np.arange(1, correct + 1)).max())
    return min(1.0, tail + 2 * canaries * delta * excess)


def canary_epsilon(correct: int, guesses: int, canaries: int, delta: float, rate: float) -> float:
    """Lower bound on epsilon that is above the truth with a chance of at most ``rate``; 0 if nothing shows.

    >>> canary_epsilon(50, 100, 100, 1e-5, 0.05)
    0.0
    >>> 2.5 < canary_epsilon(100, 100, 100, 1e-5, 0.05) < 3.6
    True
    """
    if guess_p_value(correct, guesses, canaries, 0.0, delta) > rate:
        return 0.0
    low, high = 0.0, _MOST
    for _ in range(60):
        middle = (low + high) / 2
        if guess_p_value(correct, guesses, canaries, middle, delta) <= rate:
            low = middle
        else:
            high = middle
    return low
