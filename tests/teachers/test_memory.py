"""Memory for votes grows with the chunk and the image, never with the number of teachers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from datalens.randomness import Streams
from datalens.teachers.ensemble import TeacherEnsemble
from datalens.teachers.family import Fakes
from datalens.teachers.kernel import KernelTeachers
from datalens.teachers.shards import RecordShards

CLASSES, SHARD, IMAGES = 2, 2, 4
SOURCE = Path(__file__).resolve().parents[2] / "src"


class LargestTensor(TorchDispatchMode):
    """Counts the bytes of the largest tensor that any operation makes."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else [result]:
            if isinstance(value, torch.Tensor):
                self.largest = max(self.largest, value.numel() * value.element_size())
        return result


def ask(num_teachers: int, chunk_size: int, side: int, cap: int | None) -> int:
    """Bytes of the largest tensor of a step, past the records and what each teacher keeps."""
    records = num_teachers * SHARD
    images = torch.randint(256, (records, 1, side, side), dtype=torch.uint8)
    slots = torch.arange(records).view(num_teachers, SHARD)
    ensemble = TeacherEnsemble(
        KernelTeachers(CLASSES, 1e3),
        RecordShards(images, torch.arange(records) % CLASSES, slots),
        Streams.from_insecure_seed(0, "private"),
        chunk_size,
    )
    fakes = Fakes(torch.rand(IMAGES, 1, side, side), torch.arange(IMAGES) % CLASSES)
    with LargestTensor() as seen:
        ensemble.tally(fakes, 0, 1, 8, 1e-5, cap)
    return seen.largest


@pytest.mark.parametrize("cap", [None, 2])
def test_the_largest_tensor_of_a_step_grows_with_chunk_and_image_alone(cap: int | None) -> None:
    few = ask(200, 40, 8, cap)
    assert ask(2000, 40, 8, cap) == few
    assert ask(200, 80, 8, cap) > 1.5 * few
    assert ask(200, 40, 16, cap) > 3 * few


def peak_growth(num_teachers: int) -> int:
    """Bytes by which a step raises the peak resident set of a fresh process, after a step of one chunk."""
    program = f"""
import json, resource, sys
import torch
from datalens.randomness import Streams
from datalens.teachers.ensemble import TeacherEnsemble
from datalens.teachers.family import Fakes
from datalens.teachers.kernel import KernelTeachers
from datalens.teachers.shards import RecordShards

def ensemble(count):
    images = torch.zeros(count, 1, 28, 28, dtype=torch.uint8)
    slots = torch.arange(count).view(count, 1)
    shards = RecordShards(images, torch.zeros(count, dtype=torch.int64), slots)
    return TeacherEnsemble(KernelTeachers(1, 1e3), shards, Streams.from_insecure_seed(0, "private"), 40)

def peak():
    value = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return value if sys.platform == "darwin" else value * 1024

torch.set_num_threads(1)
fakes = Fakes(torch.rand(15, 1, 28, 28), torch.zeros(15, dtype=torch.int64))
few, many = ensemble(80), ensemble({num_teachers})
few.tally(fakes, 0, 1, 50, 1e-5)
before = peak()
many.tally(fakes, 0, 1, 50, 1e-5)
print(json.dumps(peak() - before))
"""
    answer = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    return json.loads(answer.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="the standard library tells no peak there")
def test_the_peak_of_the_process_does_not_grow_with_teachers() -> None:
    """2000 teachers' votes on these images would be 23 MB, their gradients 94 MB; a chunk's are 2 MB."""
    assert peak_growth(2000) < 12e6


COLOUR_SETS = """
import hashlib, resource, sys
import numpy as np
import torch
from datalens.randomness import Streams
from datalens.teachers.ensemble import TeacherEnsemble
from datalens.teachers.family import Fakes
from datalens.teachers.kernel import KernelTeachers
from datalens.teachers.shards import RecordShards

class Near(KernelTeachers):
    def input_gradient(self, state, shards, fakes):
        return shards.images_TRCHW.flatten(2)[:, :1] - fakes.images_BCHW.flatten(1)

chunk, side, batch, limit = (int(word) for word in sys.argv[1:])
torch.set_num_threads(1)
if limit:
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
count = 4000
images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (count, 3, side, side), dtype=np.uint8))
shards = RecordShards(images, torch.zeros(count, dtype=torch.int64), torch.arange(count).view(count, 1))
rng = torch.Generator().manual_seed(0)
fakes = Fakes(torch.rand(batch, 3, side, side, generator=rng), torch.zeros(batch, dtype=torch.int64))
teachers = TeacherEnsemble(Near(1, 1e3), shards, Streams.from_insecure_seed(0, "private"), chunk)
tally_BD = teachers.tally(fakes, 0, 1, 50, 1e-5).tally_BD
print(hashlib.sha256(tally_BD.numpy().tobytes()).hexdigest(), int(tally_BD.abs().sum()) > 0)
"""


def votes_of_4000(chunk: int, side: int, batch: int, limit: int = 0) -> str:
    """SHA-256 of 4000 teachers' votes on colour images, from a process that may take ``limit`` bytes."""
    answer = subprocess.run(
        [sys.executable, "-c", COLOUR_SETS, *(str(number) for number in (chunk, side, batch, limit))],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert answer.returncode == 0, answer.stderr[-500:]
    digest, some = answer.stdout.split()
    assert some == "True"
    return digest


def test_r41_votes_are_the_same_for_groups_of_1_50_and_4000_teachers() -> None:
    assert len({votes_of_4000(chunk, 5, 2) for chunk in (1, 50, 4000)}) == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit counts what a process maps only there")
def test_r41_4000_teachers_of_64_by_64_colour_images_fit_into_2_gb() -> None:
    """All gradients for 30 images would be 5.9 GB."""
    assert votes_of_4000(50, 64, 30, 2 * 2**30)
