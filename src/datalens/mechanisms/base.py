"""What every mechanism returns: the value that is now public, and the event that says what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from datalens.privacy.events import Event

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Release(Generic[Value]):
    """Something that crossed from private to public.

    Attributes:
        value: public; whatever is computed from it alone costs nothing more.
        event: what the release cost, as it was charged.
        line_hash: hash of the ledger line that charged it, which was written before the noise was drawn.
    """

    value: Value
    event: Event
    line_hash: str
