"""What is known of a named data set before its records are read, by method: public priors, no choice from data."""

from __future__ import annotations

from typing import Any

PRIORS: dict[tuple[str, str], dict[str, Any]] = {
    ("moments", "mnist"): {"finish": {"jitter": 1.0}},
    ("judged", "mnist"): {"finish": {"jitter": 1.0}},
}
"""By method and data set, settings over the method's defaults. Handwriting leans, shifts and stretches."""


def usual_settings(method: str, source: str) -> dict[str, Any]:
    """Settings of a method for a source, where they are not its defaults.

    >>> usual_settings("moments", "mnist"), usual_settings("moments", "scans/")
    ({'finish': {'jitter': 1.0}}, {})
    """
    return dict(PRIORS.get((method, source), {}))
