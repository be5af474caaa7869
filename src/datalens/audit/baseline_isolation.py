"""What of a baseline's data reaches whom: one record one teacher, and nothing but releases the generator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from datalens.audit.baseline_subject import BaselineSubject
from datalens.audit.findings import Finding
from datalens.audit.subject import Watcher
from datalens.audit.tap import Tap
from datalens.baselines import g_pate, gs_wgan, pate_gan
from datalens.compression.projection import draw_projection
from datalens.data.images import LabelledImages
from datalens.teachers.family import Fakes

STEPS = 2


def _images(learner: Any) -> tuple[Tensor, Tensor]:
    """A batch of public images, the same for every learner."""
    size, count = learner._method.size, learner._method.settings.batch_size
    rng = torch.Generator().manual_seed(1)
    return torch.rand(count, *size.image_shape, generator=rng), torch.arange(count) % size.num_classes


def _pate_gan(learner: Any) -> Tensor:
    for number in range(STEPS):
        learner._teach(learner.propose(number))
    with torch.no_grad():
        return learner.teachers.logits(*learner._as_batch(learner.propose(STEPS)))


def _g_pate(learner: Any) -> Tensor:
    learner._family = watcher = Watcher(learner._family)
    settings, (images, labels) = learner._method.settings, _images(learner)
    basis_DP = draw_projection(images[0].numel(), settings.num_projected, torch.Generator().manual_seed(1))
    for step in range(STEPS):
        learner.tally(Fakes(images, labels), basis_DP, step)
    return watcher.take().grad_TBD


def _gs_wgan(learner: Any) -> Tensor:
    found = []
    for critic in range(len(learner.critics)):
        for number in range(STEPS):
            learner._teach(critic, number)
        found.append(learner._gradients(critic, *_images(learner)))
    return torch.stack(found)


ANSWERS: dict[str, Callable[[Any], Tensor]] = {
    pate_gan.PateGan.name: _pate_gan,
    g_pate.GPate.name: _g_pate,
    gs_wgan.GSWgan.name: _gs_wgan,
}
"""By the name of a method with shards: what each teacher says of the same images after lessons, [T, ...]."""


def audit_isolation(subject: BaselineSubject) -> list[Finding]:
    """Each record, or group, in turn looks different and changes the answers of one teacher at most, bit for bit."""
    if not subject.num_shards:
        return []
    answers = ANSWERS[subject.method.name]
    data = subject.records()
    sound = answers(subject.learner(Tap(), data))
    changed = []
    units = np.arange(data.num_records) if data.group_ids is None else data.group_ids
    for unit in np.unique(units):
        other = answers(subject.learner(Tap(), _flipped(data, units == unit)))
        changed.append(int((sound != other).flatten(1).any(1).sum()))
    shared, seen = sum(found > 1 for found in changed), sum(found > 0 for found in changed)
    what = "records" if data.group_ids is None else "groups"
    text = (
        f"{seen} of {len(changed)} {what} changed what a teacher says when they changed; {shared} of them changed "
        f"more than one of {len(sound)} teachers"
    )
    return [Finding("isolation", seen > 0 and shared == 0, text, {"seen": seen, "shared": shared})]


def audit_crossing(subject: BaselineSubject) -> Finding:
    """Two data sets with nothing in common and the same releases give the same generator, bit for bit."""
    steps, noise = subject.steps, subject.noise_for
    method = subject.small()
    played: list[Any] = []
    states: list[dict[str, Tensor]] = []
    for turn, data in enumerate((subject.records(0), subject.records(1, fewer=1))):
        tap = Tap(played)
        context = subject.context(method, data, noise=noise, private=f"private {turn}")
        learner = tap.begin(method, context)
        for step in range(steps):
            learner.step(step)
        played = tap.released
        states.append(dict(learner.generator().state_dict()))
    differing = [name for name, value in states[0].items() if not torch.equal(value, states[1][name])]
    text = f"two data sets and the same {len(played)} released values gave " + (
        f"generators that differ in {differing[0]}" if differing else "the same generator, bit for bit"
    )
    return Finding("crossing", not differing, text, {"released": len(played), "differing": differing})


def _flipped(data: LabelledImages, chosen: np.ndarray) -> LabelledImages:
    """The same records, but for those chosen, each of which is its negative and of the next class."""
    images, labels = data.images.copy(), data.labels.copy()
    images[chosen] = 255 - images[chosen]
    labels[chosen] = (labels[chosen] + 1) % len(data.classes)
    return replace(data, images=np.ascontiguousarray(images), labels=labels)
