"""Whether the budget survives being closed and opened again, and what a run's own files say of its partition."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from datalens.audit.findings import Finding, failed
from datalens.audit.replay import replay_ledger
from datalens.audit.subject import Subject
from datalens.errors import BudgetError
from datalens.privacy.budget import Authorisation
from datalens.privacy.events import GaussianEvent
from datalens.privacy.ledger import Ledger

BY_GROUPS = 2
"""The first number of a saved map by groups."""
PLANNED, BEFORE_STOP, ATTEMPTS = 5, 3, 9


def audit_budget(subject: Subject) -> list[Finding]:
    """Spend part of a budget, open it again as a resumed run does, spend what it allows, and replay the ledger."""
    event = GaussianEvent(sensitivity=2.0, noise_stddev=8.0, coordinates=4)
    authorisation = Authorisation(2.3, 1e-5, num_releases=PLANNED, planned=event)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        released = 0
        with Ledger.create(path, {"authorisation": authorisation.to_json()}) as ledger:
            budget = subject.open_budget(ledger)
            for _ in range(BEFORE_STOP):
                budget.charge(event, {"step": released})
                released += 1
            spent = budget.spent_epsilon()
        with Ledger.open(path) as ledger:
            budget = subject.open_budget(ledger)
            kept = budget.spent_epsilon()
            for _ in range(ATTEMPTS):
                try:
                    budget.charge(event, {"step": released})
                except BudgetError:
                    break
                released += 1
        replayed = [finding for finding in replay_ledger(path) if not finding.passed]
    text = (
        f"{kept:.4f} of epsilon {spent:.4f} spent before a stop is still spent after it; {released} releases made of "
        f"{PLANNED} planned"
    )
    numbers = {"spent_before": spent, "spent_after": kept, "released": released, "planned": PLANNED}
    return [Finding("budget-resumed", kept == spent and released == PLANNED, text, numbers), *replayed]


def audit_partition(path: Path) -> Finding:
    """The saved slot map, read as plain arrays: no slot named twice, the numbers consistent."""
    try:
        arrays = safetensors.numpy.load_file(path)
        slots = arrays["slot_of_record"]
        kind, num_records, num_teachers, shard_size, *_ = (int(n) for n in arrays["partition_numbers"])
        if kind == BY_GROUPS:
            return check_groups(slots, arrays["group_ids"], num_teachers, shard_size)
    except (OSError, KeyError, ValueError, safetensors.SafetensorError) as error:
        return failed("partition", f"{path.name} cannot be read ({' '.join(str(error).split()):.100})")
    return check_slots(slots, num_records, num_teachers, shard_size)


def check_slots(slots: np.ndarray, num_records: int, num_teachers: int, shard_size: int) -> Finding:
    """Every record in one slot of its own, every slot within the public number, every teacher's slots apart."""
    twice = sum(count > 1 for count in Counter(slots.tolist()).values())
    outside = int(((slots < 0) | (slots >= num_records)).sum())
    crowded = num_teachers * shard_size > num_records
    text = f"{num_teachers} teachers of {shard_size} slots; {twice} slots hold two records, {outside} do not exist"
    return Finding("partition", not (twice or outside or crowded), text, {"twice": twice}, private=True)


def check_groups(slots: np.ndarray, group_ids: np.ndarray, num_teachers: int, shard_size: int) -> Finding:
    """All records of a group with one teacher or left out, every slot within the teachers' own, none taken twice."""
    if len(slots) != len(group_ids):
        return failed("partition", f"{len(slots)} records have slots and {len(group_ids)} have groups")
    taken = slots >= 0
    twice = sum(count > 1 for count in Counter(slots[taken].tolist()).values())
    outside = int(((slots < -1) | (slots >= num_teachers * shard_size)).sum())
    owners: dict[int, set[int]] = {}
    for group, slot in zip(group_ids[taken].tolist(), slots[taken].tolist(), strict=True):
        owners.setdefault(group, set()).add(slot // shard_size)
    torn = sum(len(teachers) > 1 for teachers in owners.values())
    text = (
        f"{num_teachers} teachers of {shard_size} slots; {twice} slots hold two records, {outside} do not exist, "
        f"{torn} of {len(owners)} groups are with more than one teacher"
    )
    return Finding(
        "partition", not (twice or outside or torn), text, {"twice": twice, "torn": torn}, private=True
    )
