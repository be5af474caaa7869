"""Baselines broken on purpose, one part at a time, as published programs were; the audit must catch each.

As in :mod:`datalens.audit.sabotage`, a sound subject goes in and one with a single part exchanged comes out; the
checks know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from datalens.audit.baseline_subject import BaselineSubject
from datalens.audit.sabotage import ScaledNoise
from datalens.baselines.dp_gan import DPGan, DPGanLearner
from datalens.baselines.dp_merf import DPMerf, MerfLearner
from datalens.baselines.g_pate import GPate
from datalens.baselines.gs_wgan import GSWgan
from datalens.baselines.moments import Moments, MomentsLearner
from datalens.baselines.pate_gan import PateGan, PateGanLearner
from datalens.mechanisms.base import Release
from datalens.mechanisms.gnmax import GNMax
from datalens.mechanisms.gpate import ConfidentGNMax
from datalens.mechanisms.sampled_sum import SampledSum
from datalens.mechanisms.vector_sum import Grid
from datalens.methods.method import Context
from datalens.moments.law import Centres
from datalens.noise import NoiseSource, make_noise
from datalens.privacy.budget import Budget
from datalens.privacy.events import GaussianEvent
from datalens.teachers.family import Shards


def half_noise(subject: BaselineSubject) -> BaselineSubject:
    """The noise has half the standard deviation that is charged for."""
    sound = subject.noise_for
    return replace(subject, noise_for=lambda what, number: ScaledNoise(sound(what, number), 0.5))


def repeated_noise(subject: BaselineSubject) -> BaselineSubject:
    """Every release draws the same noise."""
    return replace(subject, noise_for=lambda what, number: make_noise(subject.privacy.noise, b"as always"))


def _exchanged(kind: type[Any]) -> Callable[[BaselineSubject], BaselineSubject]:
    """The method replaced by a broken kind of it, with the same settings and noise."""

    def sabotage(subject: BaselineSubject) -> BaselineSubject:
        return replace(subject, method=_as(kind, subject.method))

    return sabotage


def _as(kind: type[Any], sound: Any) -> Any:
    """The same fields in a broken kind."""
    return kind(**{part.name: getattr(sound, part.name) for part in fields(sound) if part.init})


class _HalfCharged(GNMax):
    def event(self, batch_size: int) -> GaussianEvent:
        event = super().event(batch_size)
        return replace(event, sensitivity=event.sensitivity / 2)


class _HalfChargedVotes(PateGan):
    """A vote of B questions is charged as if a teacher moved half of each."""

    def mechanism(self, noise: NoiseSource) -> GNMax:
        return _as(_HalfCharged, super().mechanism(noise))


class _DrawsFirst(GNMax):
    def release(self, count_BC: Tensor, budget: Budget, note: dict[str, Any]) -> Release[Tensor]:
        noisy_BC, event = self.noisy_counts(count_BC), self.event(len(count_BC))
        return Release(self.label(noisy_BC), event, budget.charge(event, note).hash)


class _DrawsBeforeItPays(PateGan):
    """Noise is drawn, and then the budget is asked."""

    def mechanism(self, noise: NoiseSource) -> GNMax:
        return _as(_DrawsFirst, super().mechanism(noise))


class _OverlappingLearner(PateGanLearner):
    def _gather(self) -> Shards:
        shards = super()._gather()
        images, labels = shards.images_TRCHW.clone(), shards.labels_TR.clone()
        images[-1, -1], labels[-1, -1] = images[0, 0], labels[0, 0]
        return Shards(images, labels, shards.present_TR)


class _Overlapping(PateGan):
    """The last teacher's last record is the first teacher's first one, too."""

    def begin(self, context: Context) -> PateGanLearner:
        return _OverlappingLearner(self, context)


class _OneCharge(ConfidentGNMax):
    def answer_event(self, num_questions: int) -> GaussianEvent:
        event = super().answer_event(num_questions)
        return replace(event, sensitivity=event.sensitivity / 2**0.5)


class _VoteWithdrawn(GPate):
    """A vote that moves from one bin to another is charged like one that is withdrawn."""

    def mechanism(self, noise: NoiseSource) -> ConfidentGNMax:
        return _as(_OneCharge, super().mechanism(noise))


class _TrueCountLearner(MerfLearner):
    def _release(self, step: int) -> Tensor:
        return super()._release(step) * (self._method.size.num_records / self._context.data.num_records)


class _TrueCount(DPMerf):
    """The table is divided by the number of records that were read, which is private (the published code)."""

    def begin(self, context: Context) -> MerfLearner:
        return _TrueCountLearner(self, context)


class _TrueMeansLearner(MomentsLearner):
    def _centres(self) -> Centres:
        found, data = super()._centres(), self._context.data
        numbers_RD = self._method.measures.basis.of_bytes(torch.from_numpy(data.images))
        labels = torch.from_numpy(data.labels)
        true_YD = torch.zeros_like(found.mean_YD).index_add_(0, labels, numbers_RD)
        count_Y = labels.bincount(minlength=len(true_YD)).clamp(min=1)
        return replace(found, mean_YD=true_YD / count_Y[:, None])


class _TrueMeans(Moments):
    """Residuals are from the means of the records, not from those that were released."""

    def begin(self, context: Context) -> MomentsLearner:
        return _TrueMeansLearner(self, context)


@dataclass(frozen=True)
class _Unclipped(Grid):
    def put(self, vectors_RD: Tensor) -> Tensor:
        usable_RD = vectors_RD.double().nan_to_num(0.0).clamp(-1e12, 1e12)
        return (usable_RD * self.scale).round().to(torch.int64)


class _UnclippedCritics(GSWgan):
    """The gradient penalty is trusted to bound gradients, and nothing is clipped."""

    @property
    def grid(self) -> Grid:
        return _as(_Unclipped, super().grid)


class _ClipsLotLearner(DPGanLearner):
    def clipped_sum(self, lot: tuple[Tensor, Tensor, Tensor], centre_YD: Tensor) -> Tensor:
        from datalens.baselines.per_record import per_record_gradients

        images, labels, present = lot
        rows_RD = (per_record_gradients(self._critic, images, labels) - centre_YD[labels]).nan_to_num(0.0)
        mean_1D = (rows_RD.double() * present[:, None]).mean(0, keepdim=True)
        return self._grid.put(mean_1D)[0] * len(images)


class _ClipsLot(DPGan):
    """The lot's mean gradient is clipped, not each record's."""

    def begin(self, context: Context) -> DPGanLearner:
        return _ClipsLotLearner(self, context)


class _Likelier(SampledSum):
    def lot(self, num_slots: int, entropy: Any) -> Any:
        both = replace(self, sampling_probability=min(1.0, 1.1 * self.sampling_probability))
        return SampledSum.lot(both, num_slots, entropy)


class _LikelierLots(DPGan):
    """A record is in a lot a tenth more often than is charged."""

    def mechanism(self, noise: NoiseSource) -> SampledSum:
        return _as(_Likelier, super().mechanism(noise))


BASELINE_SABOTAGES: dict[str, tuple[str, Callable[[BaselineSubject], BaselineSubject]]] = {
    "half the noise": (DPMerf.name, half_noise),
    "division by the true number of records": (DPMerf.name, _exchanged(_TrueCount)),
    "residuals from means that nobody released": (Moments.name, _exchanged(_TrueMeans)),
    "a repeated noise stream": (PateGan.name, repeated_noise),
    "votes charged by half": (PateGan.name, _exchanged(_HalfChargedVotes)),
    "noise before the budget": (PateGan.name, _exchanged(_DrawsBeforeItPays)),
    "a teacher that sees another's record": (PateGan.name, _exchanged(_Overlapping)),
    "a moved vote charged as a withdrawn one": (GPate.name, _exchanged(_VoteWithdrawn)),
    "gradients that nobody clips": (GSWgan.name, _exchanged(_UnclippedCritics)),
    "a lot clipped as a whole": (DPGan.name, _exchanged(_ClipsLot)),
    "lots larger than charged": (DPGan.name, _exchanged(_LikelierLots)),
}
"""What the self-test breaks: by its name, the method and the break."""
