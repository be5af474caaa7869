"""The sample of mutants: which edits are made, that equal seeds draw the same, and that the tree is left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import mutants
import pytest
from mutant_edits import Mutant, mutants_of
from mutant_page import explanations, page

TOY = '''"""A text with 1 + 1 in it."""

from typing import TYPE_CHECKING

__all__ = ["f"]

if TYPE_CHECKING:
    LIMIT = 7


class Box(object):
    size: int = 3

    @property
    def full(self) -> bool:
        return self.size >= 3 and not self.open


def f(left: int | None, right: int, *, wide: bool = False) -> int:
    """Doc < doc."""
    if right < 0:
        raise ValueError(f"right is {right + 1}: give 1 or more")
    total = g(left, right, scale=2)
    log.total = total
    return total * right
'''
"""A module with one of everything."""


def made(text: str = TOY) -> dict[tuple[str, str], str]:
    """(kind, what the line becomes) -> the line as it was."""
    return {(mutant.kind, mutant.after): mutant.before for mutant in mutants_of("toy.py", text)}


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("comparison", "if right <= 0:"),
        ("comparison", "if right >= 0:"),
        ("comparison", "return self.size > 3 and not self.open"),
        ("boolean", "return self.size >= 3 or not self.open"),
        ("boolean", "return self.size >= 3 and bool(self.open)"),
        ("constant", "size: int = (3 + 1)"),
        ("constant", "size: int = (3 - 1)"),
        ("constant", "def f(left: int | None, right: int, *, wide: bool = True) -> int:"),
        ("default removed", "def f(left: int | None, right: int, *, wide: bool) -> int:"),
        ("arithmetic", "return total / right"),
        ("return value", "return (total * right) + 1"),
        ("return value", "return not (self.size >= 3 and not self.open)"),
        ("statement removed", "pass"),
        ("arguments swapped", "total = g(right, left, scale=2)"),
        ("argument removed", "total = g(left, right, )"),
    ],
)
def test_an_edit_of_each_kind_is_made(kind: str, after: str) -> None:
    assert (kind, after) in made()


def test_nothing_is_made_of_messages_annotations_docstrings_and_names() -> None:
    touched = set(made().values())
    assert not any(
        "Doc" in line or "A text" in line or "__all__" in line or "LIMIT" in line for line in touched
    )
    found = mutants_of("toy.py", TOY)
    assert {mutant.kind for mutant in found if "raise" in mutant.before} == {"statement removed"}
    assert not any("left: int & None" in after for _, after in made())


def test_every_mutant_compiles_changes_one_place_and_has_a_name_of_its_own() -> None:
    found = mutants_of("toy.py", TOY)
    assert len({mutant.key for mutant in found}) == len(found)
    for mutant in found:
        text = mutant.apply(TOY)
        compile(text, "toy.py", "exec")
        assert text != TOY
        assert text.startswith(TOY[: mutant.start]) and text.endswith(TOY[mutant.stop :])


def test_a_name_lasts_where_lines_move_and_columns_are_letters() -> None:
    before = {mutant.key: mutant.line for mutant in mutants_of("toy.py", TOY)}
    moved = TOY.replace("log.total = total", "log.total = total\n    log.ä = 'ß'; log.x = 5 * total")
    after = {mutant.key: mutant for mutant in mutants_of("toy.py", moved)}
    assert before.keys() <= after.keys()
    assert "log.ä = 'ß'; log.x = 5 / total" in {mutant.after for mutant in after.values()}


TEST = "from datalens.noise.toy import LIMIT, OPEN\n\n\ndef test_it() -> None:\n    assert {}\n"


def toy_repository(root: Path) -> Path:
    """A room with one module, of which the mirrored test, the further one and none each watch a part."""
    for part in ("tests/noise", "scripts", "benchmarks", "src/datalens/noise"):
        (root / part).mkdir(parents=True)
    (root / "src" / "datalens" / "__init__.py").write_text("")
    (root / "src" / "datalens" / "noise" / "toy.py").write_text("LIMIT = 3\nOPEN = True\n")
    (root / "tests" / "noise" / "test_toy.py").write_text(TEST.format("LIMIT > 2"))
    (root / "tests" / "test_further.py").write_text(TEST.format("OPEN"))
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n")
    return root


@pytest.fixture
def _light(monkeypatch: pytest.MonkeyPatch) -> None:
    """No PyTorch for a toy, and its further tests."""
    monkeypatch.setattr(mutants, "PRELOADED", [])
    monkeypatch.setattr(mutants, "FURTHER", {"noise": ("tests/test_further.py",)})


def test_equal_seeds_draw_the_same_and_others_do_not(tmp_path: Path) -> None:
    root = toy_repository(tmp_path)
    (root / "src" / "datalens" / "noise" / "more.py").write_text(TOY)
    first = [mutant.key for mutant in mutants.drawn(root, 3)]
    assert first == [mutant.key for mutant in mutants.drawn(root, 3)]
    assert sorted(first) == sorted(mutant.key for mutant in mutants.drawn(root, 4))
    assert first != [mutant.key for mutant in mutants.drawn(root, 4)]
    assert len(set(first)) == len(first) > 20


def test_tests_named_for_a_module_are_there() -> None:
    named = {
        test for tests in (*mutants.ELSEWHERE_TESTED.values(), *mutants.FURTHER.values()) for test in tests
    }
    assert [test for test in named if not (mutants.REPOSITORY / test).exists()] == []
    known = {"/".join(path.parts[-2:]) for path in mutants.files(mutants.REPOSITORY)}
    assert set(mutants.ELSEWHERE_TESTED) <= known
    for path in mutants.files(mutants.REPOSITORY):
        name = str(path.relative_to(mutants.REPOSITORY))
        assert all(
            (mutants.REPOSITORY / test.split("::")[0]).exists()
            for test in mutants.mirrored(mutants.REPOSITORY, name)
        )


@pytest.mark.usefixtures("_light")
def test_a_sample_kills_by_either_stage_goes_on_and_leaves_the_tree_alone(tmp_path: Path) -> None:
    root, log = toy_repository(tmp_path / "toy"), tmp_path / "mutants.jsonl"
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    mutants.sample(root, 0, 5.0, log)
    outcome = {result.after: (result.outcome, result.stage) for result in mutants.recorded(log).values()}
    assert outcome == {
        "LIMIT = (3 - 1)": ("killed", "mirrored"),
        "OPEN = False": ("killed", "further"),
        "LIMIT = (3 + 1)": ("survived", ""),
    }
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    lines = log.read_text()
    mutants.sample(root, 0, 5.0, log)  # nothing is left to try
    assert log.read_text() == lines
    (root / "tests" / "noise" / "test_toy.py").write_text(TEST.format("LIMIT == 3"))
    mutants.sample(root, 0, 5.0, log, again=True)
    assert {result.outcome for result in mutants.recorded(log).values()} == {"killed"}


@pytest.mark.usefixtures("_light")
def test_what_takes_too_long_and_what_fails_without_an_edit_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants, "SPARE", 1.0)
    root = toy_repository(tmp_path / "toy")
    first = mutants_of("src/datalens/noise/toy.py", "LIMIT = 3\nOPEN = True\n")[0]
    endless = replace(first, start=0, stop=0, new="import time\n\ntime.sleep(900)\n")
    runner, stages = mutants.Runner(root, tmp_path / "copy"), {"mirrored": ("tests/noise/test_toy.py",)}
    assert runner.outcome(endless, stages) == ("timed out", "mirrored")
    (root / "tests" / "noise" / "test_toy.py").write_text(TEST.format("not OPEN"))
    assert mutants.Runner(root, tmp_path / "red").outcome(first, stages) == ("not applicable", "")


def result_of(mutant: Mutant, outcome: str) -> mutants.Result:
    """A result as a sample would make it."""
    fields = {name: getattr(mutant, name) for name in ("key", "file", "line", "kind", "before", "after")}
    return mutants.Result(**fields, outcome=outcome, stage="", seconds=1.0, digest="")


def test_the_page_counts_shows_survivors_and_keeps_what_people_wrote(tmp_path: Path) -> None:
    found = mutants_of("src/datalens/noise/toy.py", TOY)
    piped = next(mutant for mutant in found if "|" in mutant.before)
    results = [result_of(mutant, "killed") for mutant in found if mutant is not piped] + [
        result_of(piped, "survived")
    ]
    lines = {mutant.key: mutant.line for mutant in found}
    text = page(results, lines, {}, seed=5, num_mutants=100)
    assert f"| noise | {len(found) - 1} | 1 | 0 | 0 |" in text
    assert (
        f"{len(found)} of 100 mutants" in text
        and "--seed 5" in text
        and "1, of which 0 are explained" in text
    )
    assert explanations(text) == {}
    row = next(line for line in text.splitlines() if piped.key in line)
    filled = text.replace(row, row.removesuffix("|  |") + r"| equal: `a \| b` |")
    said = explanations(filled)
    assert said == {piped.key: r"equal: `a \| b`"}
    kept = page(results, {key: line + 4 for key, line in lines.items()}, said, seed=5, num_mutants=100)
    assert explanations(kept) == said and f"noise/toy.py:{piped.line + 4}" in kept


def test_a_result_is_a_line_of_json_and_the_last_of_a_key_counts(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    first = result_of(mutants_of("a/b/noise/toy.py", TOY)[0], "survived")
    second = {**vars(first), "outcome": "killed"}
    log.write_text("".join(json.dumps(each) + "\n" for each in (vars(first), second)))
    assert mutants.recorded(log)[first.key].outcome == "killed"
