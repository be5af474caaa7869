"""Files that come from anywhere: nothing in them ever runs, and each is refused with one line."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from small_runs import copy, crash_after, resume, train

from datalens import DataLens
from datalens.audit.verify import verify_run
from datalens.errors import DataLensError
from datalens.training.heads import heads_file
from datalens.training.run_folder import RunFolder


class _Bomb:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        return os.mkdir, (self.path, 0o700)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile") / "run"
    train(root, steps=5)
    return root


def _contents(trap: Path) -> dict[str, bytes]:
    many = json.dumps(
        {"__metadata__": {}, "x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
    )
    return {
        "pickle": pickle.dumps(_Bomb(str(trap))),
        "nothing": b"",
        "garbage": bytes(range(256)) * 8,
        "deep": b"[" * 200_000,
        "numbers": b'{"format": NaN, "config": 1e999, "image_shape": [1, 999999999, 999999999]}',
        "huge": struct.pack("<Q", len(many)) + many.encode(),
        "long": struct.pack("<Q", 2**63) + b"{}",
    }


PLACES = (
    "release/generator.safetensors",
    "release/config.json",
    "release/ledger.jsonl",
    "release/directions.bin",
    "release/certificate.json",
    "release/README.md",
    "release/load_generator.py",
    "private/secrets.json",
    "private/partition.safetensors",
    "private/checkpoints/step-00000005/state.safetensors",
    "private/checkpoints/step-00000005/meta.json",
)


@pytest.mark.parametrize("place", PLACES)
def test_r45_no_file_of_a_run_can_run_code(whole: Path, tmp_path: Path, place: str) -> None:
    trap = tmp_path / "trap"
    for kind, content in _contents(trap).items():
        heads_file().unlink(missing_ok=True)
        root = copy(whole, tmp_path / kind.replace(" ", "-"))
        (root / place).write_bytes(content)
        for use in (lambda root=root: DataLens.load(root).sample(2), lambda root=root: resume(root)):
            complaint = _complaint(use)
            assert "\n" not in complaint, kind
            assert len(complaint) < 600, kind
        heads_file().unlink(missing_ok=True)
        broken = copy(whole, tmp_path / f"{kind.replace(' ', '-')}-verify")
        (broken / place).write_bytes(content)
        found = verify_run(broken, replay=place.endswith(("bin", "rs", "config.json")))
        assert found.agrees is place.startswith("private"), (kind, found.differences)
        assert not trap.exists(), kind


def test_a_cache_of_heads_that_is_damaged_stops_nobody(tmp_path: Path) -> None:
    root = tmp_path / "run"
    crash_after(root, 3)
    for content in _contents(tmp_path / "trap").values():
        heads_file().write_bytes(content)
        assert not (tmp_path / "trap").exists()
    heads_file().write_text(json.dumps({json.loads(_header(root))["body"]["run_id"]: "no head"}))
    resume(root)


def test_settings_that_ask_for_all_memory_are_refused_before_any_is_taken(
    whole: Path, tmp_path: Path
) -> None:
    root = copy(whole, tmp_path / "run")
    path = root / "release" / "config.json"
    value = json.loads(path.read_text())
    value["config"]["student"]["hidden_units"] = 65536  # allowed, and far more than the file holds
    path.write_text(json.dumps(value))
    with pytest.raises(DataLensError, match="do not fit"):
        DataLens.load(root)


def test_links_in_place_of_the_private_side_are_not_followed_when_purging(
    whole: Path, tmp_path: Path
) -> None:
    root = copy(whole, tmp_path / "run")
    private = root / "private"
    private.rename(tmp_path / "elsewhere")
    private.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataLensError, match="is a link"):
        RunFolder(root).purge()
    assert (tmp_path / "elsewhere" / "secrets.json").exists()


def _complaint(use: Callable[[], object]) -> str:
    try:
        use()
    except DataLensError as error:
        return str(error)
    return ""


def _header(root: Path) -> str:
    return (root / "release" / "ledger.jsonl").read_text().splitlines()[0]


@pytest.mark.parametrize("said", ["[]", "not JSON", "[" * 100_000], ids=["no object", "no JSON", "deep"])
def test_a_generator_that_says_nonsense_of_its_making_is_refused_in_one_line(
    tmp_path: Path, said: str
) -> None:
    from safetensors.numpy import save_file

    from datalens.audit.generator_reader import generator_environment
    from datalens.audit.ledger_reader import Difference
    from datalens.errors import CheckpointError
    from datalens.training.release import read_environment

    path = tmp_path / "generator.safetensors"
    save_file({"x": np.zeros(2)}, path, {"environment": said})
    with pytest.raises(CheckpointError, match="restore the file") as caught:
        read_environment(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(Difference, match="what it was made in"):
        generator_environment(path)
    path.write_bytes(b"\xff" * 100)  # a header of 2^64 - 1 bytes
    with pytest.raises(Difference, match="what it was made in"):
        generator_environment(path)
