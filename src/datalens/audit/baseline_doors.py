"""Where a baseline's numbers become public, one door for each kind of release, as the audit knocks at them.

A door makes the mechanism anew from the method, with whatever noise the audit hands it, and asks that mechanism's
own functions for what they put noise on and for the noisy numbers, before a threshold or a majority hides anything.
A method without an entry in :data:`DOORS` cannot be audited, which the audit says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from datalens.audit.critic_door import CriticDoor
from datalens.audit.sum_doors import SILENT, MadeDoor, SampledDoor, SumDoor
from datalens.baselines import dp_gan, dp_merf, g_pate, gs_wgan, judged, moments, pate_gan
from datalens.mechanisms.gnmax import GNMax
from datalens.mechanisms.gpate import ANSWERS, CHECKS, ConfidentGNMax
from datalens.noise import NoiseSource
from datalens.privacy.events import NoisyEvent


class Door(Protocol):
    """One kind of release.

    A learner may hand several tensors to one release (a round of critics), so what is given is a sequence.
    """

    @property
    def what(self) -> str:
        """As :class:`datalens.baselines.method.Planned` has it."""
        ...

    @property
    def stream(self) -> str:
        """The name under which the learner asks for this release's noise."""
        ...

    @property
    def stddev(self) -> float:
        """Of the noise on every whole number."""
        ...

    @property
    def questions(self) -> int:
        """How many alike parts of a real release one record may move, such as images or questions."""
        ...

    def summed(self, given: Sequence[Tensor]) -> Tensor:
        """The whole numbers, float64, that noise is put on; through the mechanism with a source of no noise."""
        ...

    def drawn(self, noise: NoiseSource) -> np.ndarray:
        """The noise of one release of the real size, float64: what comes out where zeros go in."""
        ...

    def event(self, questions: int, stddev: float, noise: NoiseSource) -> NoisyEvent:
        """What the mechanism charges for a release of so many questions."""
        ...

    def tried(
        self, changed: bool, questions: int, stddev: float, noise: NoiseSource, trials: int
    ) -> np.ndarray:
        """Noisy numbers of so many releases, float64 [trials, K]; ``changed`` picks one of two worst neighbours."""
        ...


@dataclass(frozen=True)
class CountDoor(MadeDoor[GNMax]):
    """Counts of yes (:class:`GNMax`)."""

    questions: int

    def summed(self, given: Sequence[Tensor]) -> Tensor:
        """The counts."""
        (count_BC,) = given
        return self.make(SILENT).noisy_counts(count_BC).double()

    def drawn(self, noise: NoiseSource) -> np.ndarray:
        """Of one vote on a batch."""
        mechanism = self.make(noise)
        zeros = torch.zeros(self.questions, mechanism.counts, dtype=torch.int64)
        return mechanism.noisy_counts(zeros).double().numpy().ravel()

    def event(self, questions: int, stddev: float, noise: NoiseSource) -> NoisyEvent:
        """Of one vote."""
        return replace(self.make(noise), noise_stddev=stddev).event(questions)

    def tried(
        self, changed: bool, questions: int, stddev: float, noise: NoiseSource, trials: int
    ) -> np.ndarray:
        """Nobody says yes, or one person's teachers do."""
        mechanism = replace(self.make(noise), noise_stddev=stddev)
        said = mechanism.group_size if changed else 0
        count = torch.zeros(trials * questions, mechanism.counts, dtype=torch.int64)
        count[:, 0] = said
        return mechanism.noisy_counts(count).double().view(trials, -1).numpy()


@dataclass(frozen=True)
class HistogramDoor(MadeDoor[ConfidentGNMax]):
    """One of the two releases of :class:`ConfidentGNMax`: fullest counts (checks) or all bins (answers)."""

    questions: int

    @property
    def stream(self) -> str:
        """Both draw from one source."""
        return ANSWERS

    @property
    def stddev(self) -> float:
        """In votes."""
        mechanism = self.make(SILENT)
        return mechanism.threshold_stddev if self.what == CHECKS else mechanism.noise_stddev

    def summed(self, given: Sequence[Tensor]) -> Tensor:
        """The fullest counts, or the bins."""
        (tally_BPK,) = given
        return self._noisy(self.make(SILENT), tally_BPK)

    def drawn(self, noise: NoiseSource) -> np.ndarray:
        """Of all questions of a step."""
        mechanism = self.make(noise)
        zeros = torch.zeros(1, self.questions, mechanism.num_bins, dtype=torch.int32)
        return self._noisy(mechanism, zeros).numpy().ravel()

    def event(self, questions: int, stddev: float, noise: NoiseSource) -> NoisyEvent:
        """Of so many questions."""
        mechanism = self._at(stddev, noise)
        asked = mechanism.threshold_event if self.what == CHECKS else mechanism.answer_event
        return asked(questions)

    def tried(
        self, changed: bool, questions: int, stddev: float, noise: NoiseSource, trials: int
    ) -> np.ndarray:
        """One person's teachers are silent or vote (checks), or vote for the one bin or the other (answers)."""
        mechanism = replace(self._at(stddev, noise), num_bins=2)
        tally = torch.zeros(trials, questions, 2, dtype=torch.int32)
        if changed or self.what == ANSWERS:
            tally[..., int(changed)] = mechanism.group_size
        return self._noisy(mechanism, tally).view(trials, -1).numpy()

    def _at(self, stddev: float, noise: NoiseSource) -> ConfidentGNMax:
        name = "threshold_stddev" if self.what == CHECKS else "noise_stddev"
        return replace(self.make(noise), **{name: stddev})

    def _noisy(self, mechanism: ConfidentGNMax, tally_BPK: Tensor) -> Tensor:
        noisy = mechanism.noisy_fullest if self.what == CHECKS else mechanism.noisy_bins
        return noisy(tally_BPK).double()


def _merf(method: dp_merf.DPMerf) -> tuple[Door, ...]:
    coordinates = method.size.num_classes * method.settings.num_features
    return (SumDoor(dp_merf.WHAT, method.mechanism, coordinates=coordinates),)


def _moments(method: moments.Moments) -> tuple[Door, ...]:
    return tuple(
        SumDoor(what, partial(method.mechanism, what), coordinates=method.coordinates(what))
        for what in moments.STATES
    )


def _judged(method: judged.Judged) -> tuple[Door, ...]:
    gradient = SumDoor(judged.GRADIENT, method.mechanism, coordinates=method.grid.dim)
    return (*_moments(method.law), gradient)


def _pate_gan(method: pate_gan.PateGan) -> tuple[Door, ...]:
    return (CountDoor(pate_gan.VOTES, method.mechanism, method.settings.batch_size),)


def _g_pate(method: g_pate.GPate) -> tuple[Door, ...]:
    asked = method.settings.batch_size * method.settings.num_projected
    return tuple(HistogramDoor(what, method.mechanism, asked) for what in (CHECKS, ANSWERS))


def _dp_gan(method: dp_gan.DPGan) -> tuple[Door, ...]:
    return (SampledDoor(dp_gan.WHAT, method.mechanism),)


def _gs_wgan(method: gs_wgan.GSWgan) -> tuple[Door, ...]:
    return (CriticDoor(gs_wgan.WHAT, method.mechanism),)


DOORS: dict[str, Callable[[Any], tuple[Door, ...]]] = {
    dp_merf.DPMerf.name: _merf,
    moments.Moments.name: _moments,
    judged.Judged.name: _judged,
    pate_gan.PateGan.name: _pate_gan,
    g_pate.GPate.name: _g_pate,
    dp_gan.DPGan.name: _dp_gan,
    gs_wgan.GSWgan.name: _gs_wgan,
}
"""By the name of the method; one door for each kind of release that it plans."""
