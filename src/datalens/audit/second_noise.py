"""How far a noise sampler is from the ideal, a second way: for verification, sharing no code with the samplers.

``docs/privacy.md``, Lemma 4: a rounded Gaussian is drawn with thresholds of 191 bits, each within 2 units of the
ideal. The core reaches as far as a magnitude has 2 (2^56 + 1) units or more; eta is 2 units over the smallest mass in
the core less 2, and tau is what lies outside of the core, and 2 units. Here masses come from the normal distribution
function in logarithms, and no table is built.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from scipy.special import log_ndtr

from datalens.audit.ledger_reader import Difference

ROUNDED = "rounded-gaussian"
BITS, CORE_BITS, UNITS_OFF = 191, 56, 2
NARROWEST, WIDEST = 0.25, 131072.0
"""Standard deviations for which the lemma is proved."""
TOLERANCE = 1e-6
_EDGE = 1e-8
"""Relative error allowed to this file's own masses where they decide how far the core reaches."""


def check_slack(values: Iterable[Any], covering: Iterable[Any] = ()) -> None:
    """Every Gaussian release named in these plain values says the slack of its own sampler.

    Args:
        values: of lines that say what is released.
        covering: of lines that pay for one that was cut off: whichever release it was, with the largest slack of any.

    Raises:
        Difference: one says another, or in ``covering`` less, or its noise cannot be drawn.
    """
    exact, paid = (list(gaussian_events(list(part))) for part in (values, covering))
    for event, is_enough in [*((event, same_slack) for event in exact), *((event, covers) for event in paid)]:
        kind, stddev, said = event["noise"], event["noise_stddev"], event["slack"]
        if not any(is_enough(said, mine) for mine in slack_again(str(kind), float(stddev))):
            raise Difference(
                f"ledger.jsonl: noise {stddev:g} ({kind}) has not the slack that is said, {said!r:.80}"
            )


def gaussian_events(value: Any) -> Iterator[dict[str, Any]]:
    """All Gaussian releases in plain values, however deep."""
    if isinstance(value, dict):
        if value.get("type") == "gaussian":
            yield value
        for part in value.values():
            yield from gaussian_events(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from gaussian_events(part)


@lru_cache(maxsize=64)
def slack_again(kind: str, stddev: float) -> tuple[tuple[float, float], ...]:
    """eta and tau of one draw; twice, where rounding here leaves the end of the core open.

    Raises:
        Difference: no such noise can be drawn.
    """
    if kind != ROUNDED:
        return ((0.0, 0.0),)
    if not NARROWEST <= stddev <= WIDEST:
        raise Difference(f"ledger.jsonl: no rounded Gaussian noise of {stddev:g} can be drawn")
    least = math.log(UNITS_OFF * (2.0**CORE_BITS + 1)) - BITS * math.log(2)
    ends = {_end_of_core(stddev, least + error) for error in (-_EDGE, _EDGE)}
    return tuple(_slack(stddev, end) for end in sorted(ends))


def _slack(stddev: float, end: int) -> tuple[float, float]:
    smallest = min(_log_mass(0, stddev), _log_mass(end, stddev)) + BITS * math.log(2)
    eta = UNITS_OFF / (math.exp(smallest) - UNITS_OFF)
    return min(eta, 2.0**-CORE_BITS), math.exp(_log_tail(end + 1, stddev)) + UNITS_OFF * 2.0**-BITS


def _end_of_core(stddev: float, least: float) -> int:
    """The largest magnitude whose log mass is ``least`` or more; masses fall from magnitude 1 on."""
    low, high = 1, math.ceil(40 * stddev) + 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _log_mass(middle, stddev) >= least else (low, middle)
    return low


def _log_mass(magnitude: int, stddev: float) -> float:
    """log P(|X| = magnitude) of the ideal."""
    tail, beyond = _log_tail(magnitude, stddev), _log_tail(magnitude + 1, stddev)
    return tail + math.log(-math.expm1(beyond - tail))


def _log_tail(magnitude: int, stddev: float) -> float:
    """log P(|X| >= magnitude) of the ideal."""
    return 0.0 if magnitude == 0 else math.log(2) + float(log_ndtr((0.5 - magnitude) / stddev))


def covers(said: Mapping[str, Any], slack: tuple[float, float]) -> bool:
    """Whether the slack that is said is the one computed, or more."""
    return all(said[name] >= mine * (1 - TOLERANCE) for name, mine in zip(("eta", "tau"), slack, strict=True))


def same_slack(said: Mapping[str, Any], slack: tuple[float, float]) -> bool:
    """Whether the slack that is said is the one computed."""
    return all(
        math.isclose(said[name], mine, rel_tol=TOLERANCE)
        for name, mine in zip(("eta", "tau"), slack, strict=True)
    )
