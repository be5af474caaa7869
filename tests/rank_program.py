"""What every process of a test under torchrun does: small runs, one after the other, on as many ranks as there are.

    torchrun --nproc-per-node R rank_program.py FOLDER

Also called without torchrun, as the single process that all others are compared with.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from small_runs import small_config, small_data, stop_after
from torch import Tensor

from datalens import DataLens
from datalens.audit.subject import Puppets
from datalens.data.images import LabelledImages
from datalens.distributed.ranks import Ranks
from datalens.errors import RunError
from datalens.mechanisms.topagg import TopAgg
from datalens.privacy.events import GaussianEvent
from datalens.teachers.family import Fakes, Shards, TeacherState
from datalens.teachers.shards import RecordShards
from datalens.training import assembly
from datalens.training.config import Config

KINDS = ("paper", "matching")
CHUNK = 3
SILENT_TEACHERS, SILENT_STEPS = 8, 20


def config_of(kind: str) -> Config:
    """Ten teachers in four chunks on an insecure seed; eight steps."""
    return small_config(privacy__insecure_seed=7, performance__chunk_size=CHUNK, teachers__kind=kind)


def asked_on_the_last(ranks: Ranks, steps: int) -> Callable[[], bool]:
    """A ``stop`` that says yes on the last rank alone; the first one asks before a step, others after one."""
    if ranks.rank != ranks.world_size - 1:
        return lambda: False
    return stop_after(steps if ranks.is_first else steps - 1)


def train_all(root: Path, ranks: Ranks) -> None:
    """A whole run of each kind, and one that is stopped after four steps."""
    for kind in KINDS:
        whole = DataLens(config_of(kind)).fit(small_data(), out=root / kind, ranks=ranks)
        stop = asked_on_the_last(ranks, 4)
        stopped = DataLens(config_of(kind)).fit(
            small_data(), out=root / f"{kind}-stopped", ranks=ranks, stop=stop
        )
        assert (whole.was_stopped, stopped.was_stopped) == (False, True)


def resume_all(root: Path, ranks: Ranks) -> None:
    """Go on with every run that lies in a folder."""
    for run in sorted(root.iterdir()):
        DataLens.resume(run, small_data(), ranks=ranks)


def refuse_memory(ranks: Ranks) -> str:
    """What a run of several processes without a folder is told."""
    try:
        DataLens(config_of("kernel")).fit(small_data(), ranks=ranks)
    except RunError as error:
        return str(error)
    return ""


def silent_teachers(root: Path, ranks: Ranks) -> list[dict[str, Any]]:
    """R09: eight teachers without a vote. What each rank saw, and on the first one the noise that was applied."""
    noise: list[Tensor] = []
    images: list[str] = []
    records: set[int] = set()
    with _watched(noise, images, records):
        config = small_config(
            privacy__epsilon=100.0,
            privacy__num_records=40,
            voting__num_teachers=SILENT_TEACHERS,
            voting__num_steps=SILENT_STEPS,
            voting__batch_size=16,
            performance__chunk_size=2,
        )
        model = DataLens(config).fit(_numbered(40), out=root / "silent", ranks=ranks)
    paid = model.ledger.events()[0]
    assert isinstance(paid, GaussianEvent)
    mine = {
        "deviation": float(torch.cat(noise).double().std()) if noise else None,
        "claimed": paid.noise_stddev,
        "draws": sum(one.numel() for one in noise),
        "images": images,
        "records": sorted(records),
        "epsilon": model.epsilon(1e-5),
        "weights": hashlib.sha256(b"".join(_bytes_of(model))).hexdigest(),
    }
    return [json.loads(text) for text in ranks.gather(json.dumps(mine))]


def fetch_tiny(root: Path) -> list[str]:
    """R63: a published set fetched, and then again."""
    from dataclasses import replace

    from tiny_set import TINY

    from datalens.data.fetch import fetch_published

    tiny = replace(TINY, torchvision_class=None)
    return [fetch_published(tiny, root / "data").way for _ in range(2)]


class _Silent(Puppets):
    """Teachers whose gradients are all zero, and what they were shown."""

    def __init__(self, shape: tuple[int, ...], images: list[str]) -> None:
        super().__init__(torch.zeros(shape))
        self._images = images

    def input_gradient(self, state: TeacherState, shards: Shards, fakes: Fakes) -> Tensor:
        digest = hashlib.sha256(fakes.images_BCHW.numpy().tobytes()).hexdigest()
        if digest not in self._images:
            self._images.append(digest)
        return super().input_gradient(state, shards, fakes)


@contextmanager
def _watched(noise: list[Tensor], images: list[str], records: set[int]) -> Iterator[None]:
    drawn, chunk = TopAgg.noisy_tally, RecordShards.chunk

    def noisy_tally(mechanism: TopAgg, tally_BD: Tensor) -> Tensor:
        noisy_BD = drawn(mechanism, tally_BD)
        assert not tally_BD.any()
        noise.append(noisy_BD.flatten())
        return noisy_BD

    def spy(shards: RecordShards, start: int, stop: int, device: torch.device) -> Shards:
        found = chunk(shards, start, stop, device)
        pixels = found.images_TRCHW[found.present_TR][:, 0, 0, 0]
        records.update((pixels * 255).round().int().tolist())
        return found

    def silent(kind: object, settings: object) -> _Silent:
        return _Silent((SILENT_TEACHERS, 16, 64), images)

    with (
        patch.object(TopAgg, "noisy_tally", noisy_tally),
        patch.object(RecordShards, "chunk", spy),
        patch.object(assembly, "make_family", silent),
    ):
        yield


def _numbered(count: int) -> LabelledImages:
    images = np.zeros((count, 1, 8, 8), np.uint8)
    images[:, 0, 0, 0] = np.arange(count)
    return LabelledImages(images, np.arange(count) % 2, ("a", "b"), "numbered", public=False)


def _bytes_of(model: DataLens) -> list[bytes]:
    return [value.numpy().tobytes() for _, value in sorted(model.generator.state_dict().items())]


def main(folder: Path) -> None:
    """All of it; what came out goes to ``answer.json``."""
    torch.set_num_threads(1)
    with Ranks.join() as ranks:
        mine = folder / str(ranks.world_size)
        train_all(mine / "begun", ranks)
        answer = {"silent": silent_teachers(mine, ranks), "refused": ""}
        if ranks.world_size > 1:
            answer["refused"] = refuse_memory(ranks)
            resume_all(mine / "to-resume", ranks)
            ways = ranks.gather(json.dumps(fetch_tiny(mine)))
            answer["fetched"] = [json.loads(way) for way in ways]
        if ranks.is_first:
            (mine / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
