"""Teachers' states on disk, as many as fit in memory aside: read ahead and written behind while others compute."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Semaphore

import torch

from datalens.errors import CheckpointError, ConfigError
from datalens.teachers.family import TeacherState

ALIGNED = 64
"""Bytes; where a tensor may begin within a chunk."""

WRITES_UNDER_WAY = 4
"""Chunks that wait to be written at most, so that a slow disk slows the teachers and fills no memory."""

Chunk = tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """Where the tensors of a chunk lie in its bytes.

    Attributes:
        parts: name, type, shape and first byte of every tensor.
        num_bytes: length of the whole.
    """

    parts: tuple[tuple[str, torch.dtype, tuple[int, ...], int], ...]
    num_bytes: int

    @classmethod
    def of(cls, state: TeacherState) -> Layout:
        """The layout of one chunk."""
        parts, place = [], 0
        for name, value in state.items():
            parts.append((name, value.dtype, tuple(value.shape), place))
            place += -(-value.numel() * value.element_size() // ALIGNED) * ALIGNED
        return cls(tuple(parts), place)


class Buffer:
    """The bytes of one chunk, with a view for every tensor."""

    def __init__(self, layout: Layout) -> None:
        self._bytes = torch.empty(layout.num_bytes, dtype=torch.uint8)
        self.layout = layout
        self.memory: memoryview = self._bytes.numpy().data
        self.state: TeacherState = {
            name: self._bytes[place : place + torch.Size(shape).numel() * dtype.itemsize]
            .view(dtype)
            .view(shape)
            for name, dtype, shape, place in layout.parts
        }

    def take(self, state: TeacherState) -> None:
        """Hold this state; tensors that are views of the buffer are there already."""
        for name, value in state.items():
            if value.data_ptr() != self.state[name].data_ptr():
                self.state[name].copy_(value)


@dataclass
class _OnDisk:
    """A chunk in the file.

    Attributes:
        layout: of its bytes.
        offset: the first of them in the file.
        held: its buffer, while it is handed out.
        reading: a read that was begun ahead.
        writing: a write that has not been waited for.
    """

    layout: Layout
    offset: int
    held: Buffer | None = None
    reading: Future[Buffer] | None = None
    writing: Future[None] | None = None


class DiskStore:
    """States of teachers on disk; the first chunks, up to ``resident_bytes``, stay in memory.

    What is on disk is in a file without a name, which the operating system removes with the process, however
    it ends. One thread reads what was asked for ahead, another writes what was given back.

    Args:
        folder: where to keep the file; private.
        resident_bytes: how much may stay in memory.

    Raises:
        ConfigError: a system that cannot read and write at a place of a file.
        CheckpointError: the file cannot be made; later, it cannot be read or written.
    """

    def __init__(self, folder: Path, resident_bytes: int = 0) -> None:
        if not hasattr(os, "preadv"):
            raise ConfigError("teacher_store is disk: not possible on this system; use memory")
        self._folder = folder
        self._resident_bytes = resident_bytes
        with self._explained("made"):
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 closed in close()
        self._places: dict[Chunk, Buffer | _OnDisk] = {}
        self._memory_bytes = self._disk_bytes = 0
        self._free: dict[Layout, list[Buffer]] = {}
        self._lock = Lock()
        self._room_to_write = Semaphore(WRITES_UNDER_WAY)
        self._reader = ThreadPoolExecutor(1, "teacher-store-read")
        self._writer = ThreadPoolExecutor(1, "teacher-store-write")

    @property
    def disk_bytes(self) -> int:
        """Bytes of the file."""
        return self._disk_bytes

    def load(self, start: int, stop: int) -> TeacherState:
        """The states of a chunk, in a buffer that is the caller's until ``save``."""
        place = self._places[start, stop]
        if isinstance(place, Buffer):
            return place.state
        place.held, place.reading = self._ahead(place).result(), None
        return place.held.state

    def save(self, start: int, stop: int, state: TeacherState) -> None:
        """Put a chunk back; returns before it is written."""
        place = self._place(start, stop, state)
        if isinstance(place, Buffer):
            place.take(state)
            return
        buffer, place.held = place.held or self._buffer(place.layout), None
        buffer.take(state)
        self._settle(place)
        self._room_to_write.acquire()
        place.writing = self._writer.submit(self._write, place, buffer)

    def unload(self, start: int, stop: int) -> None:
        """Give a chunk back that was only read."""
        place = self._places[start, stop]
        if isinstance(place, _OnDisk) and place.held is not None:
            self._give_back(place.held)
            place.held = None

    def prefetch(self, start: int, stop: int) -> None:
        """Begin to read a chunk."""
        place = self._places[start, stop]
        if isinstance(place, _OnDisk) and place.held is None:
            self._ahead(place)

    def flush(self) -> None:
        """Wait for every write."""
        for place in self._places.values():
            if isinstance(place, _OnDisk):
                self._settle(place)

    def close(self) -> None:
        """Remove the file."""
        for pool in (self._reader, self._writer):
            pool.shutdown(cancel_futures=True)
        self._places.clear()
        self._free.clear()
        self._file.close()

    def _place(self, start: int, stop: int, state: TeacherState) -> Buffer | _OnDisk:
        """The chunk's place, made the first time: in memory while there is room."""
        with self._lock:
            place = self._places.get((start, stop))
            if place is None:
                layout = Layout.of(state)
                if self._memory_bytes + layout.num_bytes <= self._resident_bytes:
                    place = Buffer(layout)
                    self._memory_bytes += layout.num_bytes
                else:
                    place = _OnDisk(layout, self._disk_bytes)
                    self._disk_bytes += layout.num_bytes
                self._places[start, stop] = place
            return place

    def _buffer(self, layout: Layout) -> Buffer:
        with self._lock:
            if self._free.setdefault(layout, []):
                return self._free[layout].pop()
        return Buffer(layout)

    def _give_back(self, buffer: Buffer) -> None:
        with self._lock:
            self._free.setdefault(buffer.layout, []).append(buffer)

    def _ahead(self, place: _OnDisk) -> Future[Buffer]:
        """The read of a chunk, begun now unless it is under way."""
        if place.reading is None:
            place.reading = self._reader.submit(self._read, place)
        return place.reading

    def _read(self, place: _OnDisk) -> Buffer:
        self._settle(place)
        buffer = self._buffer(place.layout)
        with self._explained("read"):
            _whole(os.preadv, self._file.fileno(), buffer.memory, place.offset)
        return buffer

    def _write(self, place: _OnDisk, buffer: Buffer) -> None:
        try:
            with self._explained("written"):
                _whole(os.pwritev, self._file.fileno(), buffer.memory, place.offset)
        finally:
            self._room_to_write.release()
            self._give_back(buffer)

    def _settle(self, place: _OnDisk) -> None:
        """Wait for the chunk's write, if one is under way."""
        writing = place.writing
        if writing is not None:
            writing.result()
            place.writing = None

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise CheckpointError(
                f"{self._folder}: the teachers' file cannot be {what} ({reason}); make room, or use "
                "--teacher-store memory"
            ) from None


def _whole(
    move: Callable[[int, list[memoryview], int], int], file: int, memory: memoryview, offset: int
) -> None:
    """Read or write all of it; the system may do less at a time."""
    done = 0
    while done < len(memory):
        step = move(file, [memory[done:]], offset + done)
        if step == 0:
            raise OSError(0, "it ended early")
        done += step
