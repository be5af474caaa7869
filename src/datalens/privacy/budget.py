"""The budget: asked before every release, and the ledger written before the noise is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from datalens.errors import BudgetError, ConfigError
from datalens.privacy.accountant import Accountant
from datalens.privacy.authorisation import Authorisation, RecordedAuthorisation, authorisations
from datalens.privacy.events import Event, compact
from datalens.privacy.ledger import Ledger, LedgerLine
from datalens.privacy.ledger_format import LineKind
from datalens.privacy.wording import rounded_up

__all__ = [
    "Authorisation",
    "Budget",
    "EpsilonOracle",
    "PriceError",
    "RecordedAuthorisation",
    "authorisations",
]


class EpsilonOracle(Protocol):
    """Anything that prices events as :class:`Accountant` does."""

    def epsilon(self, events: Event | Iterable[Event], delta: float) -> float:
        """Epsilon of the events together."""
        ...


class Budget:
    """Refuses what would not fit, and writes down what does before it happens.

    ``spent`` is what the ledger's lines cost, whoever wrote them and whenever; ``authorised`` is the
    guarantee. With ``shared``, the budget of a data set across runs, both are asked first and then both are
    written: the data set's line before the run's. A crash between the two leaves a release charged to the
    data set that was never made, and never a release that is not charged.

    Args:
        ledger: open for writing.
        authorisation: what may be spent, recorded as a line if the ledger holds none; None: the ledger's.
        shared: the data set's budget, with a ledger of its own.
        run: name of this run in the shared ledger (a word of the user's, not derived from data).
        marks: what else the shared ledger's lines say of this run, such as that it is not fit for publication.
        oracle: prices events instead of the authorisation's accountant (for tests).

    Raises:
        ConfigError: the ledger holds another authorisation (see :meth:`authorise`), or there is none at all.

    >>> from datalens.privacy.events import GaussianEvent
    >>> budget = Budget(Ledger.in_memory(), Authorisation(epsilon=2.0, delta=1e-5))
    >>> line = budget.charge(GaussianEvent(4.0, 8.0, 1))
    >>> round(budget.spent_epsilon(), 3)
    1.993
    """

    def __init__(
        self,
        ledger: Ledger,
        authorisation: Authorisation | None = None,
        *,
        shared: Budget | None = None,
        run: str = "",
        marks: Mapping[str, Any] | None = None,
        oracle: EpsilonOracle | None = None,
    ) -> None:
        recorded = authorisations(ledger)
        if recorded:
            if authorisation not in (None, recorded[-1].authorisation):
                raise ConfigError(
                    f"epsilon={authorisation.epsilon:g} at delta={authorisation.delta:g} (or its plan) "
                    f"is not what the ledger authorises ({recorded[-1].authorisation.epsilon:g} at "
                    f"{recorded[-1].authorisation.delta:g}): keep that, or raise it on purpose"
                )
            authorisation = recorded[-1].authorisation
        elif authorisation is None:
            raise ConfigError("the ledger authorises nothing: give an epsilon and a delta")
        self._ledger = ledger
        self._shared = shared
        self._in_shared = {**(marks or {}), "run": run}
        self._oracle = oracle
        self._broken = ""
        self._set(authorisation)
        self._spent: tuple[Event, ...] = ()
        self._num_seen = 0
        if not recorded:
            self._record(authorisation, "")

    @property
    def ledger(self) -> Ledger:
        """The ledger that this budget writes."""
        return self._ledger

    @property
    def authorisation(self) -> Authorisation:
        """The authorisation in force."""
        return self._authorisation

    @property
    def num_releases(self) -> int:
        """Releases charged so far, counting an event of count n as n."""
        return sum(event.count for event in self._events())

    def spent_epsilon(self) -> float:
        """What the ledger's lines cost together; infinite where nothing is promised."""
        return self._price(self._events()) if self._authorisation.is_private else math.inf

    def authorised_epsilon(self) -> float:
        """The guarantee: the cost of the whole plan (also after an early stop), or else the ceiling."""
        return self._guarantee

    def remaining_epsilon(self) -> float:
        """Guarantee minus spent, never below 0. Epsilons do not add: see :meth:`remaining_releases`."""
        return max(0.0, self.authorised_epsilon() - self.spent_epsilon())

    def remaining_releases(self, event: Event) -> int:
        """How many more times ``event`` fits, below 2^53."""
        low, high = 0, 1
        while high < 2**53 and self._fits(event, high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits(event, middle):
                low = middle
            else:
                high = middle
        return low

    def check(self, *events: Event) -> float:
        """Return what would be spent after all of these, or refuse; nothing is written.

        Raises:
            BudgetError: they do not fit this budget or the shared one, or their cost is not a finite number.
        """
        if self._broken:
            raise BudgetError(self._broken)
        after = self._price((*self._events(), *events))
        if self._authorisation.is_private and after == math.inf:
            raise PriceError("the cost of this release is without bound: check its noise and its sampler")
        if after > self.authorised_epsilon():
            raise BudgetError(
                f"this release would bring epsilon to {rounded_up(after)} of "
                f"{self.authorised_epsilon():g} authorised "
                f"at delta={self._authorisation.delta:g}: stop here, or authorise more"
            )
        if self._shared is not None:
            self._shared.check(*events)
        return after

    def charge(self, event: Event, note: Mapping[str, Any] | None = None) -> LedgerLine:
        """Check, write and flush the ledger, then return its line: only after that may the noise be drawn.

        Raises:
            BudgetError: it does not fit; nothing was written.
            LedgerError: it could not be written; nothing may be released.
        """
        try:
            self.check(event)
        except PriceError as error:  # it says nothing about what was spent, so nothing may follow either
            self._broken = f"{error}; nothing more is released"
            raise BudgetError(self._broken) from error
        note = dict(note or {})
        if self._shared is not None:
            self._shared.charge(event, {**note, **self._in_shared})
        return self._ledger.charge(event, note)

    def authorise(self, authorisation: Authorisation, reason: str = "") -> LedgerLine:
        """Put another authorisation in force and record it, with whether releases were made before it.

        What was decided after a release is not covered by the proof, which needs a ceiling fixed beforehand.
        """
        line = self._record(authorisation, reason)
        self._set(authorisation)
        return line

    def _record(self, authorisation: Authorisation, reason: str) -> LedgerLine:
        body = {
            "authorisation": authorisation.to_json(),
            "decided_after_release": bool(self._events()),
            "reason": reason,
        }
        return self._ledger.append(LineKind.AUTHORISATION, body)

    def _set(self, authorisation: Authorisation) -> None:
        self._authorisation = authorisation
        self._guarantee = authorisation.guarantee()
        self._accountant: EpsilonOracle = self._oracle or Accountant(authorisation.accountant)

    def _fits(self, event: Event, count: int) -> bool:
        try:
            self.check(replace(event, count=event.count * count))
        except BudgetError:
            return False
        return True

    def _events(self) -> tuple[Event, ...]:
        """The ledger's events, merged; lines that another budget wrote to the same ledger are counted too."""
        events = self._ledger.events()
        if len(events) > self._num_seen:
            self._spent = compact((*self._spent, *events[self._num_seen :]))
            self._num_seen = len(events)
        return self._spent

    def _price(self, events: tuple[Event, ...]) -> float:
        epsilon = self._accountant.epsilon(compact(events), self._authorisation.delta)
        if not epsilon >= 0:
            raise PriceError(
                "the accountant's epsilon is not a number that can be spent: check the accountant"
            )
        return epsilon


class PriceError(BudgetError):
    """A price that is no finite number of 0 or more."""
