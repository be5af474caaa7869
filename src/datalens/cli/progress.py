"""How far a command is: live on a terminal, nothing elsewhere or where quiet."""

from __future__ import annotations

import math
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datalens.training.progress import Progress


class TrainingProgress:
    """Shows steps, epsilon spent and remaining, and the time left, on standard error."""

    def __init__(self, *, quiet: bool) -> None:
        self._live = not quiet and sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None
        self.last: Progress | None = None

    def __enter__(self) -> TrainingProgress:
        if self._live:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("step"),
                MofNCompleteColumn(),
                BarColumn(),
                TextColumn("{task.description}"),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task("preparing", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell_public_init(self, done: int, total: int) -> None:
        """Take how far the learning from public images is, before the first step."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, description="on public images")

    def tell(self, progress: Progress) -> None:
        """Take the state after a step."""
        self.last = progress
        if self._bar is not None:
            text = epsilon_text(progress)
            self._bar.update(self._task, completed=progress.step, total=progress.num_steps, description=text)


def epsilon_text(progress: Progress) -> str:
    """Epsilon spent and remaining, as text."""
    if not math.isfinite(progress.epsilon):
        return "no guarantee"
    left = max(0.0, progress.epsilon - progress.epsilon_spent)
    return f"epsilon {progress.epsilon_spent:.4g} spent, {left:.4g} left"
