"""What a data card says of a warm start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datalens.privacy import promises
from datalens.privacy.card_words import bullets, noisily, released_of


def warm_lines(certificate: Mapping[str, Any]) -> list[str]:
    """The sums that a warm start has released, before any vote; nothing where it has released none."""
    items = [(what, released_of(certificate, what)) for what in promises.WARM_RELEASES]
    said = [
        f"{what}: {noisily(released, '')}, where exchanging one person's records moves them by at most "
        f"{released[0]['sensitivity']:g}"
        for what, released in items
        if released
    ]
    if not said:
        return []
    kept = promises.WARM_START_FILE in certificate["files"]
    became = f"the generator learned from them to begin with (`{promises.WARM_START_FILE}`)"
    return [
        "Before the first vote, sums over all records were charged for by class, and "
        f"{became if kept else 'lost in a crash before the generator could learn from them'}. The epsilon above "
        "covers them. In whole units of each:",
        bullets(said),
    ]
