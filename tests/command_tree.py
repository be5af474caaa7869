"""Every command of the tree with its parameters, as click knows them: a new one is found by itself."""

from __future__ import annotations

from collections.abc import Iterator

import click

from datalens.cli.main import cli


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """(words, command) of everything that does something: groups are looked into."""
    yield from _below((), cli)


def _below(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    ctx = click.Context(command)
    for name in command.list_commands(ctx):
        found = command.get_command(ctx, name)
        assert found is not None, f"{name} is listed and cannot be got"
        yield from _below((*words, name), found)


def option_names(command: click.Command) -> set[str]:
    """All names of a command's options, those of ``--help`` among them."""
    own = {name for param in command.params if isinstance(param, click.Option) for name in param.opts}
    return own | {"--help", "-h"}


def longest(param: click.Parameter) -> str:
    """The name that a message says: an option's long one, an argument's own."""
    return max(param.opts, key=len)
