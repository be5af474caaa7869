"""Ctrl-C and a termination request: the step in progress ends, then the run is saved."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import click

from datalens.errors import NotBegunError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Notes the first signal instead of dying of it; a second one interrupts at once.

    Attributes:
        signal_number: the signal that came, or None.

    Args:
        heard: whether to say so; False for all but the first of several processes.
    """

    def __init__(self, *, heard: bool = True) -> None:
        self.signal_number: int | None = None
        self._heard = heard
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """Whether to stop before the next step."""
        return self.signal_number is not None

    @property
    def exit_status(self) -> int:
        """128 plus the signal's number, as shells have it: 130 for Ctrl-C."""
        return 128 + (self.signal_number or signal.SIGINT)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.signal_number is not None:
            raise KeyboardInterrupt(number)
        self.signal_number = number
        if self._heard:
            click.echo("stopping after this step; once more to stop at once", err=True)


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """A termination request interrupts as Ctrl-C does, so that what is half done can be cleared away."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def how_to_resume(source: str, run: Path, data_words: Sequence[str], command: str = "train") -> str:
    """The command that goes on with a run of ``datalens train`` or of another command.

    >>> how_to_resume("scans", Path("runs/a"), ["--size", "32"])
    'resume with: datalens train scans --resume runs/a --size 32'
    """
    return f"resume with: {shlex.join(['datalens', command, source, '--resume', str(run), *data_words])}"


@contextmanager
def interruption_told(
    source: str, run: Path, data_words: Sequence[str], command: str = "train"
) -> Iterator[None]:
    """A training that a second signal interrupts says what is left of it; status 128 plus the signal's number."""
    try:
        yield
    except (KeyboardInterrupt, NotBegunError) as error:
        from datalens.training.run_folder import RunFolder

        known = RunFolder.holds_run(run)
        remedy = how_to_resume(source, run, data_words, command) if known else "nothing was kept"
        click.echo(f"error: interrupted; {remedy}", err=True)
        number = error.args[0] if error.args and isinstance(error.args[0], int) else signal.SIGINT
        raise click.exceptions.Exit(128 + number) from None
