"""Where a run stands, for whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Where a run stands; public.

    Attributes:
        step: generator steps done.
        num_steps: generator steps planned.
        epsilon_spent: of the steps done.
        epsilon: authorised.
    """

    step: int
    num_steps: int
    epsilon_spent: float
    epsilon: float
