"""``datalens completion``: the lines with which a shell completes commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from datalens.cli.params import Once

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_DATALENS_COMPLETE"
"""By which a shell asks; click derives it from the program's name."""


@click.command(cls=Once, short_help="What lets a shell complete commands and names.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what lets a shell complete commands, options, data sets, methods, recipes and files by the tab key.

    \b
    eval "$(datalens completion bash)"       in ~/.bashrc (bash 4.4 or later)
    eval "$(datalens completion zsh)"        in ~/.zshrc, after compinit
    datalens completion fish | source        in ~/.config/fish/config.fish
    """
    root = click.get_current_context().find_root()
    kind = get_completion_class(shell)
    if kind is not None:
        click.echo(kind(root.command, {}, "datalens", VARIABLE).source())
