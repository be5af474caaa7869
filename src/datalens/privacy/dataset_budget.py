"""The budget of a data set: one ledger across runs and methods, so that ten runs at epsilon 1 are seen to be ten.

The file is a ledger like any other. Its first line names the data set by the user's word and says what may be
spent on it in all; every release of every run is charged to it before it is charged to the run.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datalens.errors import BudgetError, ConfigError, LedgerError, RunError
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.budget import Authorisation, Budget, authorisations
from datalens.privacy.certificate import reasons_against
from datalens.privacy.events import Event, GaussianEvent, event_from_json, times
from datalens.privacy.ledger import Ledger, LineKind
from datalens.privacy.wording import rounded_up

KIND = "dataset-budget"
UNFIT = "not_fit_because"
"""In the note of a charge: why its run is not fit for publication."""
_MOST_NOISE = 1e6
"""How much noisier a plan is made, looking for one that fits."""


@dataclass(frozen=True)
class DatasetBudget:
    """A data set's budget, open for one writer.

    Attributes:
        path: the file.
        data_name: the user's word for the data set.
        budget: asked and charged.
    """

    path: Path
    data_name: str
    budget: Budget

    def require(self, event: Event, count: int, *others: Event) -> None:
        """Refuse a plan that does not fit as a whole, before any of it is done.

        Args:
            event: the release that is made ``count`` times.
            count: how many times.
            others: what else the plan has room for, such as a score.

        Raises:
            BudgetError: says how many releases fit.
        """
        if Accountant().epsilon(event, self.budget.authorisation.delta) == math.inf:
            raise BudgetError(
                f"the budget of {self.data_name!r} cannot pay for a release without noise, or with so little that it "
                f"has no finite cost at delta {self.budget.authorisation.delta:g}: leave --budget-file out"
            )
        spent, ceiling = self.budget.spent_epsilon(), self.budget.authorised_epsilon()
        room = self.budget.remaining_releases(event)
        if room < count:
            raise BudgetError(
                f"the budget of {self.data_name!r} has room for {room} of {count} releases (epsilon "
                f"{rounded_up(spent)} of {ceiling:g} is spent): {self._what_fits(event, count, *others)}"
            )
        planned = (*self.budget.ledger.events(), times(event, count), *others)
        authorisation = self.budget.authorisation
        price = Accountant(authorisation.accountant).epsilon(planned, authorisation.delta)
        if not price <= ceiling:
            total = f"epsilon would come to {rounded_up(price)} of {ceiling:g}"
            raise BudgetError(
                f"the budget of {self.data_name!r} has room for {count} releases but not for the score beside "
                f"them ({total if math.isfinite(price) else 'which has no finite cost'}): "
                f"{self._what_fits(event, count, *others)}"
            )

    def _what_fits(self, event: Event, count: int, *others: Event) -> str:
        """The epsilon of a run that still fits, as a remedy: found for as many releases with more noise."""
        authorisation, charged = self.budget.authorisation, self.budget.ledger.events()
        accountant, ceiling = Accountant(authorisation.accountant), self.budget.authorised_epsilon()
        nothing = "nothing is left for such a run; spend no more on these data"
        if not isinstance(event, GaussianEvent):
            return "plan fewer or noisier ones"

        def price(noise: float, *before: Event, event: GaussianEvent = event) -> float:
            noisier = replace(event, noise_stddev=noise * event.noise_stddev)
            return accountant.epsilon((*before, times(noisier, count), *others), authorisation.delta)

        if not price(_MOST_NOISE, *charged) <= ceiling:
            return nothing
        low, high = 0.0, math.log(_MOST_NOISE)
        while high - low > 1e-4:
            middle = (low + high) / 2
            low, high = (low, middle) if price(math.exp(middle), *charged) <= ceiling else (middle, high)
        fits = math.floor(1000 * price(math.exp(high))) / 1000
        if fits == 0:
            return nothing
        return f"a run of --epsilon {fits:g} (at delta {authorisation.delta:g}) still fits"

    @property
    def budget_id(self) -> str:
        """Names this very file, whatever it is called; random."""
        return str(self.budget.ledger.header.get("budget_id", ""))

    def require_run(self, ledger: Ledger, terms: Mapping[str, Any] | None) -> None:
        """Refuse where this is not the budget that a run was charged to, or has lost some of its charges.

        Raises:
            LedgerError: says which.
        """
        given = terms or {}
        if (given.get("budget_id"), given.get("data_name")) != (self.budget_id, self.data_name):
            raise LedgerError(
                f"{self.path}: is not the budget that the run was charged to ({given.get('data_name')!r}); "
                "restore that file"
            )
        run = ledger.header.get("run_id", "")
        made = sum(line.kind == LineKind.RELEASE for line in ledger.lines)
        charged = sum(
            line.kind == LineKind.RELEASE and line.body.get("note", {}).get("run") == run
            for line in self.budget.ledger.lines
        )
        if charged < made:
            raise LedgerError(
                f"{self.path}: holds {charged} of the run's {made} releases; it was restored from an older copy, "
                "restore the whole file"
            )

    def close(self) -> None:
        """Give the lock back."""
        self.budget.ledger.close()

    def to_json(self) -> dict[str, Any]:
        """What a run's ledger says of it: the name and the terms, not the path."""
        authorisation = self.budget.authorisation
        return {
            "budget_id": self.budget_id,
            "data_name": self.data_name,
            "epsilon": authorisation.epsilon,
            "delta": authorisation.delta,
            "accountant": str(authorisation.accountant),
        }


def create_dataset_budget(
    path: Path,
    data_name: str,
    epsilon: float,
    delta: float,
    accountant: AccountantKind = AccountantKind.EXACT,
) -> None:
    """Make a budget file.

    Raises:
        ConfigError: no name, or a number out of range.
        RunError: the file exists.
    """
    if not data_name.strip():
        raise ConfigError("the data set's name is empty: give a word that may be public")
    if not data_name.isprintable():
        raise ConfigError(
            f"the data set's name {data_name!a:.60} holds a character that cannot be printed: give a word that may "
            "be public"
        )
    authorisation = Authorisation(epsilon, delta, accountant)
    header = {
        "budget": KIND,
        "budget_id": secrets.token_hex(16),
        "data_name": data_name,
        "authorisation": authorisation.to_json(),
    }
    if path.exists():
        raise RunError(
            f"{path}: a file of that name exists; see what it allows with `datalens budget show`, or choose another"
        )
    Ledger.create(path, header).close()


def require_budget_file(path: Path) -> None:
    """Refuse a budget file that is not there.

    Raises:
        RunError: with the remedy.
    """
    if not path.is_file():
        raise RunError(
            f"{path}: no such budget file; check the path, or make one with `datalens budget create`"
        )


def open_dataset_budget(path: Path, data_name: str | None = None) -> DatasetBudget:
    """Open a budget file for charging and lock it.

    Args:
        path: the file.
        data_name: the name it must have, if given.

    Raises:
        RunError: missing, or in use by another run.
        LedgerError: damaged, or not such a file.
        ConfigError: it is another data set's.
    """
    require_budget_file(path)
    ledger = Ledger.open(path)
    try:
        name = _name(ledger, path)
        if data_name is not None and data_name != name:
            raise ConfigError(f"{path}: is the budget of {name!r}, not of {data_name!r}; give the right one")
        return DatasetBudget(path, name, Budget(ledger))
    except BaseException:
        ledger.close()
        raise


def describe_dataset_budget(path: Path) -> dict[str, Any]:
    """Name, ceiling, what was spent and by which runs; the file is not locked or changed.

    Raises:
        RunError: missing.
        LedgerError: damaged, or not such a file.
    """
    require_budget_file(path)
    ledger = Ledger.read(path)
    name = _name(ledger, path)
    authorisation = authorisations(ledger)[-1].authorisation
    runs: dict[str, list[Event]] = {}
    reasons: dict[str, dict[str, None]] = {}
    for line in ledger.lines:
        if line.kind == LineKind.RELEASE:
            note = line.body.get("note", {})
            run, said = str(note.get("run", "")) or "unnamed", note.get(UNFIT)
            event = event_from_json(line.body["event"])
            runs.setdefault(run, []).append(event)
            found = [*(said if isinstance(said, list) else []), *reasons_against([event], {})]
            reasons.setdefault(run, {}).update(dict.fromkeys(map(str, found)))
    accountant = Accountant(authorisation.accountant)
    return {
        "file": str(path),
        "data_name": name,
        "epsilon": authorisation.guarantee(),
        "delta": authorisation.delta,
        "accountant": str(authorisation.accountant),
        "spent": accountant.epsilon(ledger.events(), authorisation.delta),
        "runs": [
            {
                "run": run,
                "releases": sum(event.count for event in events),
                "epsilon": accountant.epsilon(events, authorisation.delta),
                UNFIT: list(reasons[run]),
            }
            for run, events in runs.items()
        ],
        "cut_off_lines": sum(line.kind == LineKind.RECOVERED for line in ledger.lines) + ledger.was_cut_off,
    }


def _name(ledger: Ledger, path: Path) -> str:
    name = ledger.header.get("data_name")
    if ledger.header.get("budget") != KIND or not isinstance(name, str):
        raise LedgerError(f"{path}: is not a data set's budget; make one with `datalens budget create`")
    return name
