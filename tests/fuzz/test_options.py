"""Every option and argument of every command, found by themselves, with every odd value there is.

A value is refused by one line, exit status 2, with nothing written; or it is taken, and means what it says.
The ordinary tests take a fixed sample, the slow ones all.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from command_tree import commands, longest
from fuzz_driver import Outcome, answer, complaint
from fuzz_scenes import SCENES, Scene, make_scene
from odd_values import ALL

from datalens.cli.params import Classes, ImageSize, Number, Range, Several, Whole
from datalens.errors import one_line

COMMANDS = dict(commands())
SAMPLED = 1
"""Odd values of each option in the ordinary tests."""
REMEDIES = {
    "--noise-stddev": "more noise",
    "--num-steps": "fewer steps",
    "--num-teachers": "more teachers",
    "--top-k": "a smaller top_k",
    "--batch-size": "batch",
    "--group-size": "group_size",
}
"""How a line names what was too much of, where several settings together are."""
LEAVES = {"public_record_count": "record_count_is_public", "method": "training"}
"""Options whose setting has another name."""
SHAPE_OTHERS = {"recipe", "config_file", "method", "noise", "epsilon", "resume"}
"""Options on which other settings depend by what their help says."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with what the scenes name."""
    folder = tmp_path_factory.mktemp("odd") / "here"
    folder.mkdir()
    make_scene(folder)
    return folder


def test_every_command_has_a_scene() -> None:
    assert {scene.verb for scene in SCENES} == set(COMMANDS)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: " ".join(scene.line)[:40])
def test_a_sample_of_odd_values(folder: Path, scene: Scene) -> None:
    assert faults(folder, scene, SAMPLED) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: " ".join(scene.line)[:40])
def test_all_odd_values(folder: Path, scene: Scene) -> None:
    assert faults(folder, scene, len(ALL)) == []


@pytest.mark.parametrize("verb", COMMANDS, ids=" ".join)
def test_an_option_twice_or_misspelt_is_refused(folder: Path, verb: tuple[str, ...]) -> None:
    """A script that gives an option twice has an error in it: the last does not win in silence."""
    scene = next(scene for scene in SCENES if scene.verb == verb)
    options = [param for param in COMMANDS[verb].params if isinstance(param, click.Option)]
    known = {name for param in options for name in param.opts} | {"--help"}
    for param in options:
        name = longest(param)
        value = [] if param.is_flag else ["1"]
        twice = answer(scene.with_option(name, *value, name, *value), folder)
        assert complaint(twice, (f"{name} is given more than once",)) is None, twice
        if name[:-1] not in known:
            wrong = answer(scene.with_option(name[:-1], *value), folder)
            assert complaint(wrong, (f"no option {name[:-1]}; did you mean",)) is None, wrong
        if param.is_flag:
            valued = answer(scene.with_option(f"{name}=false"), folder)
            assert complaint(valued, (name,)) is None, valued


def faults(folder: Path, scene: Scene, count: int) -> list[str]:
    """What goes wrong with so many odd values of each option and argument of a scene."""
    usual = answer(scene.line, folder)
    _tidy(folder, usual)
    assert usual.accepted, usual
    found, place = [], 0
    for param in COMMANDS[scene.verb].params:
        for name, text in _chosen(f"{scene.line} {param.name}", count):
            if isinstance(param, click.Argument):
                words = scene.with_argument(place, text)
            elif isinstance(param, click.Option) and param.is_flag:
                break
            else:
                words = scene.with_option(longest(param), text)
            try:
                outcome = answer(words, folder)
            except Exception as error:  # a traceback
                found.append(f"{' '.join(scene.verb)} {longest(param)}, {name}: {error!r:.200}")
                continue
            fault = _fault(outcome, usual, scene, param, text)
            if fault is not None:
                found.append(f"{' '.join(scene.verb)} {longest(param)}, {name}: {fault}")
            _tidy(folder, outcome)
        place += isinstance(param, click.Argument)
    return found


def _chosen(key: str, count: int) -> Iterator[tuple[str, str]]:
    """So many odd values, by lot and always the same."""
    yield from sorted(ALL.items(), key=lambda item: zlib.crc32(f"{key} {item[0]}".encode()))[:count]


def _fault(outcome: Outcome, usual: Outcome, scene: Scene, param: click.Parameter, text: str) -> str | None:
    if outcome.status == 2:
        name = longest(param)
        given = (text.strip() or repr(text), one_line(text), str(Path(text).expanduser()), repr(text)[1:-1])
        names = (name, param.name or "", param.human_readable_name, REMEDIES.get(name, name))
        return complaint(outcome, (*names, *(value[:20] for value in given)))
    if not outcome.accepted:
        return f"exit status {outcome.status}"
    loud = [line for line in outcome.err.splitlines() if not line.startswith("warning: ")]
    if loud and outcome.params.get("json_target") != "-":
        return f"taken, but says {loud}"
    got = outcome.params[param.name or ""]
    if not means(param.type, text, got[0] if isinstance(got, tuple) and param.nargs == -1 else got):
        return f"taken as {got!r:.80}"
    changed = {key for key, value in outcome.params.items() if value != usual.params[key]}
    allowed = {param.name} | {
        key.lstrip("-").replace("-", "_") for key in scene.beside.get(longest(param), {})
    }
    if not changed <= allowed:
        return f"changed {changed - allowed}, too"
    strange = [name for name in outcome.changes if not _is_asked(name, outcome)]
    if strange:
        return f"wrote {strange}"
    return _unlike(outcome, usual, param.name or "", got)


def means(kind: click.ParamType, text: str, got: Any) -> bool:
    """Whether a value is what plain reading makes of its text."""
    if isinstance(kind, Whole):
        return text.isascii() and "_" not in text and text == text.strip() and int(text) == got
    if isinstance(kind, Number):
        return text.isascii() and "_" not in text and text == text.strip() and repr(float(text)) == repr(got)
    if isinstance(kind, Classes | ImageSize | Range | Several):
        items = got if isinstance(got, tuple) else (got,)
        return len(text.replace("..", ",").replace("x", ",").split(",")) == len(items)
    return str(got) == text or str(got).split("-")[0] == text


def _is_asked(name: str, outcome: Outcome) -> bool:
    """Whether a file is one that an option names, or lies below it."""
    asked = [outcome.params.get(key) for key in ("json_target", "out", "store", "scratch", "file")]
    return any(
        Path(name) == Path(target) or Path(target) in Path(name).parents or Path(name) in Path(target).parents
        for target in asked
        if isinstance(target, str)
    )


def _unlike(outcome: Outcome, usual: Outcome, name: str, got: Any) -> str | None:
    """How the settings of the training that would begin are others than asked for."""
    if outcome.config is None or usual.config is None:
        return None
    mine, theirs = _leaves(outcome.config.to_json()), _leaves(usual.config.to_json())
    leaf = LEAVES.get(name, name)
    for path, value in mine.items():
        if path[-1] == leaf and len(path) == 2 and value != got:
            return f"would train with {'.'.join(path)} = {value!r:.80} in place of {got!r:.80}"
    others = {
        path for path in mine.keys() | theirs if mine.get(path) != theirs.get(path) and path[-1] != leaf
    }
    if others and name not in SHAPE_OTHERS and not name.startswith(("levels", "sketch")):
        return f"would train with other {others}"
    return None


def _leaves(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    if not isinstance(value, dict):
        return {path: value}
    return {key: leaf for name, each in value.items() for key, leaf in _leaves(each, (*path, name)).items()}


def _tidy(folder: Path, outcome: Outcome) -> None:
    """Remove what an accepted command wrote."""
    for name in {Path(change).parts[0] for change in outcome.changes}:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
