"""Teachers' states on disk, as many as fit in memory aside: read ahead and written behind while others compute."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
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
        self.memory = self._bytes.numpy().data
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
class _Place:
    """Where one chunk lives.

    Attributes:
        layout: of its bytes.
        offset: first byte in the file; None where it stays in memory.
        held: its buffer, where it stays in memory or was handed out.
        reading: a read that was begun ahead.
        writing: a write that has not been waited for.
    """

    layout: Layout
    offset: int | None
    held: Buffer | None = None
    reading: Future[Buffer] | None = None
    writing: Future[None] | None = field(default=None)


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
        self._places: dict[Chunk, _Place] = {}
        self._used = {"memory": 0, "disk": 0}
        self._free: dict[Layout, list[Buffer]] = {}
        self._lock = Lock()
        self._room_to_write = Semaphore(WRITES_UNDER_WAY)
        self._reader = ThreadPoolExecutor(1, "teacher-store-read")
        self._writer = ThreadPoolExecutor(1, "teacher-store-write")

    @property
    def disk_bytes(self) -> int:
        """Bytes of the file."""
        return self._used["disk"]

    def load(self, start: int, stop: int) -> TeacherState:
        """The states of a chunk, in a buffer that is the caller's until ``save``."""
        place = self._places[start, stop]
        if place.offset is None:
            assert place.held is not None
            return place.held.state
        self.prefetch(start, stop)
        assert place.reading is not None
        place.held, place.reading = place.reading.result(), None
        return place.held.state

    def save(self, start: int, stop: int, state: TeacherState) -> None:
        """Put a chunk back; returns before it is written."""
        place = self._place(start, stop, state)
        buffer = place.held if place.held is not None else self._buffer(place.layout)
        buffer.take(state)
        if place.offset is None:
            place.held = buffer
            return
        place.held = None
        self._settle(place)
        self._room_to_write.acquire()
        place.writing = self._writer.submit(self._write, place, buffer)

    def unload(self, start: int, stop: int) -> None:
        """Give a chunk back that was only read."""
        place = self._places[start, stop]
        if place.offset is not None and place.held is not None:
            with self._lock:
                self._free[place.layout].append(place.held)
            place.held = None

    def prefetch(self, start: int, stop: int) -> None:
        """Begin to read a chunk."""
        place = self._places[start, stop]
        if place.offset is not None and place.held is None and place.reading is None:
            place.reading = self._reader.submit(self._read, place)

    def flush(self) -> None:
        """Wait for every write."""
        for place in self._places.values():
            self._settle(place)

    def close(self) -> None:
        """Remove the file."""
        for pool in (self._reader, self._writer):
            pool.shutdown(cancel_futures=True)
        self._places.clear()
        self._free.clear()
        self._file.close()

    def _place(self, start: int, stop: int, state: TeacherState) -> _Place:
        """The chunk's place, made the first time: in memory while there is room."""
        with self._lock:
            if (start, stop) not in self._places:
                layout = Layout.of(state)
                where = "memory"
                if self._used["memory"] + layout.num_bytes > self._resident_bytes:
                    where = "disk"
                offset = self._used["disk"] if where == "disk" else None
                self._used[where] += layout.num_bytes
                self._places[start, stop] = _Place(layout, offset)
            return self._places[start, stop]

    def _buffer(self, layout: Layout) -> Buffer:
        with self._lock:
            if self._free.setdefault(layout, []):
                return self._free[layout].pop()
        return Buffer(layout)

    def _read(self, place: _Place) -> Buffer:
        self._settle(place)
        buffer = self._buffer(place.layout)
        assert place.offset is not None
        with self._explained("read"):
            _whole(os.preadv, self._file.fileno(), buffer.memory, place.offset)
        return buffer

    def _write(self, place: _Place, buffer: Buffer) -> None:
        assert place.offset is not None
        try:
            with self._explained("written"):
                _whole(os.pwritev, self._file.fileno(), buffer.memory, place.offset)
        finally:
            self._room_to_write.release()
            with self._lock:
                self._free[place.layout].append(buffer)

    def _settle(self, place: _Place) -> None:
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
