"""Whether a budget pays for another step."""

from __future__ import annotations

from datalens.errors import BudgetError
from datalens.privacy.budget import Budget, PriceError
from datalens.privacy.events import Event


def has_room(budget: Budget, event: Event) -> bool:
    """Whether the event fits.

    Raises:
        PriceError: the accountant gives no number, which is an error and no answer.
    """
    try:
        budget.check(event)
    except PriceError:
        raise
    except BudgetError:
        return False
    return True
