"""Commands of a round: as processes that something happens to at a chosen moment, or within this process."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from soak.place import Place, command, with_environment

PATIENCE = 900.0
"""Seconds after which a command hangs."""
Act = Callable[[subprocess.Popen[str]], None]


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        words: that it was given.
        status: as subprocess has it, -9 for one that was killed; 99 where it hung, 98 where an error escaped from it.
        err: its standard error.
        out: its standard output.
    """

    words: Sequence[str]
    status: int
    err: str
    out: str = ""


@dataclass(frozen=True)
class Moment:
    """When something happens to a process.

    Attributes:
        lines: that its run's ledger has by then.
        delay: seconds after that.
    """

    lines: int
    delay: float

    def come(self, process: subprocess.Popen[str], run: Path) -> None:
        """Wait for it, or for the process's end."""
        give_up = time.monotonic() + PATIENCE
        while process.poll() is None and num_lines(run) < self.lines and time.monotonic() < give_up:
            time.sleep(0.001)
        end = time.monotonic() + self.delay
        while process.poll() is None and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.01))


def num_lines(run: Path) -> int:
    """Lines of the run's ledger, 0 without one."""
    for path in run.glob("release*/ledger.jsonl"):
        with contextlib.suppress(OSError):
            return path.read_bytes().count(b"\n")
    return 0


def start(place: Place, words: Sequence[str], moment: Moment | None = None, act: Act | None = None) -> Ended:
    """Run a command as a process of its own; at the moment ``act`` is done to it."""
    process = subprocess.Popen(
        command(words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place.folder,
        env=with_environment(place.environment),
    )
    if moment is not None and act is not None:
        moment.come(process, place.run)
        with contextlib.suppress(ProcessLookupError):
            act(process)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return Ended(words, 99, f"{err}\nno end after {PATIENCE:g} s", out)
    return Ended(words, process.returncode, err, out)


def within(place: Place, words: Sequence[str]) -> Ended:
    """The same command in this process, whose memory and handles are watched."""
    from datalens.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with at_home(place), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(words)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            status = 98
            traceback.print_exc(file=err)
    return Ended(words, status, err.getvalue(), out.getvalue())


@contextlib.contextmanager
def at_home(place: Place) -> Iterator[None]:
    """This process with the round's temporary folder and cache."""
    before, temporary = dict(os.environ), tempfile.tempdir
    os.environ.update(place.environment)
    tempfile.tempdir = None
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        tempfile.tempdir = temporary
