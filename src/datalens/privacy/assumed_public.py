"""What a certificate takes as known to all: sizes, classes, how labels are drawn, and a public start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datalens.privacy import promises
from datalens.privacy.ledger import Ledger
from datalens.privacy.public_start import start_words


def assumed_public(ledger: Ledger, config: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes, class list and start that anyone may know, as the ledger's header and the settings have them."""
    mechanism = ledger.header.get("mechanism", {})
    return {
        "bound_on_records": mechanism.get("num_records"),
        "num_teachers": mechanism.get("num_teachers"),
        "slots_of_each_teacher": mechanism.get("shard_size"),
        "image_shape": config.get("image_shape"),
        "classes": config.get("classes"),
        "classes_were_read_off_the_data": config.get("classes_from_data"),
        "class_list": _class_list(config),
        "generated_labels": _generated_labels(mechanism),
        "data": config.get("data"),
        **start_words(config),
    }


def _generated_labels(mechanism: Mapping[str, Any]) -> str | None:
    name = mechanism.get("name")
    if name in promises.CLASSIFIERS:
        return None
    votes = "releases" not in mechanism or name in promises.VOTING_METHODS
    return promises.LABELS_TEXT if votes else promises.LABELS_OF_SAMPLES


def _class_list(config: Mapping[str, Any]) -> str:
    if config.get("data") != "private":
        return promises.CLASSES_PUBLISHED
    if not config.get("classes_from_data"):
        return promises.CLASSES_DECLARED
    declared = config.get("config", {}).get("privacy", {}).get("labels_are_public", False)
    return promises.CLASSES_FOUND_AND_DECLARED if declared else promises.CLASSES_FOUND
