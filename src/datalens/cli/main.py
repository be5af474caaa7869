"""The entry point: verbs are imported when they are asked for, and every mistake becomes one line."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from datalens.cli.problems import MISTAKE, explain
from datalens.distributed.place import Place
from datalens.errors import RunError
from datalens.version import __version__

VERBS = {
    "quickstart": ("datalens.cli.quickstart:quickstart", "Fetch, train, sample and evaluate in one go."),
    "train": ("datalens.cli.train:train", "Train a generator on sensitive images."),
    "dpsgd": ("datalens.cli.dpsgd:dpsgd", "Train a classifier by DP-SGD with TopAgg."),
    "tune": ("datalens.cli.tune:tune", "Choose settings on people's data, at a known price."),
    "sample": ("datalens.cli.sample:sample", "Draw synthetic images from a run."),
    "export": ("datalens.cli.export:export", "Draw a data set that can be uploaded as it is."),
    "evaluate": ("datalens.cli.evaluate:evaluate", "Score a run or samples on real images."),
    "report": ("datalens.cli.report:report", "Write a run's pages for a browser."),
    "compare": ("datalens.cli.compare:compare", "Set runs side by side."),
    "list": ("datalens.cli.list_runs:list_runs", "List the runs under a folder."),
    "audit": ("datalens.cli.audit:audit", "Attack a run's own guarantee."),
    "verify": ("datalens.cli.verify:verify", "Recompute a run's certificate from its ledger, and compare."),
    "purge": ("datalens.cli.purge:purge", "Remove a run's private side."),
    "budget": ("datalens.cli.budget:budget", "One privacy budget for a data set, across runs."),
    "privacy": ("datalens.cli.privacy:privacy", "Cost and plan, without any data."),
    "reproduce": ("datalens.cli.reproduce:reproduce", "Redo the paper's tables and figures."),
    "benchmark": ("datalens.cli.benchmark:benchmark", "Compare methods on published data."),
    "data": ("datalens.cli.data:data", "List, fetch and check data sets."),
    "completion": ("datalens.cli.completion:completion", "What lets a shell complete commands and names."),
}


FOR_SEVERAL = "train"
"""The verb that several processes may share."""


class LazyGroup(click.Group):
    """A group whose verbs are imported only when used, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of their table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, imported now; None for an unknown verb."""
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name][0].partition(":")
        return getattr(importlib.import_module(module), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that a command line names.

        Raises:
            click.UsageError: an unknown one; says which known one is near.
        """
        is_unknown = bool(args) and args[0] not in VERBS and not args[0].startswith("-")
        if is_unknown and not ctx.resilient_parsing:
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise click.UsageError(f"no command {args[0]!r}; {hint}known: {', '.join(VERBS)}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs that begin so, with their help, and the group's own options."""
        verbs = [
            CompletionItem(verb, help=text)
            for verb, (_, text) in VERBS.items()
            if verb.startswith(incomplete)
        ]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs from their table, so that nothing is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Every command but completion takes --json FILE (- for standard output). A mistake exits with status 2.",
)
@click.version_option(__version__, prog_name="datalens", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Differentially private image generators: sensitive images in, a generator that may be shared out.

    \b
    datalens data fetch mnist
    datalens train mnist --out runs/mnist --epsilon 1
    datalens sample runs/mnist --num-samples 10000 --out samples.npz
    datalens evaluate runs/mnist --data mnist
    """
    processes = Place.from_environment().world_size
    if processes > 1 and ctx.invoked_subcommand != FOR_SEVERAL:
        raise RunError(
            f"datalens {ctx.invoked_subcommand}: is for one process, not for the {processes} of torchrun, which "
            f"only {FOR_SEVERAL} shares out; leave torchrun out"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 2 for a user's mistake, 130 after Ctrl-C."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status = cli.main(
                args=None if argv is None else list(argv), prog_name="datalens", standalone_mode=False
            )
            sys.stdout.flush()
            return status if isinstance(status, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("error: interrupted", err=True)
        return 130
    except BrokenPipeError:
        # Whoever read our output has left; nothing may complain about it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        line = explain(error)
        if line is None:
            raise
        click.echo(f"{_speaker()}error: {line}", err=True)
        return MISTAKE


def _speaker() -> str:
    """Which of several processes speaks; nothing for the first."""
    try:
        rank = Place.from_environment().rank
    except RunError:
        return ""
    return f"rank {rank}: " if rank else ""


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if _speaker():
        return  # the first process says the same
    click.echo(f"warning: {' '.join(str(message).split())}", err=True)


if __name__ == "__main__":
    sys.exit(main())
