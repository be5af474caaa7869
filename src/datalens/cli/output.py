"""Where words and numbers go: people read standard output, machines a JSON file or standard output."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from datalens.errors import ConfigError, NotPrivateError, RunError, one_line
from datalens.training.files import write_json
from datalens.training.run_folder import RunFolder

STDOUT = "-"


class Output:
    """One command's answer.

    Args:
        json_target: a file, ``-`` for standard output (words then go to standard error), or None.
        quiet: say only warnings and what must not be missed.
        verbose: say details, too.

    Raises:
        ConfigError: both quiet and verbose.
        RunError: the JSON file cannot be written there; raised before any work.
    """

    quiet: bool
    verbose: bool

    def __init__(self, json_target: str | None = None, *, quiet: bool = False, verbose: bool = False) -> None:
        if quiet and verbose:
            raise ConfigError("--quiet and --verbose: contradict each other; give one of them")
        self.quiet, self.verbose = quiet, verbose
        self.warnings: list[str] = []
        self._target = json_target
        self._words_to_stderr = json_target == STDOUT
        if json_target not in (None, STDOUT):
            check_file_target(Path(json_target), "--json")

    @classmethod
    def of(cls, options: dict[str, Any]) -> Output:
        """As the options of a training ask for it, whose answer holds warnings to the owner of the data.

        Raises:
            NotPrivateError: the JSON file is under what a run shares.
        """
        refuse_released("--json", options["json_target"])
        return cls(options["json_target"], quiet=options["quiet"], verbose=options["verbose"])

    def say(self, text: str) -> None:
        """One line for people, unless quiet."""
        if not self.quiet:
            click.echo(text, err=self._words_to_stderr)

    def detail(self, text: str) -> None:
        """One line for people who want to know more."""
        if self.verbose:
            self.say(text)

    def insist(self, text: str) -> None:
        """One line for people, also where quiet."""
        click.echo(text, err=self._words_to_stderr)

    def warn(self, text: str) -> None:
        """One line on standard error, also where quiet, and once only; repeated in the JSON."""
        if text in self.warnings:
            return
        self.warnings.append(text)
        click.echo(f"warning: {text}", err=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """A table: ruled on a terminal, plain aligned columns elsewhere."""
        if self.quiet:
            return
        rows = [[one_line(cell) for cell in row] for row in rows]
        stream = sys.stderr if self._words_to_stderr else sys.stdout
        if stream.isatty():
            _rich_table(stream, columns, rows, title)
            return
        if title:
            self.say(title)
        widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
        for row in (columns, *rows):
            self.say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def finish(self, answer: dict[str, Any]) -> None:
        """The answer for machines, if it was asked for; infinite and undefined numbers become null."""
        if self._target is None:
            return
        value = _plain({**answer, "warnings": self.warnings})
        if self._target == STDOUT:
            click.echo(json.dumps(value, indent=2, allow_nan=False))
        else:
            write_json(Path(self._target), value)


def refuse_released(option: str, target: str | None, runs: Sequence[str] = ()) -> None:
    """Refuse a file of what people's data had a part in under what a run shares, be it one of ``runs`` or any other.

    Raises:
        NotPrivateError: it lies there.
    """
    if target in (None, STDOUT):
        return
    if RunFolder.is_shared(Path(target)) or any(RunFolder.shares(Path(run), Path(target)) for run in runs):
        raise NotPrivateError(
            f"{option} {target}: what people's data had a part in does not go under release/; write it elsewhere"
        )


def check_file_target(path: Path, option: str) -> None:
    """Refuse early a file that could not be written later.

    Raises:
        RunError: its folder is missing or closed, or it is a folder itself, a device or a file of a run, which a file
            would replace.
    """
    if path.is_dir():
        raise RunError(f"{option} {path}: is a folder; give the name of a file")
    if path.is_symlink() and not path.exists():
        raise RunError(f"{option} {path}: is a link that leads nowhere; give the name of a file")
    if path.exists() and not path.is_file():
        raise RunError(f"{option} {path}: is a device or a pipe, and no plain file; give the name of a file")
    if RunFolder.is_kept(path):
        raise RunError(f"{option} {path}: is a file of that run itself; give another name")
    check_parent(path, option)


def check_parent(path: Path, option: str) -> None:
    """Refuse early a target whose folder is missing or closed.

    Raises:
        RunError: says which folder.
    """
    parent = path.absolute().parent
    if parent.exists() and not parent.is_dir():
        raise RunError(f"{option} {path}: {parent} is a file and no folder; choose another place")
    if not parent.is_dir():
        raise RunError(f"{option} {path}: there is no folder {parent}; make it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise RunError(f"{option} {path}: the folder {parent} is not writable; permit it or choose another")


def check_new_run(run: Path) -> None:
    """Refuse early a run's folder that is there already or could not be made later.

    Raises:
        RunError: says which and why.
    """
    try:
        there = run.exists()
        if there and (not run.is_dir() or any(run.iterdir())):
            raise RunError(f"--out {run}: exists already; choose another, or go on with that run by --resume")
        if not there and run.is_symlink():
            raise RunError(
                f"--out {run}: is a link that leads nowhere; mend or remove it, or choose another place"
            )
        above = run
        while not above.parent.exists():
            above = above.parent
        check_parent(above, "--out")
        os.rmdir(
            tempfile.mkdtemp(prefix=".", dir=run if there else above.parent)
        )  # permissions alone can lie
    except OSError as error:
        raise RunError(f"--out {run}: cannot be made ({error.strerror}); choose another place") from None


def _rich_table(stream: Any, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(file=stream).print(table)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
