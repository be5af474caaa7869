"""Runs of a few seconds for tests of training, resuming and verifying."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from datalens import DataLens
from datalens.data.images import LabelledImages
from datalens.training.config import Config, parse_config
from datalens.training.heads import heads_file
from datalens.training.session import Session

NUM_STEPS = 8
TOML = """
[voting]
num_teachers = 10
top_k = 5
batch_size = 3
num_steps = 3
[student]
latent_dim = 4
hidden_units = 8
channels = 4
[performance]
checkpoint_every = 2
"""
"""Ten teachers and three steps for the command line, as a file of settings."""


def small_config(**changes: Any) -> Config:
    """Ten teachers, eight steps of three images of 8x8, a checkpoint every third step."""
    config = parse_config(
        {
            "privacy": {"epsilon": 2.0, "num_records": 60},
            "voting": {"num_teachers": 10, "top_k": 5, "batch_size": 3, "num_steps": NUM_STEPS},
            "teachers": {"kind": "kernel", "steps": 1, "first_steps": 1},
            "student": {"latent_dim": 4, "hidden_units": 8, "channels": 4, "weight_average": 0.5},
            "performance": {"checkpoint_every": 3, "chunk_size": 5},
        }
    )
    return config.replace(**changes)


def config_to_audit(**changes: Any) -> Config:
    """The defaults at the smallest size that an audit takes seconds for: ten teachers, three steps."""
    config = parse_config(
        {
            "voting": {"num_teachers": 10, "top_k": 20, "batch_size": 4, "num_steps": 3},
            "student": {"hidden_units": 8, "channels": 4},
        }
    )
    return config.replace(**changes)


def small_data(seed: int = 0, count: int = 60) -> LabelledImages:
    """Private records of two classes."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, 1, 8, 8), dtype=np.uint8)
    labels = np.arange(count) % 2
    return LabelledImages(images, labels.astype(np.int64), ("a", "b"), name="small", public=False)


def stop_after(steps: int):
    """A ``stop`` that lets so many steps pass."""
    asked = iter(range(10**9))
    return lambda: next(asked) >= steps


def train(root: Path | None, *, steps: int | None = None, **changes: Any) -> DataLens:
    """A small run, whole or stopped after ``steps``."""
    stop = (lambda: False) if steps is None else stop_after(steps)
    return DataLens(small_config(**changes)).fit(small_data(), out=root, stop=stop)


def crash_after(root: Path, steps: int, **changes: Any) -> None:
    """A run that dies without a word after ``steps``: nothing is saved or written at its end."""
    session = Session.begin(small_config(**changes), small_data(), root)

    def tell(progress: Any) -> None:
        if progress.step == steps:
            raise _Killed

    try:
        session.run(tell=tell)
    except _Killed:
        session.close()


def resume(root: Path, **changes: Any) -> DataLens:
    """Go on with it."""
    return DataLens.resume(root, small_data(), changes=changes)


def copy(root: Path, target: Path) -> Path:
    """A copy of a run's folder."""
    shutil.copytree(root, target)
    return target


def weights(model: DataLens) -> dict[str, np.ndarray]:
    """The generator's tensors."""
    return {name: tensor.numpy() for name, tensor in model.generator.state_dict().items()}


def same_weights(one: DataLens, other: DataLens) -> bool:
    """Whether two generators are equal bit for bit."""
    mine, theirs = weights(one), weights(other)
    return all(np.array_equal(mine[name], theirs[name]) for name in mine | theirs)


class _Killed(Exception):
    """Stands for a process that is gone."""


def released_alone(whole: Path, root: Path) -> Path:
    """Of a finished run only ``release/``, in a copy, as on another machine that knows nothing of it."""
    shutil.rmtree(copy(whole, root) / "private")
    heads_file().unlink(missing_ok=True)
    return root


def distance_to_real(model: DataLens, real: LabelledImages, count: int = 200) -> float:
    """Mean distance from a drawn image to the nearest real one of its class, pixels in [0, 1]."""
    images, labels = model.sample(count, seed=1)
    found = []
    for number in range(real.num_classes):
        drawn, near = (
            torch.from_numpy(pixels[numbers == number]).flatten(1).float() / 255
            for pixels, numbers in ((images, labels), (real.images, real.labels))
        )
        found.append(torch.cdist(drawn, near).min(1).values.mean().item())
    return float(np.mean(found))
