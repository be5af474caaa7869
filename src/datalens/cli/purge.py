"""``datalens purge``: remove what must never be shared from a finished run."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from datalens.cli.options import json_option, quiet_option
from datalens.cli.output import Output
from datalens.cli.params import Once, Text
from datalens.errors import RunError


@click.command(cls=Once, short_help="Remove a run's private side.")
@click.argument("run", type=Text(paths=True))
@click.option("--yes", is_flag=True, help="Do not ask.")
@quiet_option
@json_option
def purge(run: str, yes: bool, quiet: bool, json_target: str | None) -> None:
    """Remove RUN/private: teachers, checkpoints, slot map, keys, diagnostics and scores on people's data.

    What may be shared stays whole: sampling and verification need only RUN/release. The run can never go on.
    Copies elsewhere, backups and what the disk itself remembers are not reached.

    \b
    datalens purge runs/mnist --yes
    """  # fmt: skip
    from datalens.training.run_folder import RunFolder

    output = Output(json_target, quiet=quiet)
    folder = RunFolder.open(Path(run))
    there = folder.private.exists()
    if there and not yes:
        if not sys.stdin.isatty():
            raise RunError(f"{run}: nothing was removed; there is no terminal to ask on, so give --yes")
        finished = "" if folder.network.is_file() else "; it has no trained network yet"
        if not click.confirm(f"remove {folder.private} for good{finished}?", err=True):
            raise RunError(f"{run}: nothing was removed; answer y, or give --yes")
    if there:
        _refuse_running(folder.ledger)
    removed = folder.purge()
    output.finish({"run": run, "removed": removed})
    output.say(
        f"removed {folder.private}" if removed else f"{run}: has no private/ any more; nothing to remove"
    )


def _refuse_running(ledger: Path) -> None:
    """A run that is in training keeps its private side."""
    from datalens.privacy.ledger import Ledger

    if ledger.is_file():
        Ledger.open(ledger).close()
