"""Write ``docs/options.md``: every command with its arguments and options, in the words of ``--help``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from datalens.cli.main import cli

PAGE = Path(__file__).resolve().parents[1] / "docs" / "options.md"
HEAD = """# Every option

What `--help` of each command says, in one place; made by `python scripts/options_page.py`. An option is given at most
once, a name is written out, and a number in plain digits: `1_000`, `0x10` or `1,000` are refused. A value that looks
like an option is refused, too (`--out --quiet`); a file of such a name is `./--quiet`.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_lines(cli, "datalens")])


def _lines(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[str]:
    ctx = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            if found is not None:
                yield from _lines(found, f"{path} {name}", ctx)
        return
    yield f"## {path}\n"
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    words = " ".join(param.make_metavar(ctx) for param in arguments)
    yield f"`{' '.join([path, *words.split()])}`: {command.get_short_help_str(200)}\n"
    for param in command.params:
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if record is not None:
            yield f"* `{' '.join(record[0].split())}`{_said(record[1])}"
    yield ""


def _said(text: str) -> str:
    words = re.sub(r"\[default: \((.*)\)\]", r"[default: \1]", " ".join(text.split()))
    return f": {words}" if words else ""


if __name__ == "__main__":
    PAGE.write_text(page())
