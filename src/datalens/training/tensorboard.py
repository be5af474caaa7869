"""A training written down for TensorBoard, under the run's ``private/``: scalars, and images that are drawn.

All of it is private. What the writer leaves beside every value is when it was written, and in the name of its file on
which machine: how long a step took may depend on the records, and is no part of any guarantee (``docs/privacy.md``).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from datalens.errors import MissingExtraError
from datalens.training.progress import Progress
from datalens.training.run_folder import RunFolder

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

FOLDER = "tensorboard"
PICTURES = 10
"""How often images are drawn in a whole training."""
OF_EACH_CLASS = 4
MOST_CLASSES = 16


class TensorBoard:
    """Writes after every step of a run: ``tell`` is what ``fit`` tells of its progress.

    Scalars: ``released/epsilon_spent`` and ``released/epsilon_left``, functions of the ledger; where there are
    teachers that vote, ``private/rms_agreement``, ``private/max_agreement`` and ``private/failed_teachers``. Images:
    ten times in a training a row of each class (sixteen at most), from the generator as it is; drawing them changes
    no draw of the training.

    Args:
        run: the folder of the run, which need not exist before its first step.

    Raises:
        MissingExtraError: the package tensorboard is not installed.
    """

    def __init__(self, run: Path) -> None:
        self._kind = writer_kind()
        self._run = run
        self._writer: SummaryWriter | None = None
        self._log = Path()
        self._read = 0

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def tell(self, progress: Progress) -> None:
        """Take the state after a step."""
        step = progress.step
        writer = self._writer = self._writer or self._opened(step)
        if np.isfinite(progress.epsilon):
            writer.add_scalar("released/epsilon_spent", progress.epsilon_spent, step)
            writer.add_scalar(
                "released/epsilon_left", max(0.0, progress.epsilon - progress.epsilon_spent), step
            )
        self._add_diagnostics(writer)
        every = max(1, progress.num_steps // PICTURES)
        if progress.draw is not None and (step % every == 0 or step == progress.num_steps):
            rows_YNCHW = progress.draw(OF_EACH_CLASS)[:MOST_CLASSES]
            writer.add_image("released/samples", _as_one(rows_YNCHW), step)

    def _opened(self, step: int) -> SummaryWriter:
        """The writer, from this step on: what was written of it and later ones before a crash is shown no more."""
        folder = RunFolder.open(self._run)
        place = folder.private / FOLDER
        place.mkdir(mode=0o700, exist_ok=True)
        self._log = folder.diagnostics
        if self._log.is_file():
            before = self._log.read_bytes().splitlines(keepends=True)[:-1]
            self._read = sum(map(len, before))
        return self._kind(str(place), purge_step=step)

    def _add_diagnostics(self, writer: SummaryWriter) -> None:
        """The lines that are new in the run's private log."""
        if not self._log.is_file():
            return
        with self._log.open("rb") as file:
            file.seek(self._read)
            lines = file.readlines()
            self._read = file.tell()
        for line in lines:
            seen: dict[str, Any] = json.loads(line)
            step = int(seen["step"]) + 1
            writer.add_scalar("private/rms_agreement", seen["rms_agreement"], step)
            writer.add_scalar("private/max_agreement", seen["max_agreement"], step)
            writer.add_scalar("private/failed_teachers", len(seen["failed"]), step)


def writer_kind() -> type[SummaryWriter]:
    """PyTorch's writer.

    Raises:
        MissingExtraError: the package that it needs is not installed.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError(
            "--tensorboard: needs the package tensorboard, which is not installed; run: pip install "
            "'datalens-dp[tensorboard]', or leave it out"
        ) from None
    return SummaryWriter


def _as_one(rows_YNCHW: np.ndarray) -> np.ndarray:
    """Rows of images as one image, uint8 [C, Y * H, N * W]."""
    num_rows, num_columns, channels, height, width = rows_YNCHW.shape
    return rows_YNCHW.transpose(2, 0, 3, 1, 4).reshape(channels, num_rows * height, num_columns * width)
