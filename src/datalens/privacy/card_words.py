"""Numbers and lists as a data card says them: plain words, nothing rounded in its own favour, no live Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from datalens.errors import one_line
from datalens.privacy.wording import rounded_up

_BEYOND_WORDS = 25
"""Epsilon from which e to the epsilon is written as a power: nobody reads so long a number."""
_MARKS = frozenset("\\`*_{}[]()<>#+-!|&~$:@")
_WEB = re.compile(r"(?i)\bwww\.")


def noisily(released: list[Mapping[str, Any]], unit: str) -> str:
    """Such as ``2 times with random noise of 25 votes on every pixel``."""
    said = []
    for item in released:
        stddev = item["noise_stddev"]
        noise = f"with random noise of {stddev:g}{unit}" if stddev else "without noise"
        said.append(f"{often(item)} {noise}")
    return " and ".join(said)


def often(item: Mapping[str, Any]) -> str:
    """Such as ``once`` or ``12 times``."""
    return "once" if item["count"] == 1 else f"{item['count']} times"


def released_of(certificate: Mapping[str, Any], what: str) -> list[Mapping[str, Any]]:
    """The certificate's releases of one kind."""
    return [item for item in certificate["noise"]["releases"] if item["what"] == what]


def factor(epsilon: float) -> str:
    """e to the epsilon, never rounded down: ``7.39``, ``2,981``, ``e^50``."""
    if epsilon > _BEYOND_WORDS:
        return f"e^{epsilon_words(epsilon)}"
    factor = math.exp(epsilon)
    return f"{math.ceil(factor):,}" if factor >= 100 else rounded_up(factor, 3)


def belief(epsilon: float) -> str:
    """How sure one may be at most, from even odds; rounded up, with digits enough not to read 100%."""
    if epsilon > _BEYOND_WORDS:
        return "all but completely"
    doubt = 100 / (1 + math.exp(epsilon))
    digits = max(1, -math.floor(math.log10(doubt)))
    unit = 10**digits
    return f"at most {100 - math.floor(doubt * unit) / unit:.{digits}f}%"


def epsilon_words(value: float | None) -> str:
    """Epsilon rounded up; none is infinite."""
    return "infinite" if value is None else rounded_up(value)


def listed(words: list[str]) -> str:
    """The words as text that means nothing to Markdown, see :func:`plain`."""
    safe = [plain(word) for word in words[:20]]
    shown = [*safe, "..."] if len(words) > 20 else safe
    return ", ".join(shown) if shown else "none"


def plain(word: str) -> str:
    """A text that means nothing to Markdown: a class may be called ``<b>``, ``[x](y)`` or ``www.x.y``.

    >>> plain("<b>"), plain("a:b@c"), plain("www.x")
    ('\\\\<b\\\\>', 'a\\\\:b\\\\@c', 'www\\\\.x')
    """
    marked = "".join(f"\\{char}" if char in _MARKS else char for char in one_line(word))
    return _WEB.sub(lambda found: f"{found[0][:-1]}\\.", marked)


def bullets(lines: list[str]) -> str:
    """A Markdown list."""
    return "\n".join(f"* {line}" for line in lines)
