"""What a data card says of a baseline: how the generator came about, and what was released on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datalens.privacy import promises
from datalens.privacy.card_words import bullets, listed, noisily, often, plain, released_of


def method_lines(certificate: Mapping[str, Any]) -> list[str]:
    """How a baseline's generator came about, and its releases."""
    name = certificate["mechanism"]["name"]
    published = promises.AS_PUBLISHED in certificate["not_fit_because"]
    texts = promises.PUBLISHED_METHOD_TEXT if published else promises.METHOD_TEXT
    text = texts.get(name, promises.OWN_METHOD_TEXT.format(name=name))
    return [text, *release_lines(certificate)]


def release_lines(certificate: Mapping[str, Any]) -> list[str]:
    """Releases by kind, each with its noise and what one person moves; none where nothing was released."""
    noise = certificate["noise"]
    kinds = dict.fromkeys(item["what"] for item in noise["releases"] if item["what"] != "score")
    if not kinds:
        return []
    return [
        f"Released so far ({listed(noise['kinds'])}; bits from the {noise['source']}), in whole units of each:",
        bullets([f"{plain(kind)}: {_released(released_of(certificate, kind))}" for kind in kinds]),
    ]


def _released(items: list[Mapping[str, Any]]) -> str:
    """How often, with which noise, and what one person moves."""
    if any("sampling_probability" in item for item in items):
        return " and ".join(map(_sampled, items))
    largest = max(item["sensitivity"] for item in items)
    return f"{noisily(items, '')}, where one person moves them by at most {largest:g}"


def _sampled(item: Mapping[str, Any]) -> str:
    """The same of releases from random lots."""
    noise = item["noise_multiplier"]
    said = f"with random noise {noise:.4g} times what that person moves" if noise else "without noise"
    return (
        f"{often(item)} {said}, each from a lot that a person is in with probability "
        f"{item['sampling_probability']:.4g}"
    )


def is_baseline(certificate: Mapping[str, Any]) -> bool:
    """Whether it is of another method than DataLens."""
    return certificate["mechanism"].get("name") in promises.METHOD_TEXT or is_of_own_method(certificate)


def is_of_own_method(header: Mapping[str, Any]) -> bool:
    """Whether a ledger's header, or a certificate, is of a method that is no part of DataLens."""
    mechanism = header.get("mechanism", {})
    return "releases" in mechanism and mechanism.get("name") not in promises.METHOD_TEXT
