"""Neighbouring data sets that move a baseline's sum as far as any can, seen through the learner's own step.

What a teacher, a critic or a record may come to say is chosen by the attacker; from there on everything is the
product's own: voting, counting, clipping, summing. Both neighbours are played the same released values, so what is
compared is one release after one public past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from datalens.audit.baseline_subject import BaselineSubject
from datalens.audit.mechanism import hard_gradients
from datalens.audit.subject import Puppets
from datalens.audit.sum_doors import long_row
from datalens.audit.tap import Tap
from datalens.baselines import dp_gan, dp_merf, g_pate, gs_wgan, judged, moments, pate_gan
from datalens.data.images import LabelledImages
from datalens.models.judge import Judge

Given = list[list[Tensor]]
Pairs = Iterator[tuple[Given, Given]]
_CANDIDATES = 5000
"""Answers, of which the one whose error is the longest after rounding is taken."""


def _heard_alike(
    subject: BaselineSubject,
    neighbours: tuple[Any, Any],
    meddle: Callable[[Any, Any], None],
    data: LabelledImages,
) -> tuple[Given, Given]:
    """What one step gives to its releases under two neighbours, both after the same public past."""
    played: list[Any] = []
    found = []
    for neighbour in neighbours:
        tap = Tap(played)
        learner = subject.learner(tap, data)
        meddle(learner, neighbour)
        learner.step(0)
        played = tap.released
        found.append(tap.given)
    return found[0], found[1]


def _of_people(subject: BaselineSubject, own: Tensor, rest: Tensor, count: int) -> Tensor:
    """``own`` for each teacher that one person can own, ``rest`` for the others."""
    group = subject.privacy.group_size
    return torch.stack([*[own] * group, *[rest] * (count - group)])


class _Believers:
    """Teachers of PATE-GAN whose beliefs the attacker chooses."""

    def __init__(self, logit_TB: Tensor) -> None:
        self._logit_TB = logit_TB

    def logits(self, images_TRD: Tensor, labels_TR: Tensor) -> Tensor:
        return self._logit_TB if len(images_TRD) == 1 else torch.zeros(images_TRD.shape[:2])

    def learn(self, loss_T: Tensor) -> None:
        pass


def _pate_gan(subject: BaselineSubject) -> Pairs:
    def meddle(learner: Any, logit_TB: Tensor) -> None:
        learner.teachers = _Believers(logit_TB)

    method: Any = subject.small()
    for before, after in hard_gradients(1, method.settings.batch_size):
        rest = torch.linspace(-1, 1, before.numel())
        logits = [_of_people(subject, own[0], rest, subject.num_shards) for own in (before, after)]
        yield _heard_alike(subject, (logits[0], logits[1]), meddle, subject.records())


def _g_pate(subject: BaselineSubject) -> Pairs:
    def meddle(learner: Any, grad_TBD: Tensor) -> None:
        learner._family = Puppets(grad_TBD)

    method: Any = subject.small()
    shape = method.settings.batch_size, int(np.prod(subject.size.image_shape))
    silent = torch.full(shape, torch.nan)
    pairs = hard_gradients(*shape)
    for before, after in [*pairs, (pairs[0][0], silent)]:
        rest = torch.linspace(-1, 1, before.numel()).view_as(before)
        for others in (rest, silent):  # among nobody else's votes a fullest bin moves farthest
            grads = [_of_people(subject, own, others, subject.num_shards) for own in (before, after)]
            yield _heard_alike(subject, (grads[0], grads[1]), meddle, subject.records())


class _Puller(nn.Module):
    """A critic of GS-WGAN whose gradients the attacker chooses, whatever it is taught."""

    def __init__(self, rows_BD: Tensor) -> None:
        super().__init__()
        self._rows_BD, self.unused = rows_BD, nn.Parameter(torch.zeros(()))

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        rows = self._rows_BD
        if len(images) != len(rows):  # real records in a lesson
            rows = rows[:1].expand(len(images), -1)
        return (images.flatten(1) * rows).sum(1) + self.unused


def _gs_wgan(subject: BaselineSubject) -> Pairs:
    def meddle(learner: Any, rows: list[Tensor]) -> None:
        learner.critics = [_Puller(rows_BD) for rows_BD in rows]

    method: Any = subject.small()
    shape = method.settings.batch_size, int(np.prod(subject.size.image_shape))
    for before, after in hard_gradients(*shape):
        rest = torch.linspace(-1, 1, before.numel()).view_as(before)
        rows = [list(_of_people(subject, own, rest, subject.num_shards)) for own in (before, after)]
        yield _heard_alike(subject, (rows[0], rows[1]), meddle, subject.records())


def _sums(subject: BaselineSubject, steps: int, meddle: Callable[[Any, int], None] | None = None) -> Pairs:
    """One person's records, all alike, added to some and to none, in a method that sums over all records.

    Args:
        subject: under audit.
        steps: of the learner.
        meddle: with the learner, before a step.
    """
    others = subject.records(fewer=min(subject.privacy.group_size, subject.size.num_records - 1))
    own = [np.full_like(others.images[0], value) for value in (0, 255)]
    own.append(255 * (np.indices(own[0].shape).sum(0) % 2).astype(np.uint8))
    for rest in (others, _first(others, 1)):
        for image in own:
            more = np.repeat(image[None], subject.privacy.group_size, 0)
            labels = np.zeros(len(more), np.int64)
            both = replace(
                rest, images=np.concatenate([rest.images, more]), labels=np.concatenate([rest.labels, labels])
            )
            played: list[Any] = []
            found = []
            for data in (rest, both):
                tap = Tap(played)
                learner = subject.learner(tap, data)
                for step in range(steps):
                    if meddle is not None:
                        meddle(learner, step)
                    learner.step(step)
                played = tap.released
                found.append(tap.given)
            yield found[0], found[1]


class _Namer(Judge):
    """A judge that finds the same in every image, and answers as the attacker likes.

    Args:
        row_K: coordinates.
        logit_Y: of its answer.
        like: has its shapes.
    """

    def __init__(self, row_K: Tensor, logit_Y: Tensor, like: Judge) -> None:
        super().__init__((1, 8, 8), like.num_classes, like.size)
        self._row_K = row_K
        with torch.no_grad():
            self.length.fill_(1.0)
            self.head_YK.copy_(logit_Y[:, None] * row_K / row_K.square().sum())

    def features(self, images_BCHW: Tensor) -> Tensor:
        return torch.zeros(len(images_BCHW), len(self.centre_F))

    def cut(self, along_BK: Tensor) -> Tensor:
        return self._row_K.expand(len(along_BK), -1)


def _judged(subject: BaselineSubject) -> Pairs:
    """Records as they are; then errors and coordinates that rounding makes as long as it can."""
    yield from _sums(subject, subject.steps)
    method: Any = subject.method
    grid, rng = method.grid, torch.Generator().manual_seed(1)
    logit_RY = torch.randn(_CANDIDATES, grid.left.dim, generator=rng).double()
    error_RY = torch.softmax(logit_RY, 1).neg()
    error_RY[:, 0] += 1  # whose label is the first
    logit_Y = logit_RY[int(grid.left.put(error_RY).square().sum(1).argmax())]
    row_K = long_row(grid.right)

    def meddle(learner: Any, step: int) -> None:
        if step == len(moments.STATES):
            learner._generator.judge = _Namer(row_K, logit_Y, learner._generator.judge)

    yield from _sums(subject, subject.steps, meddle)


def _first(data: LabelledImages, count: int) -> LabelledImages:
    return replace(data, images=data.images[:count], labels=data.labels[:count])


def _dp_gan(subject: BaselineSubject) -> Pairs:
    """A lot of records with gradients as long as they come, with one person's and without."""

    def meddle(learner: Any, lot: tuple[Tensor, Tensor, Tensor]) -> None:
        learner.lot = lambda number: lot

    group = subject.privacy.group_size
    data = subject.records()
    images = torch.from_numpy(data.images).float() / 255
    labels = torch.from_numpy(data.labels)
    place = torch.arange(len(images))[:, None, None, None]
    loud = torch.where(place < group, -1e8, images)  # one person drowns the others
    wild = torch.where(place % 2 == 0, 1e6 * images + 1e6, -1e8)
    torn = torch.where(place % 3 == 0, torch.nan, 1e20 * images)
    for chosen in (loud, wild, torn, torch.zeros_like(images)):
        present = torch.ones(len(images), dtype=torch.bool)
        gone = present.clone()
        gone[:group] = False
        yield _heard_alike(subject, ((chosen, labels, present), (chosen, labels, gone)), meddle, data)


ADVERSARIES: dict[str, Callable[[BaselineSubject], Pairs]] = {
    dp_merf.DPMerf.name: partial(_sums, steps=1),
    moments.Moments.name: partial(_sums, steps=len(moments.STATES)),
    judged.Judged.name: _judged,
    pate_gan.PateGan.name: _pate_gan,
    g_pate.GPate.name: _g_pate,
    dp_gan.DPGan.name: _dp_gan,
    gs_wgan.GSWgan.name: _gs_wgan,
}
"""By the name of the method; what every release of a step was given, under one neighbour and the other."""
