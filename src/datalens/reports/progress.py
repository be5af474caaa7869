"""How far a run has come, by its ledger."""

from __future__ import annotations

from dataclasses import dataclass

from datalens.privacy.ledger import Ledger
from datalens.privacy.ledger_format import LineKind


@dataclass(frozen=True)
class Progress:
    """Steps of a run.

    Attributes:
        charged: steps that were charged, lost ones among them.
        planned: steps that it was to take; None where the ledger does not say.
        is_paid: whether every release that was planned has been charged, also where steps release nothing.
    """

    charged: int
    planned: int | None
    is_paid: bool


def progress_of(ledger: Ledger) -> Progress:
    """Steps charged and planned.

    >>> progress_of(Ledger.in_memory({"mechanism": {"num_steps": 3}}))
    Progress(charged=0, planned=3, is_paid=False)
    """
    mechanism = ledger.header.get("mechanism", {})
    planned, charged, releases, is_tuned = mechanism.get("num_steps"), 0, 0, "tuning" in ledger.header
    for line in ledger.lines:
        note = line.body.get("note") or {}
        if line.kind == LineKind.SETTINGS:
            planned = line.body.get("num_steps", planned)
        elif line.kind == LineKind.RECOVERED:
            charged, releases = charged + 1, releases + 1
        elif line.kind == LineKind.RELEASE and {"score", "warm_start"}.isdisjoint(note) and not is_tuned:
            charged, releases = max(charged, note.get("step", -1) + 1), releases + 1
    if is_tuned and isinstance(planned, int):
        charged = planned
    listed = mechanism.get("releases")
    whole = planned if listed is None else sum(int(item.get("count", 1)) for item in listed)
    return Progress(charged, planned, is_tuned or (isinstance(whole, int) and releases >= whole))
