"""The command line as a function, and one small trained run that many tests look at and none changes."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from datalens.cli.main import main

QUICK = ("--num-teachers", "100", "--top-k", "20", "--num-steps", "3", "--batch-size", "4", "--epsilon", "10")
"""Options under which the drawn shapes train in a second."""


@dataclass(frozen=True)
class Answer:
    """What a command answered."""

    status: int
    out: str
    err: str

    @property
    def last(self) -> str:
        """The last line of standard output."""
        return self.out.rstrip("\n").rpartition("\n")[2]

    @property
    def complaint(self) -> str:
        """The one line of a user's mistake, after checking that it is one."""
        lines = self.err.splitlines()
        assert self.status == 2, self
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: ")
        assert "Traceback" not in self.err + self.out
        return lines[0]


Call = Callable[..., Answer]


def call_main(*argv: object) -> Answer:
    """Run ``datalens`` with these words."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(word) for word in argv])
    return Answer(status, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def call() -> Call:
    """``call("train", "shapes", ...)`` returns an Answer."""
    return call_main


@pytest.fixture(scope="session")
def quick() -> tuple[str, ...]:
    """Options of a training in a second."""
    return QUICK


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished, publishable run on the drawn shapes: to be read, not changed."""
    run = tmp_path_factory.mktemp("cli") / "run"
    answer = call_main("train", "shapes", "--out", run, *QUICK)
    assert answer.status == 0, answer.err
    return run
