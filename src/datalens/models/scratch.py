"""Buffers that are used again and again: fresh memory costs more than the arithmetic that fills it."""

from __future__ import annotations

import threading

import torch
from torch import Tensor


class Scratch:
    """Buffers by name. A buffer is good until its name is asked for again; one thread uses it at a time.

    The operating system zeroes every page that it hands out, and PyTorch gives large tensors back to it: with
    chunks of some megabytes that took a third of a teacher's step.

    >>> scratch, like = Scratch(), torch.ones(1)
    >>> scratch.empty("a", (2, 3), like).data_ptr() == scratch.empty("a", (3, 2), like).data_ptr()
    True
    """

    def __init__(self) -> None:
        self._buffers: dict[str, Tensor] = {}

    def empty(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """The buffer ``name``, holding anything, with ``like``'s type and device; grown where it is too small."""
        size = torch.Size(shape).numel()
        buffer = self._buffers.get(name)
        if (
            buffer is None
            or buffer.numel() < size
            or (buffer.dtype, buffer.device) != (like.dtype, like.device)
        ):
            buffer = self._buffers[name] = like.new_empty(size)
        return buffer[:size].view(shape)

    def zeros(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """As :meth:`empty`, zero when it is made for this shape; what was written since then is still there."""
        key = f"{name}{shape}"
        buffer = self._buffers.get(key)
        if buffer is None or (buffer.dtype, buffer.device) != (like.dtype, like.device):
            buffer = self._buffers[key] = like.new_zeros(shape)
        return buffer


class ThreadScratch(threading.local):
    """A :class:`Scratch` for every thread that asks.

    >>> local = ThreadScratch()
    >>> local.scratch is local.scratch
    True
    """

    def __init__(self) -> None:
        self.scratch: Scratch = Scratch()
