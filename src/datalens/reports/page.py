"""Pages from templates, everything escaped: text from names, labels and files stays text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = "templates"


def render(template: str, values: Mapping[str, Any]) -> str:
    """One self-contained page.

    Args:
        template: name of a file beside this one, such as ``release.html``.
        values: what it speaks of; text in them is escaped, and a name that the template asks for must be there.

    Guarantee:
        The page is a function of ``values``: no clock, no path, no chance. It asks for nothing over a network and
        runs no script, and its own policy forbids both.
    """
    from markupsafe import Markup

    style = Markup(_text("style.css"))  # ours, not anybody's input
    return _environment().get_template(template).render({**values, "style": style})


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _text(name: str) -> str:
    return resources.files("datalens.reports").joinpath(_TEMPLATES, name).read_text(encoding="utf-8")
