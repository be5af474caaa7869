"""A data set's budget as runs use it: known by its last line across runs, and told of runs that are not fit.

A budget file that was restored from an older copy forgets charges. The cache of :mod:`datalens.training.heads` does
not: it guards against such accidents, not against a curator who wants to deceive.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from datalens.errors import RunError
from datalens.privacy.certificate import reasons_against
from datalens.privacy.dataset_budget import UNFIT, DatasetBudget, open_dataset_budget
from datalens.privacy.ledger import Ledger
from datalens.training.heads import known_head, note_head
from datalens.training.sections import RunSettings


def open_shared_budget(path: Path, data_name: str | None = None) -> DatasetBudget:
    """Open a budget file for charging, and lock it; see :func:`datalens.privacy.dataset_budget.open_dataset_budget`.

    Raises:
        LedgerError: it is damaged, or older than this user has seen it.
        DataLensError: missing, in use, or another data set's.
    """
    shared = open_dataset_budget(path, data_name)
    try:
        check_budget_head(shared.budget.ledger)
    except BaseException:
        shared.close()
        raise
    note_budget_head(shared)
    return shared


@contextmanager
def budget_for(path: str | os.PathLike[str] | None, data_name: str | None) -> Iterator[DatasetBudget | None]:
    """The budget file that a new run is to be charged to, where there is one; closed if the run cannot begin.

    Raises:
        DataLensError: as :func:`open_shared_budget`.
    """
    shared = None if path is None else open_shared_budget(Path(path), data_name)
    try:
        yield shared
    except BaseException:
        if shared is not None:
            shared.close()
        raise


def open_charged_budget(path: Path, ledger: Ledger) -> DatasetBudget:
    """Open the budget file that a run is charged to.

    Raises:
        LedgerError: it is another one, damaged, or older than the run.
        DataLensError: missing, or in use.
    """
    if not path.is_file():
        raise RunError(f"{path}: the run is charged to this budget file, which is not there; restore it")
    shared = open_shared_budget(path)
    try:
        shared.require_run(ledger, ledger.header.get("dataset_budget"))
    except BaseException:
        shared.close()
        raise
    return shared


def close_shared_budget(shared: DatasetBudget) -> None:
    """Remember its last line and give the lock back."""
    note_budget_head(shared)
    shared.close()


def note_heads(ledger: Ledger, shared: DatasetBudget | None) -> None:
    """Remember the last lines of a run's ledger, and of the data set's budget that it is charged to."""
    note_head(str(ledger.header.get("run_id", "")), ledger.head)
    if shared is not None:
        note_budget_head(shared)


def note_budget_head(shared: DatasetBudget) -> None:
    """Remember its last line."""
    if shared.budget_id:
        note_head(shared.budget_id, shared.budget.ledger.head)


def check_budget_head(ledger: Ledger) -> None:
    """Refuse a budget file that has lost lines since this user last saw it.

    Raises:
        LedgerError: names the line that is missing or another.
    """
    known = known_head(str(ledger.header.get("budget_id", "")))
    ledger.check_heads([] if known is None else [known])


def marks_of(config: RunSettings) -> dict[str, Any]:
    """What the budget's lines say of a run besides its name: why it is not fit for publication, if it is not."""
    reasons = reasons_against((), {"config": config.to_json()})
    return {UNFIT: reasons} if reasons else {}
