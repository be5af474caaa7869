"""What a run promises, at any delta: the cost of what was authorised, also where less of it was spent.

Where a run stopped may depend on the data, so what was spent is no promise (``docs/privacy.md``, section 7). The
certificate says the same at the authorised delta.
"""

from __future__ import annotations

from datalens.errors import LedgerError
from datalens.privacy.accountant import Accountant
from datalens.privacy.authorisation import Authorisation, RecordedAuthorisation, authorisations
from datalens.privacy.events import Event, GaussianEvent, NoiseKind, event_from_json, times
from datalens.privacy.gaussian import check_delta
from datalens.privacy.ledger import Ledger


def guaranteed_epsilon(ledger: Ledger, delta: float) -> float:
    """The larger of what was authorised and what was spent, both at ``delta``; infinite without noise.

    Args:
        ledger: of the run, with the plan in its first line.
        delta: in (0, 1); another than the authorised one is allowed.

    Guarantee:
        At the authorised delta it is the epsilon of the certificate. An authorisation that names no plan is taken
        as the Gaussian release that costs exactly its ceiling.

    Raises:
        ConfigError: delta outside (0, 1).
        LedgerError: the ledger authorises nothing.
    """
    check_delta(delta)
    first, *later = binding(ledger)
    spent = Accountant(first.authorisation.accountant).epsilon(ledger.events(), delta)
    return max(spent, *(_authorised(ledger, item.authorisation, delta) for item in (first, *later)))


def counted(events: tuple[Event, ...], authorisation: Authorisation) -> tuple[Event, ...]:
    """The events that a cost is told of: where nothing is promised, also a release without noise.

    Guarantee: whatever such a run charged, or left out, no accountant comes to a finite epsilon or mu for it.
    """
    if authorisation.is_private:
        return events
    return (*events, GaussianEvent(sensitivity=1.0, noise_stddev=0.0, coordinates=1, noise=NoiseKind.NONE))


def binding(ledger: Ledger) -> list[RecordedAuthorisation]:
    """The last authorisation decided before any release, then those decided after one.

    Raises:
        LedgerError: there is none.
    """
    recorded = authorisations(ledger)
    before = [item for item in recorded if not item.decided_after_release]
    if not before:
        raise LedgerError(f"ledger {ledger.path or 'in memory'} authorises nothing: it promises nothing")
    return [before[-1], *(item for item in recorded if item.decided_after_release)]


def planned_events(ledger: Ledger, authorisation: Authorisation) -> tuple[Event, ...]:
    """All releases that an authorisation planned; nothing where only a ceiling is known.

    Raises:
        LedgerError: they cost more than was authorised.
    """
    if authorisation.planned is not None and authorisation.num_releases is not None:
        return (times(authorisation.planned, authorisation.num_releases),)
    if ledger.header.get("authorisation") != authorisation.to_json():
        return ()
    planned = tuple(event_from_json(event) for event in ledger.header.get("planned_events") or ())
    cost = Accountant(authorisation.accountant).epsilon(planned, authorisation.delta)
    if cost > authorisation.guarantee():
        raise LedgerError("more was planned than was authorised: there is no guarantee to certify")
    return planned


def _authorised(ledger: Ledger, authorisation: Authorisation, delta: float) -> float:
    if delta == authorisation.delta or not authorisation.is_private:
        return authorisation.guarantee()
    planned = planned_events(ledger, authorisation) or (_as_one_release(authorisation),)
    return Accountant(authorisation.accountant).epsilon(planned, delta)


def _as_one_release(authorisation: Authorisation) -> GaussianEvent:
    """The Gaussian release that costs the ceiling; its mu is found to one part in a billion, from above."""
    accountant = Accountant(authorisation.accountant)
    low, high = 0.0, 1e-9

    def costs(mu: float) -> float:
        return accountant.epsilon(GaussianEvent(mu, 1.0, 1), authorisation.delta)

    while costs(high) < authorisation.epsilon:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if costs(middle) >= authorisation.epsilon else (middle, high)
    return GaussianEvent(high, 1.0, 1)
