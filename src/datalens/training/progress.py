"""Where a run stands, for whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datalens.privacy.budget import Budget


Draw = Callable[[int], np.ndarray]
"""From a number to so many images of each class, uint8 [Y, number, C, H, W]; no draw of the training is changed."""


@dataclass(frozen=True)
class Progress:
    """Where a run stands; public.

    Attributes:
        step: generator steps done.
        num_steps: generator steps planned.
        epsilon_spent: of the steps done.
        epsilon: authorised.
        draw: images of the generator as it is; None where none is trained.
    """

    step: int
    num_steps: int
    epsilon_spent: float
    epsilon: float
    draw: Draw | None = field(default=None, compare=False, repr=False)

    @classmethod
    def at(cls, step: int, num_steps: int, budget: Budget, draw: Draw | None = None) -> Progress:
        """After so many steps, by what the budget has spent."""
        return cls(step, num_steps, budget.spent_epsilon(), budget.authorised_epsilon(), draw)
