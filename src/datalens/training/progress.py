"""Where a run stands, for whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datalens.privacy.budget import Budget


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

    @classmethod
    def at(cls, step: int, num_steps: int, budget: Budget) -> Progress:
        """After so many steps, by what the budget has spent."""
        return cls(step, num_steps, budget.spent_epsilon(), budget.authorised_epsilon())
