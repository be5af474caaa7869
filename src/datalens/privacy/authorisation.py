"""What may be spent, fixed before the first release, and where a ledger says so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datalens.errors import ConfigError, LedgerError
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import Event, event_from_json, times
from datalens.privacy.gaussian import check_delta
from datalens.privacy.ledger import Ledger
from datalens.privacy.ledger_format import CHARGING, LineKind
from datalens.privacy.wording import rounded_up


@dataclass(frozen=True)
class Authorisation:
    """What may be spent, fixed before the first release.

    Attributes:
        epsilon: ceiling, above 0 and finite.
        delta: in (0, 1).
        accountant: the conversion in which the ceiling is meant.
        num_releases: number of planned releases, or None.
        planned: one planned release; with ``num_releases`` the guarantee is the cost of exactly that plan,
            also after an early stop.
        is_private: False where there is no ceiling, which only :meth:`not_private` makes; epsilon is infinite then.

    Raises:
        ConfigError: a value outside its range, or a plan that costs more than epsilon.
    """

    epsilon: float
    delta: float
    accountant: AccountantKind = AccountantKind.EXACT
    num_releases: int | None = None
    planned: Event | None = None
    is_private: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "accountant", Accountant(self.accountant).kind)
        check_delta(self.delta)
        if self.is_private and not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise ConfigError(f"epsilon={self.epsilon!r} must be above 0 and finite: use a value such as 1")
        count = self.num_releases
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
            raise ConfigError(
                f"num_releases={count!r} must be a whole number from 1: plan at least one release"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon) if self.is_private else math.inf)
        object.__setattr__(self, "delta", float(self.delta))
        cost = self.guarantee()
        if self.is_private and cost == math.inf:
            raise ConfigError(
                f"the planned release has no finite cost at delta={self.delta:g}: it has no noise, or delta is below "
                "what its sampler can promise; give it noise, or a larger delta"
            )
        if not cost <= self.epsilon:
            raise ConfigError(
                f"epsilon={self.epsilon:g} does not cover {self.num_releases} planned releases, which cost "
                f"{rounded_up(cost)}: raise epsilon or the noise, or plan fewer"
            )

    @classmethod
    def not_private(cls, delta: float = 1e-5) -> Authorisation:
        """No ceiling at all, for runs without noise; everything that reads it must say so."""
        return cls(math.inf, delta, is_private=False)

    def guarantee(self) -> float:
        """The epsilon promised: the cost of the whole plan if there is one, else the ceiling."""
        if self.planned is None or self.num_releases is None:
            return self.epsilon
        return Accountant(self.accountant).epsilon(times(self.planned, self.num_releases), self.delta)

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary; a missing ceiling is written as null."""
        return {
            "epsilon": self.epsilon if self.is_private else None,
            "delta": self.delta,
            "accountant": str(self.accountant),
            "num_releases": self.num_releases,
            "planned": None if self.planned is None else self.planned.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Authorisation:
        """Read :meth:`to_json`; anything else is a LedgerError."""
        try:
            return cls(
                epsilon=math.inf if data["epsilon"] is None else data["epsilon"],
                is_private=data["epsilon"] is not None,
                delta=data["delta"],
                accountant=data["accountant"],
                num_releases=data["num_releases"],
                planned=None if data["planned"] is None else event_from_json(data["planned"]),
            )
        except (ConfigError, KeyError, TypeError) as error:
            raise LedgerError(
                f"authorisation cannot be read ({error}): the ledger is damaged or newer"
            ) from error


@dataclass(frozen=True)
class RecordedAuthorisation:
    """An authorisation as the ledger has it, and whether releases had been made when it was decided."""

    authorisation: Authorisation
    decided_after_release: bool


def authorisations(ledger: Ledger) -> tuple[RecordedAuthorisation, ...]:
    """All authorisations of a ledger, oldest first; the last one is in force.

    Only the first can be proved; one decided after a release is a promise whose size may depend on the data.
    """
    found = []
    if "authorisation" in ledger.header:
        found.append(RecordedAuthorisation(Authorisation.from_json(ledger.header["authorisation"]), False))
    released = False
    for line in ledger.lines:
        released |= line.kind in CHARGING
        if line.kind == LineKind.AUTHORISATION:
            recorded = Authorisation.from_json(line.body["authorisation"])
            found.append(RecordedAuthorisation(recorded, released))
    return tuple(found)
