"""What a data card says of a baseline: how the generator came about, and what was released on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datalens.privacy import promises
from datalens.privacy.card_words import bullets, listed, noisily, released_of


def method_lines(certificate: Mapping[str, Any]) -> list[str]:
    """A baseline's releases, each with its noise and what one person moves."""
    noise = certificate["noise"]
    lines = [promises.METHOD_TEXT[certificate["mechanism"]["name"]]]
    kinds = dict.fromkeys(item["what"] for item in noise["releases"] if item["what"] != "score")
    if kinds:
        said = [
            f"{kind}: {noisily(released, '')}, where one person moves them by at most "
            f"{max(item['sensitivity'] for item in released):g}"
            for kind in kinds
            for released in [released_of(certificate, kind)]
        ]
        lines.append(
            f"Released so far ({listed(noise['kinds'])}; bits from the {noise['source']}), in whole units of each:"
        )
        lines.append(bullets(said))
    return lines


def is_baseline(certificate: Mapping[str, Any]) -> bool:
    """Whether it is of another method than DataLens."""
    return certificate["mechanism"].get("name") in promises.METHOD_TEXT
