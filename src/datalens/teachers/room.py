"""How much memory teachers may take, and how many are handled at once."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import torch

from datalens.errors import ConfigError
from datalens.teachers.disk_store import DiskStore
from datalens.teachers.family import TeacherState
from datalens.teachers.store_kind import StoreKind

SMALL_CHUNK, USUAL_CHUNK = 20, 40
LARGE_STATE = 1_000_000
"""Bytes of one teacher's state past which a chunk is small: reading one ahead and writing one behind add up."""

SHARE_FOR_STATES = 0.65
"""Of the free memory: the rest is for records, votes, chunks on their way to and from disk, and others."""

GPU_SHARE = 0.6
WORK_OF_STATE = 4
"""Memory that a chunk works in, in states: gradients, activations and patches of the paper's networks take 3."""

CONTROL_GROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file"),
    (
        Path("/sys/fs/cgroup/memory"),
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)
"""Where a container's limit stands: folder, files of limit and use, and what the use holds that can be let go."""


def state_bytes(state: TeacherState) -> int:
    """Bytes of a state.

    >>> state_bytes({"w": torch.zeros(2, 5)})
    40
    """
    return sum(value.numel() * value.element_size() for value in state.values())


def free_memory() -> int | None:
    """Bytes that this process may still take, its container's limit minded; None where the system does not tell."""
    free = [_available(), _below_limit()]
    told = [value for value in free if value is not None]
    return min(told) if told else None


def memory_for_states(free: int | None) -> int | None:
    """Bytes that teachers' states may take; None where there is no knowing.

    >>> memory_for_states(10_000)
    6500
    """
    return None if free is None else int(SHARE_FOR_STATES * free)


def make_store(
    kind: StoreKind,
    all_states: int,
    memory: float | None,
    device: torch.device,
    folder: Path | None,
    sharers: int = 1,
) -> DiskStore | None:
    """The store for teachers' states; None for the ensemble's own, in memory.

    Args:
        kind: what was asked for; ``auto`` takes the disk where the states do not fit into memory.
        all_states: bytes of the states of this process's teachers.
        memory: GiB that they may take; None for :data:`SHARE_FOR_STATES` of what is free with ``auto``, for
            nothing with ``disk``.
        device: where the teachers compute; on a GPU states stay in its memory unless the disk is asked for.
        folder: where the file goes; None for the system's temporary folder.
        sharers: processes on this machine that share the memory evenly.

    Raises:
        ConfigError: the disk with a GPU.
    """
    if kind is StoreKind.DISK and device.type != "cpu":
        raise ConfigError(f"teacher_store is disk with device {device}: only for the cpu; use memory")
    if kind is StoreKind.MEMORY or device.type != "cpu":
        return None
    resident = None if memory is None else int(memory * 2**30 / sharers)
    if kind is StoreKind.AUTO:
        if resident is None and (all_may_take := memory_for_states(free_memory())) is not None:
            resident = all_may_take // sharers
        if resident is None or all_states <= resident:
            return None
    return DiskStore(folder or Path(tempfile.gettempdir()), resident or 0)


def chunk_size_for(
    a_state: int, a_vote: int, num_teachers: int, device: torch.device, multiple: int = SMALL_CHUNK
) -> int:
    """Teachers handled at once: as many as fit on a GPU of CUDA, few on a CPU, whose caches are small, and elsewhere.

    Args:
        a_state: bytes of one teacher's state.
        a_vote: bytes of one teacher's gradients for all images of a step.
        num_teachers: no more than that.
        device: where they compute.
        multiple: on a GPU the chunk is a multiple of this.

    >>> chunk_size_for(2_000, 47_040, 4000, torch.device("cpu"))
    40
    >>> chunk_size_for(6_667_860, 47_040, 4000, torch.device("cpu"))
    20
    """
    if device.type != "cuda":
        return SMALL_CHUNK if a_state > LARGE_STATE else USUAL_CHUNK
    free, _ = torch.cuda.mem_get_info(device)
    room = GPU_SHARE * free - a_state * num_teachers
    fits = int(room / (WORK_OF_STATE * a_state + 8 * a_vote))
    return max(multiple, min(fits, num_teachers) // multiple * multiple)


def _available() -> int | None:
    """What the system could hand out without swapping."""
    kibibytes = _told(Path("/proc/meminfo"), "MemAvailable:", -1)
    return _physical() if kibibytes < 0 else kibibytes * 1024


def _physical() -> int | None:
    """Half of what is built in, where the system tells no more."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return None


def _below_limit() -> int | None:
    """What the container has left (control groups, version 2 or 1); None without a limit.

    Copies of files that nobody has used for a while count as used there, but give way to whoever needs the room.
    """
    for folder, limit, used, idle in CONTROL_GROUPS:
        try:
            left = int((folder / limit).read_text()) - int((folder / used).read_text())
        except (OSError, ValueError):  # no such file, or "max"
            continue
        return max(0, left + _told(folder / "memory.stat", idle, 0))
    return None


def _told(path: Path, name: str, otherwise: int) -> int:
    """The number beside a name in a file of the system's."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return otherwise
    return next((int(words[1]) for words in map(str.split, lines) if words[:1] == [name]), otherwise)
