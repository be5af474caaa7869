"""What an estimator says of itself where it is displayed: its state and what it promises, all of it public."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from datalens.privacy import promises
from datalens.privacy.card_words import epsilon_words
from datalens.privacy.certificate import build_certificate

if TYPE_CHECKING:
    from datalens.training.sections import RunSettings
    from datalens.training.trained import Certified

_SHOWN_CLASSES = 10


def in_words(model: Certified[Any, Any]) -> str:
    """One line for a prompt, such as ``DataLens(mnist-quick, epsilon 1, delta 1e-05): nothing trained yet``.

    After a training it is about what was trained, whatever settings the next one has.
    """
    config = model.facts.config if model.is_fitted else model.config
    promise = "no guarantee"
    if config.privacy.is_private:
        promise = f"epsilon {config.privacy.epsilon:g}, delta {config.privacy.delta:g}"
    return f"{type(model).__name__}({config.recipe}, {promise}): {_state(model)}"


def as_html(model: Certified[Any, Any]) -> str:
    """A small table for a notebook.

    Guarantee: it is a function of settings and of what is in ``release/``; nothing else about records is in it, and
    none of its texts is taken for HTML.
    """
    rows = _trained(model) if model.is_fitted else _planned(model.config)
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in [("state", _state(model)), *rows]
    )
    return f"<table><caption>{escape(type(model).__name__)}</caption>{cells}</table>"


def _state(model: Certified[Any, Any]) -> str:
    if not model.is_fitted:
        return "nothing trained yet"
    return "stopped early" if model.was_stopped else "trained"


def _method(config: RunSettings) -> str:
    return str(getattr(config, "method", "datalens"))


def _planned(config: RunSettings) -> list[tuple[str, str]]:
    """Of an estimator before its training: what was asked for."""
    privacy = config.privacy
    asked = f"at most {privacy.epsilon:g} at delta {privacy.delta:g}, one record added or removed"
    return [
        ("method", f"{_method(config)}, recipe {config.recipe}"),
        ("epsilon", asked if privacy.is_private else "no guarantee"),
    ]


def _trained(model: Certified[Any, Any]) -> list[tuple[str, str]]:
    """Of one after it: what its certificate says."""
    facts = model.facts
    certificate = build_certificate(model.ledger, facts.to_json(), {}, {})
    guarantee, spent = certificate["guarantee"], certificate["spent"]
    names = ", ".join(facts.classes[:_SHOWN_CLASSES])
    more = ", ..." if len(facts.classes) > _SHOWN_CLASSES else ""
    rows = [
        ("method", f"{_method(facts.config)}, recipe {facts.config.recipe}"),
        *_promised(guarantee),
        ("epsilon spent", f"{epsilon_words(spent['epsilon'])} (no promise; what is promised stands above)"),
        (
            "images",
            f"{' x '.join(map(str, facts.image_shape))} of {len(facts.classes)} classes: {names}{more}",
        ),
    ]
    unfit = "; ".join(certificate["not_fit_because"])
    return [*rows, ("to be published", f"NO: {unfit}" if unfit else "yes, what is in release/")]


def _promised(guarantee: dict[str, Any]) -> list[tuple[str, str]]:
    """Under both neighbouring relations."""
    if guarantee["epsilon"] is None:
        return [("epsilon", "no guarantee")]
    of_groups = guarantee["adjacency"] == promises.ADD_OR_REMOVE_GROUP
    size = guarantee["group_size"]
    unit = "one group" if of_groups else "one record" if size == 1 else f"up to {size} records of one person"
    blanked = guarantee["adjacency"] == promises.BLANKED
    other = guarantee["replace_one"]["epsilon"]
    return [
        ("delta", f"{guarantee['delta']:g}"),
        (
            f"epsilon, {unit} {'blanked' if blanked else 'added or removed'}",
            epsilon_words(guarantee["epsilon"]),
        ),
        (f"epsilon, {unit} replaced", "none can be named" if other is None else epsilon_words(other)),
    ]
