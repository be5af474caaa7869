"""How far a training is: a live bar on a terminal, lines where they are asked for, else nothing."""

from __future__ import annotations

import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from datalens.training.progress import Progress

LINE_EVERY = 10.0
"""Seconds between two lines about the progress."""
_STEPS_SEEN = 50
_LAST_BIT = 1e-6
"""Share of epsilon that a plan leaves over by rounding alone."""
_POOR_TERMINALS = ("dumb", "unknown")


def is_live(stream: TextIO) -> bool:
    """Whether a stream is a terminal on which lines can be drawn again."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in _POOR_TERMINALS


class Pace:
    """How many steps a second are taken, by the last of them, and how long the others will take.

    Args:
        clock: seconds since whenever.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque(maxlen=_STEPS_SEEN)

    def note(self, step: int) -> None:
        """So many steps are done now."""
        self._seen.append((self._clock(), step))

    @property
    def per_second(self) -> float | None:
        """Steps a second, or None while too few were seen."""
        if len(self._seen) < 2:
            return None
        (since, first), (now, last) = self._seen[0], self._seen[-1]
        return (last - first) / (now - since) if now > since and last > first else None

    def in_words(self, steps_left: int) -> str:
        """Such as ``12.5 steps/s, 0:01:20 left``; empty while it is not known."""
        rate = self.per_second
        if rate is None:
            return ""
        said = f"{rate:.3g} steps/s" if rate >= 1 else f"{1 / rate:.3g} s/step"
        left = timedelta(seconds=math.ceil(steps_left / rate))
        return f"{said}, {left} left" if steps_left > 0 else said


class TrainingProgress:
    """Shows steps, epsilon spent and remaining, pace and the time left, on standard error.

    On a terminal as one line that is drawn again. Elsewhere nothing, but a line every ten seconds where ``verbose``,
    and on a terminal that cannot draw a line again.

    Args:
        quiet: show nothing.
        verbose: lines where there is no live terminal.
    """

    def __init__(self, *, quiet: bool, verbose: bool = False) -> None:
        self._live = not quiet and is_live(sys.stderr)
        self._says_lines = not quiet and not self._live and (verbose or sys.stderr.isatty())
        self._bar: Any = None
        self._task: Any = None
        self._pace = Pace()
        self._line_at = -math.inf
        self.last: Progress | None = None

    def __enter__(self) -> TrainingProgress:
        if self._live:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("step"),
                MofNCompleteColumn(),
                BarColumn(bar_width=20),
                TextColumn("{task.description}"),
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
        self._show(done, total, "on public images")

    def tell(self, progress: Progress) -> None:
        """Take the state after a step."""
        self.last = progress
        self._pace.note(progress.step)
        pace = self._pace.in_words(progress.num_steps - progress.step)
        self._show(progress.step, progress.num_steps, ", ".join(filter(None, [epsilon_text(progress), pace])))

    def _show(self, done: int, total: int, text: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, description=text)
        elif self._says_lines and (done == total or time.monotonic() >= self._line_at + LINE_EVERY):
            self._line_at = time.monotonic()
            click.echo(f"step {done} of {total}: {text}", err=True)


def epsilon_text(progress: Progress) -> str:
    """Epsilon spent and remaining, as text."""
    if not math.isfinite(progress.epsilon):
        return "no guarantee"
    left = progress.epsilon - progress.epsilon_spent
    left = left if left > _LAST_BIT * progress.epsilon else 0.0
    return f"epsilon {progress.epsilon_spent:.4g} spent, {left:.4g} left"
