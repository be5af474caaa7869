"""A warm start in words: what it may take of the budget, and how the generator learns from what was released."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from datalens.errors import ConfigError
from datalens.training.sections import Batch, Count, Positive, Section

ONE_START = (
    "begins with weights of its own, and --public-init (public_init) with others",
    "give one of the two",
)
"""Why there is one start, and what to do: the last words of :func:`refuse_warm`."""


class WarmStart(Section):
    """Two noisy sums of the records before the first vote, from which the generator learns each class's normal law.

    Attributes:
        enabled: whether there is one; the rest is used where there is.
        share: of the budget (of mu squared) for the two sums together.
        steps: of the generator, on images drawn from the released law.
        batch_size: images in such a step.
        learning_rate: Adam's, at the first of them; it falls linearly to a tenth.
    """

    enabled: bool = False
    share: Annotated[float, Field(ge=1e-3, le=0.9)] = 0.2
    steps: Count = 500
    batch_size: Batch = 64
    learning_rate: Positive = 2e-3


def require_enabled(settings: WarmStart) -> None:
    """Refuse settings of a warm start where there is none.

    Raises:
        ConfigError: says so.
    """
    if not settings.enabled and settings != WarmStart():
        raise ConfigError(
            "[warm_start] (warm_start): has settings of a warm start, and there is none; give --warm-start "
            "(warm_start.enabled), or leave the section out"
        )


def refuse_warm(settings: WarmStart, why: str, remedy: str) -> None:
    """Refuse a warm start where it cannot be.

    Args:
        settings: of the run.
        why: what speaks against it.
        remedy: what to do.

    Raises:
        ConfigError: there is one.
    """
    if settings.enabled:
        raise ConfigError(f"--warm-start (warm_start.enabled = true): {why}; {remedy}")
