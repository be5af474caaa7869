"""Where a round's files lie, and the command lines that make and resume its run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from soak.plan import CLASSES, EPSILON, RECORDS, Plan, as_toml

SOURCES = Path(__file__).parents[2] / "src"


class Place:
    """One folder a round: the data, the settings, the run, and temporary files and cache of its own.

    Args:
        folder: a new one.
        plan: of the round.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        self.run, self.twin = folder / "run", folder / "twin"
        self.temporary, self.cache = folder / "tmp", folder / "cache"
        self.data, self.other_data = folder / "own.npz", folder / "other.npz"
        self.settings, self.other_settings = folder / "settings.toml", folder / "other.toml"
        for path in (folder, self.temporary, self.cache):
            path.mkdir(parents=True)
        self.settings.write_text(as_toml(plan.settings))
        self.other_settings.write_text(self.settings.read_text() + "# another file\n")
        self._draw_data()

    def _draw_data(self) -> None:
        from datalens.data import load

        shapes = load("shapes")
        images, labels = shapes.images[:RECORDS].copy(), shapes.labels[:RECORDS]
        np.savez(self.data, x=images, y=labels)
        images[7] = 255 - images[7]
        np.savez(self.other_data, x=images, y=labels)

    @property
    def environment(self) -> dict[str, str]:
        """Of every process of the round, this one included while it trains."""
        return {
            "PYTHONPATH": str(SOURCES),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "TMPDIR": str(self.temporary),
            "XDG_CACHE_HOME": str(self.cache),
            "TORCHINDUCTOR_CACHE_DIR": str(
                self.cache / "torch"
            ),  # PyTorch makes one in TMPDIR of its own accord
        }

    @property
    def resume_source(self) -> list[str]:
        """The data as a resumed run is given them."""
        return ["shapes"] if self.plan.by_name else [str(self.data), "--classes", str(CLASSES)]

    def train(self, run: Path | None = None) -> list[str]:
        """The words that begin the run."""
        plan = self.plan
        words = ["train", *self.resume_source, "--out", str(run or self.run), "--quiet"]
        words += ["--config", str(self.settings), "--epsilon", f"{EPSILON:g}"]
        words += ["--recipe", "custom"] if plan.method == "datalens" else ["--method", plan.method]
        words += [] if plan.by_name else ["--num-records", str(RECORDS)]
        return words if plan.insecure_seed is None else [*words, "--insecure-seed", str(plan.insecure_seed)]

    def resume(self, changes: Sequence[str] = ()) -> list[str]:
        """The words that go on with it."""
        return ["train", *self.resume_source, "--resume", str(self.run), "--quiet", *changes]

    def resume_with_other_data(self) -> list[str]:
        """The same with one other record, or with other data altogether."""
        words = ["train", str(self.other_data), "--classes", str(CLASSES)]
        return [*words, "--resume", str(self.run), "--quiet"]


def command(words: Sequence[str]) -> list[str]:
    """What the operating system is asked to start."""
    return [sys.executable, "-m", "datalens", *words]


def with_environment(changes: dict[str, str]) -> dict[str, str]:
    """This process's environment with changes, and unmeasured: a measurement's file would find the disk full, too."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    return {**mine, **changes}
