"""Every setting is read by something: one that nothing reads would promise what does not happen."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from pydantic import BaseModel

from datalens.baselines.registry import METHODS, BaselineConfig
from datalens.dpsgd import ClassifierConfig
from datalens.training.config import Config

SOURCE = Path(__file__).resolve().parents[2] / "src" / "datalens"


def sections() -> list[type[BaseModel]]:
    """Every class of settings, with those within them."""
    found: dict[type[BaseModel], None] = {}
    todo: list[type[BaseModel]] = [Config, BaselineConfig, ClassifierConfig, *METHODS.values()]
    while todo:
        kind = todo.pop()
        found[kind] = None
        within = (field.annotation for field in kind.model_fields.values())
        todo += [
            one for one in within if isinstance(one, type) and issubclass(one, BaseModel) and one not in found
        ]
    return list(found)


def names_read() -> set[str]:
    """Every ``.name`` that is read anywhere in the product."""
    trees = [ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")]
    return {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


READ = names_read()


@pytest.mark.parametrize("kind", sections(), ids=lambda kind: kind.__name__)
def test_every_setting_is_read(kind: type[BaseModel]) -> None:
    assert [name for name in kind.model_fields if name not in READ] == []


def test_the_settings_are_found() -> None:
    assert {"Voting", "Privacy", "Finishing", "Performance"} <= {kind.__name__ for kind in sections()}
    assert "no_such_setting" not in READ
