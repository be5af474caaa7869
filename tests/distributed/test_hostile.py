"""Ranks that are told different things, half the truth, or were started again too early."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_runs import small_config, small_data, train

from datalens.distributed.place import Place
from datalens.distributed.ranks import Ranks
from datalens.errors import RunError
from datalens.privacy.events import GaussianEvent
from datalens.privacy.ledger import Ledger
from datalens.training import opening
from datalens.training.config import Performance
from datalens.training.following import announce, follow
from datalens.training.run_folder import RunFolder
from datalens.training.session import Session
from datalens.training.unbegun import clear_unbegun


class _Wire(Ranks):
    """A second rank that hears what was told on the first."""

    def __init__(self) -> None:
        super().__init__(Place(1, 2, 1, 2))
        self.said: list[str] = []

    def tell(self, message: dict[str, Any]) -> None:
        self.said.append(json.dumps(message))

    def hear(self) -> dict[str, Any]:
        return json.loads(self.said.pop(0))


def test_a_rank_that_opens_another_run_than_the_first_is_refused(tmp_path: Path) -> None:
    """Two slot maps of the same records would give a record to two teachers, whose votes are charged as one's."""
    for name in "ab":
        train(tmp_path / name)
    ranks = _Wire()
    announce(ranks, Performance(), Ledger.read(RunFolder.open(tmp_path / "a").ledger).head)
    with pytest.raises(RunError, match="b: rank 1 sees another run there than the first rank"):
        follow(tmp_path / "b", small_data(), ranks, lambda: False)


# -- what the environment says ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"MASTER_ADDR": None},
            "WORLD_SIZE is 2, but the environment has no MASTER_ADDR; start with torchrun",
        ),
        ({"MASTER_ADDR": "", "RANK": None}, "has no RANK and no MASTER_ADDR"),
        ({"MASTER_PORT": "abc"}, "MASTER_PORT is 'abc': must be a whole number"),
        ({"MASTER_PORT": "99999"}, "MASTER_PORT is 99999: must be from 0 to 65535"),
        ({"MASTER_PORT": "-1"}, "MASTER_PORT is -1: must be from 0 to 65535"),
        ({"WORLD_SIZE": ""}, "WORLD_SIZE is '': must be a whole number"),
        ({"RANK": "first"}, "RANK is 'first': must be a whole number"),
    ],
)
def test_half_an_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str | None], words: str
) -> None:
    """Never taken for none: each of the processes would then train alone."""
    said = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", **changes}
    for name, value in said.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises(RunError, match=words):
        Place.from_environment()


@pytest.mark.parametrize("said", [{}, {"WORLD_SIZE": "1"}, {"RANK": "3"}])
def test_a_process_of_which_no_others_are_said_is_alone(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str]
) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert Place.from_environment() == Place()


# -- started again before anything had begun ----------------------------------------------------------------------


class _Killed(BaseException):
    """As if the process had died: nothing is tidied up."""


def _begun_until(root: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> RunFolder:
    """The folder of a run whose process died while it wrote this file."""
    stop = {"ledger": (Ledger, "create"), "secrets": (opening, "fingerprint")}
    stop |= {"partition": (opening, "save_partition"), "config": (opening, "write_json")}

    def die(*_: Any) -> None:
        raise _Killed

    with monkeypatch.context() as patched, pytest.raises(_Killed):
        patched.setattr(*stop[file], die)
        patched.setattr(RunFolder, "discard", lambda folder: None)
        Session.begin(small_config(), small_data(), root)
    return RunFolder(root)


@pytest.mark.parametrize("file", ["ledger", "secrets", "partition", "config"])
def test_a_folder_where_nothing_had_begun_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    folder = _begun_until(tmp_path / "run", monkeypatch, file)
    (folder.private / ".partition.safetensors.0.tmp").touch()
    assert folder.root.is_dir()
    assert clear_unbegun(folder.root)
    assert not folder.root.exists()


def test_a_folder_that_holds_anything_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A charge, a run's settings, a link, a stranger's file, another process that is about to begin."""
    half = _begun_until(tmp_path / "half", monkeypatch, "config")
    charged = RunFolder(shutil.copytree(half.root, tmp_path / "charged"))
    with Ledger.open(charged.ledger) as ledger:
        ledger.charge(GaussianEvent(2.0, 5.0, 192))
    foreign = RunFolder(shutil.copytree(half.root, tmp_path / "foreign"))
    (foreign.private / "notes.txt").touch()
    linked = RunFolder(shutil.copytree(half.root, tmp_path / "linked"))
    shutil.move(linked.private, tmp_path / "elsewhere")
    linked.private.symlink_to(tmp_path / "elsewhere")
    train(tmp_path / "whole", steps=2)
    (tmp_path / "empty").mkdir()
    for name in ("charged", "foreign", "linked", "whole", "empty", "absent"):
        before = sorted((tmp_path / name).rglob("*"))
        assert not clear_unbegun(tmp_path / name)
        assert sorted((tmp_path / name).rglob("*")) == before
    with Ledger.open(half.ledger), pytest.raises(RunError, match="in use by another process"):
        clear_unbegun(half.root)
    assert half.secrets.is_file()
