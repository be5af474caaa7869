"""One odd command line: what it answered, what would have been done, and whether anything was written."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import click

from datalens import DataLens, data
from datalens.baselines.model import Baseline
from datalens.cli.main import main
from datalens.dpsgd import DPSGDClassifier

STOPPED_AT = (
    "datalens.training.run_folder.RunFolder.create",
    "datalens.training.session.Session.resume",
    "datalens.training.tuning.tune",
    "datalens.audit.any_run.audit_run",
    "datalens.audit.verify.verify_run",
    "datalens.cli.reporting.write_pages",
    "datalens.cli.sample.write_samples",
    "datalens.cli.export.write_whole",
    "datalens.cli.judged.drawn",
    "datalens.experiments.sweep.run",
    "datalens.data.fetch",
    "datalens.training.run_folder.RunFolder.purge",
)
"""Where the work of a command begins: what comes here was accepted."""
TRAINED = (DataLens, Baseline, DPSGDClassifier)
"""Whose ``fit`` has the settings that are asked for."""


class Reached(Exception):
    """The work would begin."""


@dataclass
class Outcome:
    """What came of a command line.

    Attributes:
        status: exit status; None where the work was about to begin.
        out: standard output.
        err: standard error.
        params: what the command made of its options.
        config: the settings of the training that would have begun.
        loaded: how data were asked for.
        changes: what was written, removed or changed in the folder.
    """

    status: int | None = None
    out: str = ""
    err: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    config: Any = None
    loaded: dict[str, Any] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        """Whether the command did its work, or would have."""
        return self.status in (None, 0)


LONGEST = 1300
"""Characters of a line that somebody reads."""
_LOAD = data.load
_LOADED: dict[str, Any] = {}


@contextlib.contextmanager
def listening(outcome: Outcome) -> Iterator[None]:
    """Note options and settings, and stop where the work begins. Data that are drawn are drawn once."""
    invoke = click.Command.invoke

    def noted(self: click.Command, ctx: click.Context) -> Any:
        if not isinstance(self, click.Group):
            outcome.params = dict(ctx.params)
        return invoke(self, ctx)

    def stopped(*_: Any, **__: Any) -> None:
        raise Reached

    def fitting(kind: type[Any]) -> Any:
        fit = kind.fit

        def heard(self: Any, *args: Any, **how: Any) -> Any:
            outcome.config = self.config
            return fit(self, *args, **how)

        return mock.patch.object(kind, "fit", heard)

    def load(source: Any, **how: Any) -> Any:
        outcome.loaded = how
        key = repr((source, how))
        if source != "shapes":
            return _LOAD(source, **how)
        if key not in _LOADED:
            _LOADED[key] = _LOAD(source, **how)
        return _LOADED[key]

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(click.Command, "invoke", noted))
        stack.enter_context(mock.patch("datalens.data.load", load))
        for place in STOPPED_AT:
            stack.enter_context(mock.patch(place, stopped))
        for kind in TRAINED:
            stack.enter_context(fitting(kind))
        yield


def answer(words: list[str], folder: Path) -> Outcome:
    """Run a command line in a folder, up to where its work begins. A defect comes through as its exception."""
    outcome, out, err = Outcome(), io.StringIO(), io.StringIO()
    before = listing(folder)
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(action="default", category=UserWarning),
        listening(outcome),
    ):
        try:
            outcome.status = main(words)
        except Reached:
            outcome.status = None
    outcome.out, outcome.err = out.getvalue(), err.getvalue()
    after = listing(folder)
    outcome.changes = sorted(name for name in before.keys() | after if before.get(name) != after.get(name))
    return outcome


def listing(folder: Path) -> dict[str, tuple[int, ...]]:
    """Everything below, with size, time and rights."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            state = os.lstat(path)
            times = (state.st_size, state.st_mtime_ns) if name in files else ()
            found[os.path.relpath(path, folder)] = (state.st_mode, *times)
    return found


def complaint(outcome: Outcome, names: tuple[str, ...]) -> str | None:
    """What is wrong with a refusal; None for one clear line that names option or value, and nothing written."""
    lines = outcome.err.splitlines()
    if outcome.status != 2:
        return f"exit status {outcome.status}"
    if len(lines) != 1 or not outcome.err.endswith("\n"):
        return f"{len(lines)} lines: {lines[:3]}"
    (line,) = lines
    if not line.startswith("error: ") or not line.isprintable():
        return f"no plain line: {line!r:.200}"
    if len(line) > LONGEST:
        return f"a line of {len(line)} characters: {line:.200}"
    if not any(name in line for name in names):
        return f"names neither {names}: {line}"
    if outcome.changes:
        return f"wrote {outcome.changes}"
    return None
