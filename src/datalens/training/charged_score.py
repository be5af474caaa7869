"""A score that may stand in ``release/``: on data declared public, or as a noisy count charged in the ledger.

Whom it protects: the people whose records the score was measured on. It is charged to the run's own ledger (and
to the data set's budget, where there is one), so the run's guarantee covers a person with up to ``group_size``
records among the training records and up to as many among the test records: one release after the other, their
costs add in mu squared. The count of right predictions moves by at most 1 for each record added, removed or
exchanged, under either notion: whether a record counts depends on that record and on the classifier, not on the
other records (:func:`datalens.evaluation.fitting.batches_of`). The classifier learned from synthetic images alone,
which cost nothing more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from datalens.errors import BudgetError, ConfigError, LedgerError, RunError
from datalens.mechanisms.gaussian_sum import GaussianSum
from datalens.privacy.budget import Budget
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.privacy.ledger import Ledger, LineKind
from datalens.training.agreement import check_heads
from datalens.training.facts import read_facts
from datalens.training.files import read_json, write_json
from datalens.training.plan import score_mechanism
from datalens.training.private_files import Secrets
from datalens.training.release import certify
from datalens.training.run_folder import RunFolder
from datalens.training.shared_budget import close_shared_budget, marks_of, open_charged_budget
from datalens.training.tuned import refuse_tuned

MOST_RECORDS = 2**53


def charge_score(
    root: Path,
    num_right: int,
    num_test: int,
    how: dict[str, Any],
    *,
    test_count_is_public: bool = False,
    budget_file: Path | None = None,
) -> dict[str, Any]:
    """Release a noisy count of right predictions on people's records, and charge it.

    Args:
        root: the run's folder.
        num_right: records whose class was named rightly, at the last epoch; private.
        num_test: records that were asked about; private unless declared.
        how: public facts of the measurement, such as classifier and epochs; nothing measured.
        test_count_is_public: ``num_test`` may be known; without that only the count is released.
        budget_file: the data set's budget, where the run has one and its private side is gone.

    Returns:
        The score as it stands in ``release/scores.json``.

    Raises:
        BudgetError: no room was left for a score; nothing was released.
        DataLensError: the run is damaged, in use, not finished, or was tuned; nothing was charged.
    """
    if not 0 <= num_right <= num_test <= MOST_RECORDS:
        raise ConfigError(f"{num_right} right of {num_test} is no count; measure again")
    folder = _finished(root)
    mechanism = require_score(root)
    ledger = Ledger.open(folder.ledger)
    shared: DatasetBudget | None = None
    try:
        check_heads(ledger, folder)
        shared = _shared(folder, ledger, budget_file)
        budget = Budget(
            ledger,
            shared=None if shared is None else shared.budget,
            run=str(ledger.header.get("run_id", "")),
            marks=marks_of(read_facts(folder).config),
        )
        certify(folder, ledger)  # whatever cannot be read or written shows now, while nothing is charged
        kept = _scores(folder)
        note = {"score": "right predictions", **how}
        release = mechanism.release(np.array([num_right], np.int64), budget, note)
        noisy = int(release.value[0])
        score = {
            "data_is_public": False,
            "noisy_right": noisy,
            "noise_stddev": mechanism.noise_stddev,
            "num_test": num_test if test_count_is_public else None,
            "accuracy": min(1.0, max(0.0, noisy / num_test)) if test_count_is_public and num_test else None,
            "line_hash": release.line_hash,
            **how,
        }
        write_json(folder.scores, {"scores": [*kept, score]})
        certify(folder, ledger)
    finally:
        ledger.close()
        if shared is not None:
            close_shared_budget(shared)
    return score


def require_score(root: Path) -> GaussianSum:
    """The mechanism that releases a run's score; to be asked before anything is measured.

    Raises:
        BudgetError: the run left no room for one, or it was released already.
        RunError: the run was tuned, and leaves none.
    """
    folder = RunFolder.open(root)
    refuse_tuned(folder, "pay for a score")
    mechanism = score_mechanism(read_facts(folder).config)
    if mechanism is None:
        raise BudgetError(
            "no room was left for a score: train with --score-noise (privacy.score_noise), such as 50"
        )
    if folder.ledger.is_file():
        _refuse_second(folder, mechanism)
    return mechanism


def _refuse_second(folder: RunFolder, mechanism: GaussianSum) -> None:
    """Say where the score is, rather than that there is no room for another."""
    ledger = Ledger.read(folder.ledger)
    charged = [
        line for line in ledger.lines if line.kind == LineKind.RELEASE and "score" in line.body["note"]
    ]
    if not charged:
        return
    try:
        Budget(ledger).check(mechanism.event(1))
    except BudgetError:
        kept = {score.get("line_hash") for score in _scores(folder) if isinstance(score, dict)}
        where = f"it is in {folder.scores}" if charged[-1].hash in kept else f"{folder.scores} lost it"
        raise BudgetError(
            f"{folder.root}: its score on people's data was released already (ledger line {charged[-1].index}); "
            f"{where}, and the run left room for one only: measure without --charge to keep a score private"
        ) from None


def publish_score(root: Path, num_right: int, num_test: int, how: dict[str, Any]) -> dict[str, Any]:
    """Put a score on data that were declared public into ``release/``; it costs nothing.

    Raises:
        DataLensError: the run is damaged, in use or not finished.
    """
    folder = _finished(root)
    score = {
        "data_is_public": True,
        "right": num_right,
        "num_test": num_test,
        "accuracy": num_right / num_test,
        **how,
    }
    with Ledger.open(folder.ledger) as ledger:
        check_heads(ledger, folder)
        write_json(folder.scores, {"scores": [*_scores(folder), score]})
        certify(folder, ledger)
    return score


def _finished(root: Path) -> RunFolder:
    folder = RunFolder.open(root)
    if not folder.certificate.is_file() or not folder.generator.is_file():
        raise RunError(f"{root}: the run has no certificate yet; resume the training first")
    return folder


def _shared(folder: RunFolder, ledger: Ledger, given: Path | None) -> DatasetBudget | None:
    terms = ledger.header.get("dataset_budget")
    if terms is None:
        return None
    path = given
    if path is None and folder.secrets.is_file():
        path = Secrets.read(folder.secrets).budget_file
    if path is None:
        raise RunError(f"{folder.root}: is charged to a data set's budget; give --budget-file")
    return open_charged_budget(path, ledger)


def _scores(folder: RunFolder) -> list[Any]:
    """The scores that are there already.

    Raises:
        LedgerError: the file is damaged.
    """
    if not folder.scores.is_file():
        return []
    value = read_json(folder.scores)
    if not isinstance(value, dict) or not isinstance(value.get("scores"), list):
        raise LedgerError(f"{folder.scores}: is damaged; restore the file, then measure again")
    return value["scores"]
