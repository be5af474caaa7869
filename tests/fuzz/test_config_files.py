"""Every setting of every kind of configuration file, found by itself, with every odd value TOML can write; odd files.

A file is refused by one line that names the setting or the file, with nothing written; or the training that would
begin has exactly what the file says.
"""

from __future__ import annotations

import math
import tomllib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fuzz_driver import Outcome, answer, complaint
from pydantic import BaseModel

from datalens.baselines.registry import METHODS, BaselineConfig
from datalens.dpsgd import ClassifierConfig
from datalens.training.config import Config

VALUES = (
    '""', '"1"', '"nan"', '"true"', '" "', '"１０"', '"🦙"', '"a\\u202eb"', '"a\\nb"', f'"{"x" * 10_000}"',
    "true", "false", "[]", "[1]", "{}", "{a = 1}", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z",
    "nan", "-nan", "inf", "-inf", "1e400", "1e-400", "1e-320", "-1", "0", "-0.0", "1", "3", "3.0", "0.5", "-0.5",
    "0x10", "1_000", "1e3", str(2**31), str(2**63), "1" + "0" * 30, "1" + "0" * 400,
    "9" * 5000, "012", "+7", "no", "null", "1:30", "１０", "", "1 2", "'",
)  # fmt: skip
"""Right-hand sides of a line, those that are no TOML among them."""
FILES = {
    "empty": b"",
    "blank": b" \n\t\n",
    "byte order mark": b"\xef\xbb\xbf[privacy]\nepsilon = 10\n",
    "UTF-16": "[privacy]\nepsilon = 10\n".encode("utf-16"),
    "Latin-1": "recipe = 'é'\n".encode("latin-1"),
    "NUL": b"recipe = 'a\0b'\n",
    "binary": bytes(range(256)),
    "a list": b"[[privacy]]\nepsilon = 1\n",
    "an array": b"privacy = [1, 2]\n",
    "a number": b"privacy = 1\n",
    "twice": b"[privacy]\nepsilon = 1\nepsilon = 2\n",
    "a table twice": b"[privacy]\n[privacy]\n",
    "two ways": b"privacy.epsilon = 1\n[privacy]\nepsilon = 2\n",
    "unknown section": b"[nonsense]\nx = 1\n",
    "unknown setting": b"[privacy]\nnonsense = 1\n",
    "no section": b"epsilon = 1\n",
    "other case": b"[Privacy]\nEpsilon = 1\n",
    "empty name": b"'' = 1\n",
    "odd name": "'a\\n🦙' = 1\n".encode(),
    "deep arrays": b"x = " + b"[" * 5000,
    "deep tables": b"[" + b"a." * 5000 + b"a]\nx = 1\n",
    "deep inline": b"x = " + b"{a = " * 5000,
    "deep settings": b"[privacy" + b".epsilon" * 500 + b"]\nx = 1\n",
    "huge": b"# " + b"x" * 2**21,
    "many names": b"\n".join(b"x%d = 1" % number for number in range(20_000)),
    "YAML": b"privacy:\n  epsilon: 1\n",
    "YAML bomb": b"a: &a [x, x]\nb: [*a, *a]\n",
    "JSON": b'{"privacy": {"epsilon": 1}}\n',
    "carriage returns": b"[privacy]\repsilon = 1\r",
    "half a file": b"[privacy]\nepsilon = 1\n[voting]\ntop_k =",
}
SAMPLED = 1
"""Odd values of each setting in the ordinary tests."""
SLOW = ("dpsgd", "dp-gan", "gs-wgan")
"""Kinds whose noise takes seconds to solve for: the slow tests alone try their settings."""
SOLVED = ("noise_stddev", "vote_threshold", "num_steps", "batch_size", "group_size", "delta")
"""Settings that are too much together with others: a line names one of these, or epsilon, as the remedy."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: for people.
        words: the command line that reads it.
        settings: its settings.
        usual: setting -> value, of a file that is accepted.
    """

    name: str
    words: tuple[str, ...]
    settings: type[BaseModel]
    usual: dict[str, str]

    def leaves(self) -> Iterator[str]:
        """Dotted names of all settings."""
        for name in _leaves(self.settings):
            if name == "settings" and self.settings is BaselineConfig:
                yield from (f"settings.{each}" for each in _leaves(METHODS[self.name]))
            elif name != "method":
                yield name


def _leaves(kind: type[BaseModel], above: str = "") -> Iterator[str]:
    for name, field in kind.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _leaves(field.annotation, f"{above}{name}.")
        else:
            yield above + name


TRAIN = {
    "privacy.epsilon": "10",
    "voting.num_teachers": "100",
    "voting.top_k": "20",
    "voting.num_steps": "3",
    "voting.batch_size": "4",
}
SMALL = {"privacy.epsilon": "10"}
KINDS = (
    Kind("datalens", ("train", "shapes", "--out", "new", "--config", "odd.toml"), Config, TRAIN),
    *(
        Kind(
            name,
            ("train", "shapes", "--out", "new", "--method", name, "--config", "odd.toml"),
            BaselineConfig,
            {**SMALL, "privacy.noise": '"none"'} if name == "dc-gan" else SMALL,
        )
        for name in METHODS
    ),
    Kind("dpsgd", ("dpsgd", "shapes", "--out", "new", "--config", "odd.toml"), ClassifierConfig, SMALL),
)
MOMENTS = next(kind for kind in KINDS if kind.name == "moments")


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name not in SLOW], ids=lambda kind: kind.name
)
def test_a_sample_of_odd_settings(tmp_path: Path, kind: Kind) -> None:
    assert faults(tmp_path, kind, SAMPLED) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_all_odd_settings(tmp_path: Path, kind: Kind) -> None:
    assert faults(tmp_path, kind, len(VALUES)) == []


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("words", [KINDS[0].words, MOMENTS.words], ids=["datalens", "moments"])
def test_odd_files(tmp_path: Path, words: tuple[str, ...], name: str) -> None:
    """Empty files say nothing and are taken; of all others one line names the file or what is wrong in it."""
    (tmp_path / "odd.toml").write_bytes(FILES[name])
    outcome = answer([*words, "--epsilon", "10"], tmp_path)
    if name in ("empty", "blank"):
        assert outcome.accepted and not outcome.changes
    else:
        assert complaint(outcome, ("odd.toml",)) is None, outcome


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_option_hides_no_mistake_in_a_file(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "odd.toml").write_text("privacy.epsilon = '1'\n")
    outcome = answer([*kind.words, "--epsilon", "10"], tmp_path)
    assert complaint(outcome, ("odd.toml: privacy.epsilon = '1'",)) is None, outcome


@pytest.mark.parametrize("text", ["", "candidate = 1", "[[candidate]]", "[[candidate]]\n[[candidate]]\nx = 1",
                                  "candidate = [1, 2]", "x = " + "[" * 5000, "[[candidate]]\n" * 3 + "privacy = {}",
                                  "[[candidate]]\nvoting.top_k = '1'\n[[candidate]]\n"])  # fmt: skip
def test_odd_candidates(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.toml").write_text(text)
    words = ["tune", "shapes", "--out", "new", "--candidates", "odd.toml", "--epsilon", "10"]
    assert complaint(answer(words, tmp_path), ("odd.toml", "candidate")) is None


def faults(folder: Path, kind: Kind, count: int) -> list[str]:
    """What goes wrong with so many odd values of every setting."""
    usual = _answered(folder, kind, kind.usual)
    assert usual.accepted and usual.config is not None, usual
    found = []
    for leaf in kind.leaves():
        key = f"{kind.name} {leaf} "
        for value in sorted(VALUES, key=lambda value: zlib.crc32((key + value).encode()))[:count]:
            try:
                outcome = _answered(folder, kind, {**kind.usual, leaf: value})
            except Exception as error:  # a traceback
                found.append(f"{leaf} = {value:.40}: {error!r:.200}")
                continue
            fault = _fault(outcome, usual, leaf, value)
            if fault is not None:
                found.append(f"{leaf} = {value:.40}: {fault}")
    return found


def _answered(folder: Path, kind: Kind, settings: dict[str, str]) -> Outcome:
    (folder / "odd.toml").write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    return answer(list(kind.words), folder)


def _fault(outcome: Outcome, usual: Outcome, leaf: str, value: str) -> str | None:
    name = leaf.rpartition(".")[2]
    if not outcome.accepted:
        words = (name, name.replace("_", "-"), name.replace("_", " "), "odd.toml", value[:30] or "TOML")
        if name in SOLVED:
            words = (
                *words,
                "use epsilon",
                "leaves no signal",
                "use a larger",
                "more noise",
                "a larger epsilon",
            )
        if leaf.startswith(("public_init.", "warm_start.")):
            words = (*words, leaf.partition(".")[0])
        return complaint(outcome, words)
    if outcome.changes:
        return f"wrote {outcome.changes}"
    asked = tomllib.loads(f"x = {value}")["x"]
    if outcome.config is None:
        return "taken without a training"
    got, before = _flat(outcome.config.to_json()), _flat(usual.config.to_json())
    if leaf == "recipe":
        return None if outcome.config.recipe == asked else f"recipe {outcome.config.recipe!r}"
    if not _same(got.get(leaf, asked), asked):
        return f"would train with {got.get(leaf)!r:.80}"
    others = {key for key in got.keys() | before if key != leaf and not _same(got.get(key), before.get(key))}
    if leaf == "warm_start.enabled":
        others = {
            key for key in others if not key.startswith("warm_start.")
        }  # its settings are shown with it
    return f"changes {others}, too" if others and name not in ("epsilon", "noise", "training") else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, float) and type(other) is int:
        return one == float(other)  # 10^30 is no float, the nearest one will do
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _flat(value: Any, above: str = "") -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        return {above: value}
    return {
        key: leaf
        for name, each in value.items()
        for key, leaf in _flat(each, f"{above}.{name}" if above else name).items()
    }
