"""Ledgers that are wrong in one way each, and one that is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from datalens.audit.bookkeeping import audit_partition, check_groups, check_slots
from datalens.audit.replay import replay_ledger
from datalens.privacy.budget import Authorisation
from datalens.privacy.events import GaussianEvent, NoiseKind
from datalens.privacy.ledger import Ledger
from datalens.teachers.partition import Partition
from datalens.training.directions import DirectionLog, DirectionRecord
from datalens.training.private_files import save_partition

EVENT = GaussianEvent(sensitivity=2.0, noise_stddev=8.0, coordinates=4)
HEADER = {"authorisation": Authorisation(2.3, 1e-5).to_json()}  # five of these events, not six


def ledger_with(path: Path, steps: list[int], header: dict[str, object] | None = None) -> list[str]:
    """Write a ledger that charges these steps; the lines' hashes."""
    with Ledger.create(path, HEADER if header is None else header) as ledger:
        return [ledger.charge(EVENT, {"step": step}).hash for step in steps]


def failing(path: Path, directions: Path | None = None) -> set[str]:
    return {finding.name for finding in replay_ledger(path, directions) if not finding.passed}


def test_sound_ledger_passes(tmp_path: Path) -> None:
    ledger_with(tmp_path / "ledger", [0, 1, 2, 4, 7])
    findings = replay_ledger(tmp_path / "ledger")
    assert [finding.name for finding in findings] == ["ledger-chain", "ledger-order", "ledger-cost"]
    assert all(finding.passed for finding in findings)


@pytest.mark.parametrize("accountant", ["exact", "rdp", "rdp-classic"])
@pytest.mark.parametrize("noise", list(NoiseKind)[:3])
def test_both_accountants_agree(tmp_path: Path, accountant: str, noise: NoiseKind) -> None:
    header = {"authorisation": Authorisation(5.0, 1e-6, accountant).to_json()}
    with Ledger.create(tmp_path / "ledger", header) as ledger:
        for step in range(3):
            ledger.charge(GaussianEvent(2.0, 8.0, 4, noise), {"step": step})
    assert failing(tmp_path / "ledger") == set()


def test_overspent_ledger_fails(tmp_path: Path) -> None:
    ledger_with(tmp_path / "ledger", list(range(6)))
    assert failing(tmp_path / "ledger") == {"ledger-cost"}


@pytest.mark.parametrize("steps", [[0, 1, 1], [1, 0]])
def test_step_charged_twice_or_out_of_order_fails(tmp_path: Path, steps: list[int]) -> None:
    ledger_with(tmp_path / "ledger", steps)
    assert failing(tmp_path / "ledger") == {"ledger-order"}


def test_spending_what_nobody_authorised_fails(tmp_path: Path) -> None:
    ledger_with(tmp_path / "ledger", [0], header={})
    assert failing(tmp_path / "ledger") == {"ledger-order", "ledger-cost"}


def test_ceiling_raised_after_overspending_fails(tmp_path: Path) -> None:
    ledger_with(tmp_path / "ledger", list(range(6)))
    with Ledger.open(tmp_path / "ledger") as ledger:
        ledger.append("authorisation", {"authorisation": Authorisation(9.0, 1e-5).to_json()})
    assert "ledger-cost" in failing(tmp_path / "ledger")


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.replace(b'"noise_stddev":8.0', b'"noise_stddev":9.0', 1),
        lambda content: b"\n".join(content.split(b"\n")[:2] + content.split(b"\n")[3:]),
        lambda content: b"",
    ],
)
def test_changed_or_missing_line_fails(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "ledger"
    ledger_with(path, [0, 1, 2])
    path.write_bytes(damage(path.read_bytes()))
    assert failing(path) == {"ledger-chain"}


@pytest.mark.parametrize(("paid_by", "wrong"), [([0, 1], set()), ([0, 0], {"ledger-directions"})])
def test_directions_each_have_a_line(tmp_path: Path, paid_by: list[int], wrong: set[str]) -> None:
    hashes = ledger_with(tmp_path / "ledger", [0, 1])
    log = DirectionLog(tmp_path / "directions")
    for step, line in enumerate(paid_by):
        log.append(DirectionRecord(step, torch.ones(2, 3, dtype=torch.int8), hashes[line]))
    log.close()
    assert failing(tmp_path / "ledger", tmp_path / "directions") == wrong


def test_direction_that_nobody_paid_for_fails(tmp_path: Path) -> None:
    ledger_with(tmp_path / "ledger", [0])
    log = DirectionLog(tmp_path / "directions")
    log.append(DirectionRecord(0, torch.ones(2, 3, dtype=torch.int8), "ab" * 32))
    log.close()
    assert failing(tmp_path / "ledger", tmp_path / "directions") == {"ledger-directions"}


def test_slot_map(tmp_path: Path) -> None:
    save_partition(tmp_path / "slots", Partition.draw(num_records=20, num_teachers=5, num_present=18))
    assert audit_partition(tmp_path / "slots").passed
    (tmp_path / "slots").write_bytes(b"nonsense")
    assert not audit_partition(tmp_path / "slots").passed


@pytest.mark.parametrize("slots", [[0, 0], [0, 9], [-1, 2]])
def test_slot_map_that_is_no_injection_fails(slots: list[int]) -> None:
    assert not check_slots(np.array(slots), 6, 3, 2).passed


@pytest.mark.parametrize(
    ("slots", "passed"),
    [
        ([0, 1, 2, 3], True),
        ([0, 1, 2, -1], True),  # the other teacher was full
        ([0, 2, 1, 3], False),  # both groups with both teachers
        ([0, 0, 2, 3], False),
        ([0, 1, 2, 4], False),
        ([0, 1, 2], False),
    ],
)
def test_a_group_with_two_teachers_is_found(slots: list[int], passed: bool) -> None:
    assert check_groups(np.array(slots), np.array([7, 7, 9, 9]), 2, 2).passed is passed
