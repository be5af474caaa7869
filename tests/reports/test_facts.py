"""Facts of a run come from release/ alone, and damaged files are one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_runs import train

from datalens.errors import DataLensError, NotPrivateError, RunError
from datalens.privacy.accountant import Accountant
from datalens.privacy.ledger import Ledger
from datalens.reports.facts import read_release
from datalens.training.run_folder import RunFolder


@pytest.fixture
def release(small: RunFolder, tmp_path: Path) -> Path:
    """A copy of a run's shared side."""
    return shutil.copytree(small.release, tmp_path / "release")


def test_the_curve_ends_at_what_was_spent(small: RunFolder) -> None:
    facts = read_release(small.release)
    ledger = Ledger.read(small.ledger)
    assert [point.releases for point in facts.spent] == list(range(9))
    for point in facts.spent[1:]:
        first = ledger.events()[: point.releases]
        assert point.epsilon == Accountant(facts.certificate["guarantee"]["accountant"]).epsilon(
            first, facts.delta
        )
    assert facts.spent[-1].epsilon == facts.certificate["spent"]["epsilon"]
    assert (facts.progress.charged, facts.progress.planned, facts.progress.is_paid) == (8, 8, True)


def test_nothing_is_read_from_private(small: RunFolder, release: Path) -> None:
    assert read_release(release) == read_release(small.release)


def test_no_curve_without_a_promise(tmp_path: Path) -> None:
    train(tmp_path / "run", privacy__noise="none", steps=2)
    facts = read_release(RunFolder.open(tmp_path / "run").release)
    assert (facts.epsilon, facts.is_fit, facts.spent) == (None, False, ())
    assert (facts.progress.charged, facts.progress.is_paid) == (2, False)


def test_a_run_without_certificate_says_what_to_do(release: Path) -> None:
    (release / "certificate.json").unlink()
    with pytest.raises(RunError, match=r"has no certificate\.json yet; resume the training"):
        read_release(release)


DAMAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no guarantee": lambda value: value.pop("guarantee"),
    "no run": lambda value: value["ledger"].clear(),
    "another accountant": lambda value: value["guarantee"].update(accountant="mine"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_certificate_is_one_line(release: Path, damage: str) -> None:
    path = release / "certificate.json"
    value = json.loads(path.read_text())
    DAMAGES[damage](value)
    path.write_text(json.dumps(value))
    with pytest.raises(DataLensError) as caught:
        read_release(release)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "{", "{}", '{"findings": 1}'])
def test_a_damaged_audit_is_one_line(release: Path, content: str) -> None:
    (release / "audit.json").write_text(content)
    with pytest.raises(RunError) as caught:
        read_release(release)
    assert "\n" not in str(caught.value)


def _audit(release: Path, **changes: Any) -> None:
    head = Ledger.read(release / "ledger.jsonl").head[1]
    answer = {"passed": True, "verdict": "PASS", "findings": [{"private": False}], "ledger_head": head}
    (release / "audit.json").write_text(json.dumps(answer | changes))


def test_an_audit_is_of_the_ledger_beside_it(release: Path) -> None:
    _audit(release)
    audit = read_release(release).audit
    assert audit is not None and audit.is_current and audit.passed and audit.num_checks == 1
    _audit(release, ledger_head="0" * 64)
    older = read_release(release).audit
    assert older is not None and not older.is_current


def test_an_audit_that_looked_at_records_is_refused(release: Path) -> None:
    _audit(release, findings=[{"private": True}])
    with pytest.raises(NotPrivateError, match="findings on people's records"):
        read_release(release)
