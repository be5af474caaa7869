"""The sentence that a certificate has on public weights which a run begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datalens.privacy import promises


def start_words(config: Mapping[str, Any]) -> dict[str, str]:
    """Where the weights come from, under ``start``; nothing where a run begins at random.

    Args:
        config: the content of ``release/config.json``.
    """
    said = config.get("public_init")
    if said is None:
        return {}
    source, name = said["source"], said["name"]
    made = f"{promises.START_OF[said['discriminators']]} {promises.START_FROM[source]}"
    classes = promises.START_CLASSES[source, said["same_classes"]]
    return {"start": f"{made}: {name}, {classes} ({promises.PUBLIC_INIT_FILE}, SHA-256 {said['sha256']})"}
