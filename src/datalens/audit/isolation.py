"""Whether one record reaches one teacher, looked at from where the teachers stand.

The audit trains small ensembles, wired as training wires them, on records that can be told apart. It sees what
every teacher is shown, then changes one record and sees whose answers change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from datalens.audit.findings import Finding
from datalens.audit.subject import SHARD, Seen, Subject, Watcher, number_of, numbered_records
from datalens.data.images import LabelledImages
from datalens.teachers.family import Fakes
from datalens.training.algorithm import Parts

STEPS = 3


def audit_shards(subject: Subject) -> Finding:
    """Every record is shown to one teacher, the same one at every call, and once; a group's all to the same."""
    data = numbered_records(SHARD * subject.num_teachers, subject)
    owners: dict[int, set[int]] = {}
    twice: set[int] = set()
    unknown = 0
    for seen in _watch(subject, data).seen:
        for teacher, calls in enumerate(seen.shown):
            for images in calls:
                records = number_of(images, data)
                unknown += records.count(-1)
                twice |= {record for record in records if record >= 0 and records.count(record) > 1}
                for record in records:
                    owners.setdefault(record, set()).add(teacher)
    owners.pop(-1, None)
    shared = sorted(record for record, teachers in owners.items() if len(teachers) > 1)
    missing = data.num_records - len(owners)
    torn = _torn(owners, data)
    text = (
        f"{len(owners)} of {data.num_records} records seen, {len(shared)} by more than one teacher, "
        f"{len(twice)} twice by one, {unknown} images that are no record"
    )
    if subject.of_groups:
        text += f"; {torn} groups with more than one teacher"
    numbers = {"seen": len(owners), "shared": len(shared), "twice": len(twice), "unknown": unknown}
    return Finding("shards", not (shared or twice or unknown or missing or torn), text, numbers)


def audit_isolation(subject: Subject) -> Finding:
    """One changed record, or a group taken out, changes the answers of one teacher, bit for bit, over several steps.

    Both runs are shown the same fakes, so that no student carries the change from one teacher to another; the
    sums of the votes then differ by no more than is charged for.
    """
    one = _watch(subject, numbered_records(SHARD * subject.num_teachers, subject))
    two = _watch(subject, _neighbour(SHARD * subject.num_teachers, subject))
    changed: set[int] = set()
    for before, after in zip(one.seen, two.seen, strict=True):
        differs_T = (before.grad_TBD != after.grad_TBD).flatten(1).any(1)
        changed |= set(differs_T.nonzero().flatten().tolist())
    voting = one.parts.config.voting
    event = one.parts.mechanism.event(voting.batch_size, subject.dim)
    charged = event.sensitivity / one.parts.config.privacy.group_size
    moved = max(
        float((one.parts.mechanism.summed(before) - one.parts.mechanism.summed(after)).double().norm())
        for before, after in zip(one.tallies, two.tallies, strict=True)
    )
    what = "a group taken out" if subject.of_groups else "one record"
    text = (
        f"{what} changed the answers of {len(changed)} of {subject.num_teachers} teachers and moved the votes by "
        f"{moved:.4g}; {charged:.4g} is charged for"
    )
    numbers = {"teachers_changed": len(changed), "moved": moved, "charged": charged}
    return Finding("isolation", len(changed) == 1 and moved <= charged * (1 + 1e-12), text, numbers)


def _neighbour(count: int, subject: Subject) -> LabelledImages:
    """The numbered records with one of them changed; where they come in groups, without all of one group."""
    if not subject.of_groups:
        return numbered_records(count, subject, odd_one=1)
    data = numbered_records(count, subject)
    stays = data.group_ids != 1
    ids = None if data.group_ids is None else data.group_ids[stays]
    return replace(data, images=data.images[stays], labels=data.labels[stays], group_ids=ids)


def _torn(owners: dict[int, set[int]], data: LabelledImages) -> int:
    """Groups whose records are with more than one teacher."""
    if data.group_ids is None:
        return 0
    found: dict[int, set[int]] = {}
    for record, teachers in owners.items():
        found.setdefault(int(data.group_ids[record]), set()).update(teachers)
    return sum(len(teachers) > 1 for teachers in found.values())


@dataclass(frozen=True)
class _Watched:
    parts: Parts
    seen: list[Seen]
    tallies: list[Tensor]


def _watch(subject: Subject, data: LabelledImages) -> _Watched:
    """Train a small ensemble for some steps on fakes that are the same every time."""
    parts = subject.repeatable(data)
    watcher = Watcher(parts.teachers.family)
    parts.teachers.family = watcher
    voting, teachers = parts.config.voting, parts.config.teachers
    seen, tallies = [], []
    for step in range(STEPS):
        rng = torch.Generator().manual_seed(step)
        images = torch.rand(voting.batch_size, *subject.image_shape, generator=rng)
        fakes = Fakes(images, torch.arange(voting.batch_size) % subject.num_classes)
        result = parts.teachers.tally(
            fakes, step, teachers.steps, voting.top_k, voting.clip_bound, voting.images_per_teacher
        )
        seen.append(watcher.take())
        tallies.append(result.tally_BD)
    return _Watched(parts, seen, tallies)
