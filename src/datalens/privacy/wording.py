"""Numbers of the guarantee in words: an epsilon never rounded down, and a delta that is too large."""

from __future__ import annotations

import math

from datalens.errors import ConfigError
from datalens.privacy.gaussian import check_delta


def delta_warning(delta: float, num_records: int, *, strict: bool = False) -> str | None:
    """One line of warning where delta allows releasing a whole record, else None.

    Args:
        delta: in (0, 1).
        num_records: declared number of sensitive records, 1 or more.
        strict: raise instead of returning the line.

    >>> delta_warning(1e-5, 60000) is None
    True
    """
    check_delta(delta)
    if num_records < 1:
        raise ConfigError(
            f"num_records={num_records!r} must be 1 or more: declare how many records there are"
        )
    if delta * num_records < 1:
        return None
    text = (
        f"delta={delta:g} is not below 1/num_records={1 / num_records:g}: releasing a whole record "
        "would be allowed; "
        f"use at most {0.1 / num_records:.1g}"
    )
    if strict:
        raise ConfigError(text)
    return text


def rounded_up(epsilon: float, digits: int = 4) -> str:
    """Epsilon as text with ``digits`` significant digits, never smaller than the value.

    >>> rounded_up(0.99101)
    '0.9911'
    """
    if not math.isfinite(epsilon) or epsilon == 0:
        return f"{epsilon:g}"
    unit = 10.0 ** (math.floor(math.log10(abs(epsilon))) - digits + 1)
    text = f"{math.ceil(epsilon / unit) * unit:.{digits}g}"
    return text if float(text) >= epsilon else f"{(math.ceil(epsilon / unit) + 1) * unit:.{digits}g}"
