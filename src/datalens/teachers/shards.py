"""From records and a slot map to the shards of one chunk of teachers."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from datalens.errors import ConfigError
from datalens.teachers.family import Shards

EMPTY = -1


class ShardSource(Protocol):
    """Hands out the shards of a chunk of teachers. Private."""

    @property
    def num_teachers(self) -> int:
        """Teachers there are shards for."""
        ...

    def chunk(self, start: int, stop: int, device: torch.device) -> Shards:
        """The shards of teachers ``start`` to ``stop - 1``."""
        ...


class RecordShards:
    """Shards gathered from the records as they are asked for, so that no record is held twice.

    A device other than the CPU gets a copy of the records, as they are, when it first asks: gathering there
    spares a wait for a copy with every chunk.

    Args:
        images_RCHW: the records, uint8 (read as 0..255) or float in [0, 1].
        labels_R: their classes.
        slots_TR: int64, which record stands in each slot of each teacher; -1 is an empty slot.

    Raises:
        ConfigError: a slot that names no record, or a record in two slots.
    """

    def __init__(self, images_RCHW: Tensor, labels_R: Tensor, slots_TR: Tensor) -> None:
        used = slots_TR[slots_TR != EMPTY]
        if used.numel() and not (int(used.min()) >= 0 and int(used.max()) < len(images_RCHW)):
            raise ConfigError(
                f"the slot map names records {int(used.min())} to {int(used.max())} of {len(images_RCHW)}: "
                "every slot must hold a record or -1; make the map from these records"
            )
        if used.unique().numel() != used.numel():
            raise ConfigError(
                "the slot map holds a record twice: a record must sit in one slot of one teacher; "
                "make the map with datalens.teachers.partition"
            )
        self._image_shape = images_RCHW.shape[1:]
        self._pixels_RD = images_RCHW.flatten(1)
        self._labels_R = labels_R.to(torch.int64)
        self._slots_TR = slots_TR.to(torch.int64)
        self._copies: dict[torch.device, tuple[Tensor, Tensor, Tensor]] = {}

    @property
    def num_teachers(self) -> int:
        """Teachers in the slot map."""
        return len(self._slots_TR)

    def chunk(self, start: int, stop: int, device: torch.device) -> Shards:
        """The shards of teachers ``start`` to ``stop - 1``; empty slots hold zeros."""
        pixels_RD, labels_R, all_slots_TR = self._records(device)
        slots_TR = all_slots_TR[start:stop]
        present_TR = slots_TR != EMPTY
        num_teachers, num_slots = slots_TR.shape
        records = slots_TR.flatten().clamp(min=0)
        pixels = pixels_RD.index_select(0, records)  # whole rows; indexing would go pixel by pixel
        labels_TR = labels_R.index_select(0, records).view_as(slots_TR)
        if present_TR.device.type != "cpu" or not bool(present_TR.all()):  # elsewhere asking means waiting
            pixels.masked_fill_(~present_TR.view(-1, 1), 0)
            labels_TR = labels_TR * present_TR
        unit = pixels.to(torch.float32)
        if pixels.dtype == torch.uint8:
            unit = unit.div_(255.0)
        unit_TRCHW = unit.view(num_teachers, num_slots, *self._image_shape)
        return Shards(unit_TRCHW, labels_TR, present_TR, start)

    def _records(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Pixels, labels and slots where ``device`` reads them without waiting."""
        own = (self._pixels_RD, self._labels_R, self._slots_TR)
        if device == self._pixels_RD.device:
            return own
        if device not in self._copies:
            self._copies[device] = (own[0].to(device), own[1].to(device), own[2].to(device))
        return self._copies[device]
