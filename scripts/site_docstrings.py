"""An extension of mkdocstrings: docstrings as this project writes them, turned into Markdown.

An example that begins with ``>>>`` becomes a block of code, and a role such as ``:class:`Ledger``` its name.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

EXAMPLE = re.compile(r"^([ ]*)>>> .*(?:\n(?![ ]*\n)[ ]*\S.*)*", re.MULTILINE)
ROLE = re.compile(r":\w+:`~?([^`]+)`")
LITERAL = re.compile(r"``([^`]+)``")


class Docstrings(Extension):
    """Changes each docstring as it is read."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Of every module, class, function and attribute."""
        if getattr(obj, "docstring", None) is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """The docstring with fenced examples and without roles."""
    plain = LITERAL.sub(r"`\1`", ROLE.sub(r"`\1`", text))
    return EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", plain)
