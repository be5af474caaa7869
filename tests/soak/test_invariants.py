"""The soak's checks can fail: each is shown what it must see."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from small_runs import crash_after, train
from soak.commands import Ended
from soak.damage import damage, files_of
from soak.flat import Use, growth, measure, thirds
from soak.invariants import (
    Seen,
    ended_well,
    not_begun,
    nothing_half_written,
    nothing_left,
    tree,
    untouched,
)
from soak.plan import Disturbance, as_toml, draw
from soak.rounds import Soak, played

from datalens.privacy.events import GaussianEvent
from datalens.privacy.ledger import Ledger
from datalens.training.run_folder import RunFolder


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("soak") / "run"
    crash_after(root, 5)
    return root


def lines_of(root: Path) -> list[str]:
    return RunFolder.open(root).ledger.read_text().splitlines(keepends=True)


def test_a_sound_run_violates_nothing(crashed: Path, tmp_path: Path) -> None:
    seen = Seen()
    assert seen.look(crashed) == []
    assert len(seen.directions) == 5
    assert seen.look(crashed) == []
    assert nothing_half_written(crashed) == nothing_left(tmp_path) == []


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (Ended([], 1, "error: x"), "exit status 1"),
        (Ended([], -11, ""), "exit status -11"),
        (Ended([], 0, "Traceback (most recent call last):\n  ..."), "a traceback"),
        (Ended([], 2, ""), "without one line"),
        (Ended([], 2, "error: one\nerror: two"), "without one line"),
        (Ended([], 2, "error: one\nof two lines"), "without one line"),
    ],
)
def test_a_command_that_ends_badly_is_seen(ended: Ended, words: str) -> None:
    assert any(words in line for line in ended_well(ended, (0, 2)))


def test_commands_that_end_well_are_left_alone() -> None:
    assert ended_well(Ended([], 0, "warning: take care"), (0, 2)) == []
    assert ended_well(Ended([], 2, "warning: take care\nerror: give more"), (0, 2)) == []


def test_a_ledger_that_lost_lines_is_seen(crashed: Path, tmp_path: Path) -> None:
    """Directions and checkpoints say whose charge is gone; what was seen earlier says that it was there."""
    seen = Seen()
    seen.look(crashed)
    root = _copy(crashed, tmp_path)
    RunFolder.open(root).ledger.write_text("".join(lines_of(root)[:-2]))
    found = seen.look(root)
    assert any("no longer has them all" in line for line in found)
    assert any("no line of the ledger pays for it" in line for line in found)
    assert any("no line of the ledger pays for it" in line for line in Seen().look(root))


def test_a_checkpoint_that_knows_more_than_the_ledger_is_seen(crashed: Path, tmp_path: Path) -> None:
    root = _copy(crashed, tmp_path)
    folder = RunFolder.open(root)
    folder.directions.unlink()
    folder.ledger.write_text("".join(lines_of(root)[:2]))
    assert any("step-00000003 knows line" in line for line in Seen().look(root))


def test_a_flipped_byte_of_the_ledger_is_seen(crashed: Path, tmp_path: Path) -> None:
    root = _copy(crashed, tmp_path)
    damage([RunFolder.open(root).ledger], random.Random(0), ("flip",))
    assert any("cannot be read any more" in line for line in Seen().look(root))


def test_a_direction_that_is_gone_is_seen(crashed: Path, tmp_path: Path) -> None:
    seen = Seen()
    seen.look(crashed)
    root = _copy(crashed, tmp_path)
    path = RunFolder.open(root).directions
    path.write_bytes(path.read_bytes()[:-5])
    assert any("a direction that was recorded is gone" in line for line in seen.look(root))
    path.unlink()
    seen.directions[0] = b""
    assert any("the file of directions is gone" in line for line in seen.look(root))


def test_more_spent_than_authorised_is_seen(crashed: Path, tmp_path: Path) -> None:
    root = _copy(crashed, tmp_path)
    with Ledger.open(RunFolder.open(root).ledger) as ledger:
        assert any("locked" in line for line in Seen().look(root))
        ledger.charge(GaussianEvent(100.0, 1.0, 1), {"step": 99})
    assert any("authorised" in line for line in Seen().look(root))


def test_settings_that_are_gone_and_an_open_private_side_are_seen(crashed: Path, tmp_path: Path) -> None:
    seen = Seen()
    root = _copy(crashed, tmp_path)
    folder = RunFolder.open(root)
    folder.private.chmod(0o755)
    assert seen.look(root) == ["private/ is open to others"]
    folder.config.unlink()
    found = seen.look(root)
    assert any("settings are gone" in line for line in found)
    assert any("no settings to go on with" in line for line in not_begun(root))


def test_what_is_left_behind_or_changed_is_seen(crashed: Path, tmp_path: Path) -> None:
    root = _copy(crashed, tmp_path)
    before = tree(root)
    (root / "private" / ".secrets.json.ab.tmp").touch()
    assert len(nothing_half_written(root)) == len(nothing_left(tmp_path)) == 1
    assert untouched(before, before) == []
    assert ".secrets.json.ab.tmp" in untouched(before, tree(root))[0]
    RunFolder.open(root).config.chmod(0o600)
    assert "config.json" in untouched(before, tree(root))[0]


@pytest.mark.parametrize("number", range(9))
def test_damage_is_done(number: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(100))
    before = tree(tmp_path)
    damage(files_of(tmp_path), random.Random(number))
    assert tree(tmp_path) != before


def uses(memory: float = 0.0, handles: float = 0.0, threads: float = 0.0) -> list[Use]:
    """Of a hundred rounds, with so much more after each; and some noise."""
    return [
        Use(400.0 + number % 5 + memory * number, 10 + int(handles * number), 4 + int(threads * number))
        for number in range(100)
    ]


def test_growth_is_seen_and_a_plain_is_not() -> None:
    assert growth(uses()) == []
    assert any("memory grows" in line for line in growth(uses(memory=1.0)))
    assert any("file handles grow" in line for line in growth(uses(handles=0.1)))
    assert any("threads grow" in line for line in growth(uses(threads=0.1)))


def test_few_rounds_show_no_trend_and_warming_up_is_none() -> None:
    assert thirds(uses(memory=99.0)[:8]) is None
    warm = [Use(100.0, 3, 1)] * 15 + uses()[:85]
    assert growth(warm) == []


def test_handles_are_really_counted(tmp_path: Path) -> None:
    before = measure()
    with (tmp_path / "a").open("w"), (tmp_path / "b").open("w"):
        assert measure().handles == before.handles + 2
    assert measure().handles == before.handles
    assert before.rss_mib > 10


def test_a_seed_and_a_number_say_the_whole_round() -> None:
    plans = [draw(3, number) for number in range(2 * len(Disturbance))]
    assert plans == [draw(3, number) for number in range(2 * len(Disturbance))]
    assert plans[5].rng.random() == draw(3, 5).rng.random() != draw(4, 5).rng.random()
    for block in (plans[: len(Disturbance)], plans[len(Disturbance) :]):
        assert {plan.disturbance for plan in block} == set(Disturbance)
    assert "[settings.generator]" in as_toml({"settings": {"generator": {"channels": 4}}})


def test_a_violation_is_logged_its_folder_kept_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(scene: object) -> None:
        raise OSError("the disk burns")

    plan = draw(0, 0)
    monkeypatch.setitem(played.__globals__["PROCEDURES"], plan.disturbance, fails)
    soak = Soak(0, tmp_path / "runs", tmp_path / "log")
    assert any("the disk burns" in line for line in soak.play(plan))
    assert soak.conclude() == 1
    line, summary = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert Path(line["kept"]).is_dir()
    assert (line["round"], line["seed"], line["disturbance"]) == (0, 0, plan.disturbance)
    assert (summary["violations"], summary["rounds"], summary["flat"]) == (1, 1, None)


def _copy(root: Path, folder: Path) -> Path:
    import shutil

    return shutil.copytree(root, folder / "run")


def test_a_finished_run_has_nothing_half_written(tmp_path: Path) -> None:
    train(tmp_path / "run")
    assert Seen().look(tmp_path / "run") == nothing_half_written(tmp_path / "run") == []
