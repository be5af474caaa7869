"""Teachers on disk are the teachers in memory, and a disk that fails says so."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import torch
from reference import teacher_states

from datalens.errors import CheckpointError, ConfigError
from datalens.randomness import Streams
from datalens.teachers import room
from datalens.teachers.disk_store import WRITES_UNDER_WAY, Buffer, DiskStore, Layout
from datalens.teachers.ensemble import TeacherEnsemble
from datalens.teachers.family import Fakes
from datalens.teachers.paper import PaperTeachers
from datalens.teachers.room import chunk_size_for, make_store, memory_for_states
from datalens.teachers.shards import RecordShards
from datalens.teachers.store import TeacherStore
from datalens.teachers.store_kind import StoreKind

TEACHERS, SLOTS, CHUNK = 17, 2, 4
FAMILY = PaperTeachers((1, 8, 8), 3, channels=4, hidden_units=8)
CPU = torch.device("cpu")


def ensemble(store: TeacherStore | None) -> TeacherEnsemble:
    rng = torch.Generator().manual_seed(1)
    images = torch.randint(256, (TEACHERS * SLOTS, 1, 8, 8), generator=rng, dtype=torch.uint8)
    labels = torch.randint(3, (TEACHERS * SLOTS,), generator=rng)
    slots = torch.arange(TEACHERS * SLOTS).view(TEACHERS, SLOTS)
    streams = Streams.from_insecure_seed(0, "private")
    return TeacherEnsemble(FAMILY, RecordShards(images, labels, slots), streams, CHUNK, store=store)


def tallies(teachers: TeacherEnsemble, steps: int = 3) -> list[torch.Tensor]:
    found = []
    for step in range(steps):
        rng = torch.Generator().manual_seed(step)
        fakes = Fakes(torch.rand(5, 1, 8, 8, generator=rng), torch.arange(5) % 3)
        found.append(teachers.tally(fakes, step, 2, 16, 1e-5).tally_BD)
    return found


def bytes_of_a_chunk() -> int:
    return 4 * room.state_bytes(FAMILY.init(1, torch.Generator(), CPU))


@pytest.mark.parametrize("chunks_in_memory", [0, 2, 100])
@pytest.mark.parametrize("threads", [1, 2])
def test_votes_and_states_are_those_of_memory(tmp_path: Path, chunks_in_memory: int, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        memory = ensemble(None)
        store = DiskStore(tmp_path, int(1.5 * bytes_of_a_chunk() * chunks_in_memory))
        disk = ensemble(store)
        for one, two in zip(tallies(memory), tallies(disk), strict=True):
            assert torch.equal(one, two)
        states = teacher_states(disk)
        for name, value in teacher_states(memory).items():
            assert torch.equal(value, states[name]), name
        assert (store.disk_bytes == 0) == (chunks_in_memory == 100)
        assert torch.equal(tallies(disk, 1)[0], tallies(memory, 1)[0])  # reading all states has changed none
        disk.close()
    finally:
        torch.set_num_threads(before)


def test_states_saved_from_one_store_go_on_in_another(tmp_path: Path) -> None:
    memory, disk = ensemble(None), ensemble(DiskStore(tmp_path))
    tallies(memory)
    disk.load_parts(memory.parts())
    assert all(torch.equal(one, two) for one, two in zip(tallies(memory), tallies(disk), strict=True))
    disk.close()


def test_the_file_has_no_name_and_goes_with_the_store(tmp_path: Path) -> None:
    """A crash leaves nobody's teachers behind."""
    store = DiskStore(tmp_path)
    tallies(ensemble(store), 1)
    assert store.disk_bytes > 0
    assert list(tmp_path.iterdir()) == []
    store.close()


def test_a_slow_disk_fills_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Buffer] = []
    real = Buffer.__init__

    def counted(self: Buffer, layout: Layout) -> None:
        made.append(self)
        real(self, layout)

    monkeypatch.setattr(Buffer, "__init__", counted)
    store = DiskStore(tmp_path)
    state = {"w": torch.zeros(1, 100)}
    for chunk in range(200):
        store.save(chunk, chunk + 1, state)
    for _ in range(3):
        for chunk in range(200):
            store.prefetch((chunk + 1) % 200, (chunk + 1) % 200 + 1)
            store.save(chunk, chunk + 1, store.load(chunk, chunk + 1))
    store.flush()
    assert len(made) <= WRITES_UNDER_WAY + 4
    store.close()


@pytest.mark.parametrize("call", ["pwritev", "preadv"])
def test_a_disk_that_fails_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    teachers = ensemble(DiskStore(tmp_path))
    tallies(teachers, 1)

    def fails(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fails)
    with pytest.raises(
        CheckpointError, match=r"cannot be (written|read) \(No space left on device\); make room"
    ):
        tallies(teachers, 3)
    teachers.close()


def test_a_write_that_the_system_cuts_short_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, read = os.pwritev, os.preadv
    monkeypatch.setattr(os, "pwritev", lambda file, parts, at: write(file, [parts[0][:1000]], at))
    monkeypatch.setattr(os, "preadv", lambda file, parts, at: read(file, [parts[0][:1000]], at))
    teachers = ensemble(DiskStore(tmp_path))
    for one, two in zip(tallies(ensemble(None)), tallies(teachers), strict=True):
        assert torch.equal(one, two)
    teachers.close()


def test_the_store_follows_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_memory", lambda: 1000)
    assert memory_for_states(1000) == 650
    assert make_store(StoreKind.AUTO, 650, None, CPU, tmp_path) is None
    tight = make_store(StoreKind.AUTO, 651, None, CPU, tmp_path)
    assert isinstance(tight, DiskStore)
    assert tight._resident_bytes == 650
    assert make_store(StoreKind.MEMORY, 10**12, None, CPU, tmp_path) is None
    asked = make_store(StoreKind.DISK, 1, None, CPU, tmp_path)
    assert isinstance(asked, DiskStore)
    assert asked._resident_bytes == 0
    given = make_store(StoreKind.AUTO, 2**30 + 1, 1.0, CPU, None)
    assert isinstance(given, DiskStore)
    assert given._resident_bytes == 2**30
    monkeypatch.setattr(room, "free_memory", lambda: None)
    assert make_store(StoreKind.AUTO, 10**12, None, CPU, tmp_path) is None
    for store in (tight, asked, given):
        store.close()
    with pytest.raises(ConfigError, match="only for the cpu"):
        make_store(StoreKind.DISK, 1, None, torch.device("cuda"), tmp_path)


def test_a_containers_limit_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:      5 kB\n",
        "/sys/fs/cgroup/memory.max": "4000",
        "/sys/fs/cgroup/memory.current": "1000",
    }

    def read_text(path: Path) -> str:
        if str(path) not in files:
            raise FileNotFoundError(str(path))
        return files[str(path)]

    monkeypatch.setattr(Path, "read_text", read_text)
    assert room.free_memory() == 3000
    files["/sys/fs/cgroup/memory.stat"] = "anon 300\ninactive_file 600\nactive_file 50\n"
    assert room.free_memory() == 3600
    files["/sys/fs/cgroup/memory.max"] = "max"
    assert room.free_memory() == 5 * 1024
    files["/sys/fs/cgroup/memory.max"] = "10000000"
    assert room.free_memory() == 5 * 1024


def test_an_older_kind_of_container_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "memory.limit_in_bytes": "4000",
        "memory.usage_in_bytes": "5000",
        "memory.stat": "inactive_file 7\ntotal_inactive_file 1600\n",
    }

    def read_text(path: Path) -> str:
        if path.parent != Path("/sys/fs/cgroup/memory"):
            raise FileNotFoundError(str(path))
        return files[path.name]

    monkeypatch.setattr(Path, "read_text", read_text)
    assert room.free_memory() == 600
    files["memory.usage_in_bytes"] = "9000"
    assert room.free_memory() == 0


@pytest.mark.parametrize("device", ["mps", "xpu"])
def test_chunks_on_other_devices_ask_no_gpu_of_cuda(device: str) -> None:
    assert chunk_size_for(10, 10, 4000, torch.device(device)) == chunk_size_for(10, 10, 4000, CPU)


def test_chunks_are_small_where_states_are_large() -> None:
    assert chunk_size_for(10, 10, 4000, CPU) == 2 * chunk_size_for(10**7, 10, 4000, CPU) == 40
