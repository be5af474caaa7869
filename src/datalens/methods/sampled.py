"""What methods share that sum over Poisson-sampled lots of records: how much noise, and the records of a lot."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from datalens.data.images import LabelledImages
from datalens.errors import ConfigError
from datalens.mechanisms.sampled_sum import SampledSum
from datalens.methods.method import Context
from datalens.noise.entropy import OsEntropy, SeededEntropy
from datalens.noise.table import MAX_STDDEV, MIN_STDDEV
from datalens.privacy.calibration import noise_for, tidy
from datalens.privacy.events import NoiseKind, PoissonGaussianEvent
from datalens.teachers.partition import Partition
from datalens.training.sections import Privacy


class Lot(NamedTuple):
    """The records of one lot; private. A slot without a record is a black image of class 0.

    Attributes:
        images_RCHW: float32 in [0, 1].
        labels_R: int64.
        present_R: bool, whether there is a record in the slot.
    """

    images_RCHW: Tensor
    labels_R: Tensor
    present_R: Tensor


def lot_of(slots: Partition, drawn: np.ndarray, data: LabelledImages, device: torch.device) -> Lot:
    """The records in the slots that were drawn, each in a row of its own.

    A record that is removed leaves its row and every other row as they were, in a batch of the same shape.

    Args:
        slots: where records lie, all in one teacher's part.
        drawn: numbers of slots.
        data: the records.
        device: where to put them.
    """
    chosen_R = torch.from_numpy(slots.record_of_slot[0][drawn])
    present_R = chosen_R >= 0
    images_RCHW = torch.zeros(len(chosen_R), *data.image_shape, dtype=torch.uint8)
    labels_R = torch.zeros(len(chosen_R), dtype=torch.int64)
    records = chosen_R[present_R].numpy()
    images_RCHW[present_R] = torch.from_numpy(data.images[records])
    labels_R[present_R] = torch.from_numpy(data.labels[records])
    return Lot(images_RCHW.to(device).float() / 255, labels_R.to(device), present_R.to(device))


def drawn_lot(
    mechanism: SampledSum, slots: Partition, context: Context, privacy: Privacy, number: int
) -> Lot:
    """The records of one lot, by coins of the operating system, or of an insecure seed; private.

    Args:
        mechanism: says with which probability a slot is drawn.
        slots: where records lie, empty slots too.
        context: of the learner.
        privacy: says whether there is an insecure seed.
        number: of the lot; no two of a run share coins.
    """
    secret = privacy.insecure_seed is None
    entropy = OsEntropy() if secret else SeededEntropy(context.private.key("lots", number))
    return lot_of(slots, mechanism.lot(slots.num_slots, entropy), context.data, context.device)


def check_lot(batch_size: int, num_records: int) -> None:
    """Refuse a lot that expects more records than there are.

    Raises:
        ConfigError: says how many there are.
    """
    if batch_size > num_records:
        raise ConfigError(
            f"batch_size = {batch_size}: a lot cannot expect more than all {num_records} records; use at most "
            f"{num_records}"
        )


def sampled_noise(
    privacy: Privacy,
    event: Callable[[float], PoissonGaussianEvent],
    num_releases: int,
    longest: float,
    remedy: str,
) -> float:
    """The least noise with which all releases cost what was asked for: four digits, rounded up.

    Args:
        privacy: epsilon, delta, accountant and kind of noise.
        event: from a noise multiplier to what one release costs.
        num_releases: of a whole training.
        longest: how far one person moves a sum, in units of its grid.
        remedy: what to change where there is not so much noise.

    Returns:
        Its standard deviation on each coordinate, in units of the grid.

    Raises:
        ConfigError: no noise that the sampler has is enough, or it is not proved under sampling.
    """
    fitting = noise_for(event, num_releases, privacy.epsilon, privacy.delta, privacy.accountant)
    stddev = tidy(fitting * longest)
    if privacy.noise is not NoiseKind.ROUNDED:
        return stddev
    if stddev > MAX_STDDEV:
        raise ConfigError(
            f"epsilon = {privacy.epsilon:g}: these steps need noise of {stddev:g} units, but there are at most "
            f"{MAX_STDDEV:.0f}; use {remedy}"
        )
    return max(stddev, MIN_STDDEV)
