"""Checkpoints of the private side: whole or absent, checksummed, the last two kept. Never to be shared.

A checkpoint is a folder with ``state.safetensors`` (the student), a file for every part of the teachers, and
``meta.json``, which holds the SHA-256 of each. It is written under a temporary name, flushed, then renamed.
How the teachers are cut into parts does not matter to who reads them, so any number of ranks can.
Nothing is pickled, so nothing runs when one is read.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from datalens.errors import CheckpointError, RunError
from datalens.privacy.durable import sync_folder
from datalens.teachers.parts import TeacherPart
from datalens.training.files import PRIVATE, file_digest, read_json, write_json

KEPT = 2
STATE = "state.safetensors"
_NAME = re.compile(r"step-(\d{8})")
_PART = re.compile(r"teachers-(\d{8})-(\d{8})\.safetensors")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run after ``step`` generator steps.

    Attributes:
        step: number of steps done; the next one has this number.
        tensors: of the student, flat name -> tensor.
        path: its folder, where the teachers' parts are, see :func:`read_parts`.
        head: index and hash of the ledger's last line then.
        last_step: number of the last released step then, -1 for none.
        passed_over: one line for each newer checkpoint that was damaged.
    """

    step: int
    tensors: dict[str, Tensor]
    path: Path
    head: tuple[int, str]
    last_step: int
    passed_over: tuple[str, ...] = field(default=())


def read_parts(folder: Path, span: tuple[int, int] | None = None) -> Iterator[TeacherPart]:
    """The teachers' states of a checkpoint in order, read one by one.

    Args:
        folder: of the checkpoint.
        span: (first, last + 1): parts that hold none of these teachers are left out.

    Raises:
        CheckpointError: a part that cannot be read.
    """
    found = [(match, path) for path in folder.iterdir() if (match := _PART.fullmatch(path.name))]
    for match, path in sorted(found, key=lambda pair: pair[1].name):
        start, stop = int(match[1]), int(match[2]) + 1
        if span is not None and (stop <= span[0] or start >= span[1]):
            continue
        try:
            yield TeacherPart(start, stop, safetensors.torch.load_file(path))
        except (OSError, safetensors.SafetensorError) as error:
            raise CheckpointError(f"{path}: cannot be read ({' '.join(str(error).split()):.120})") from None


def write_parts(folder: Path, parts: Iterable[TeacherPart]) -> dict[str, str]:
    """Write the teachers' states into the folder of a checkpoint in the making.

    Returns:
        From file to SHA-256.

    Raises:
        OSError, SafetensorError: they cannot be written.
    """
    digests: dict[str, str] = {}
    for part in parts:
        file = f"teachers-{part.start:08d}-{part.stop - 1:08d}.safetensors"
        digests[file] = _write(folder / file, part.tensors)
    return digests


def save_checkpoint(
    folder: Path,
    step: int,
    tensors: Mapping[str, Tensor],
    write_teachers: Callable[[Path], Mapping[str, str]],
    *,
    head: tuple[int, str],
    last_step: int,
) -> Path:
    """Write one checkpoint and drop all but the newest two.

    Args:
        folder: where checkpoints lie, under ``private/``.
        step: generator steps done.
        tensors: of the student, flat name -> tensor.
        write_teachers: puts the teachers' states into the folder it is given, and returns their SHA-256 by file.
        head: the ledger's.
        last_step: number of the last released step, -1 for none.

    Raises:
        CheckpointError: it cannot be written; older ones are untouched.
    """
    name = f"step-{step:08d}"
    temporary, final, old = folder / f".{name}.tmp", folder / name, folder / f".{name}.old.tmp"
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True, mode=0o700)
        digests = {STATE: _write(temporary / STATE, tensors)}
        digests |= write_teachers(temporary)
        meta = {"head": list(head), "last_step": last_step, "step": step, "sha256": digests}
        write_json(temporary / "meta.json", meta, mode=PRIVATE)
        shutil.rmtree(old, ignore_errors=True)
        if final.exists():
            final.rename(old)
        temporary.rename(final)
        sync_folder(folder)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, RunError, CheckpointError, safetensors.SafetensorError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        reason = " ".join(str(error).split())
        raise CheckpointError(
            f"{final}: checkpoint cannot be written ({reason}); make room, then resume the run"
        ) from None
    for _, path in _found(folder)[:-KEPT]:
        shutil.rmtree(path, ignore_errors=True)
    return final


def _write(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write tensors to disk for the owner alone; their file's SHA-256."""
    path.touch(PRIVATE)
    safetensors.torch.save_file({name: value.contiguous() for name, value in tensors.items()}, path)
    path.chmod(PRIVATE)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return file_digest(path)


def latest_checkpoint(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that is whole, with a line for each newer one that is not; None if there is none.

    Raises:
        CheckpointError: there are checkpoints and every one of them is damaged.
    """
    damaged: list[str] = []
    for step, path in reversed(_found(folder)):
        try:
            return _read(path, step, tuple(damaged))
        except CheckpointError as error:
            damaged.append(str(error))
    if damaged:
        raise CheckpointError(f"every checkpoint is damaged: {'; '.join(damaged)}; restore one of them")
    return None


def _read(path: Path, step: int, passed_over: tuple[str, ...]) -> Checkpoint:
    try:
        meta = read_json(path / "meta.json")
        if not isinstance(meta, dict) or meta.get("step") != step or not isinstance(meta.get("sha256"), dict):
            raise CheckpointError(f"{path / 'meta.json'}: damaged")
        for name, digest in meta["sha256"].items():
            if file_digest(path / Path(name).name) != digest:
                raise CheckpointError(f"{path / name}: damaged (its SHA-256 is not the recorded one)")
        head, last_step = _known(meta, path)
        tensors = safetensors.torch.load_file(path / STATE)
    except (RunError, OSError, safetensors.SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: damaged ({' '.join(str(error).split()):.120})") from None
    return Checkpoint(step, tensors, path, head, last_step, passed_over)


def _known(meta: dict[str, Any], path: Path) -> tuple[tuple[int, str], int]:
    """What the checkpoint knows of the ledger: without that it is no checkpoint, and never a fresh start."""
    match meta.get("head"), meta.get("last_step"):
        case [int(index), str(digest)], int(last_step):
            return (index, digest), last_step
    raise CheckpointError(f"{path}: damaged (it does not say what was charged)")


def _found(folder: Path) -> list[tuple[int, Path]]:
    if not folder.is_dir():
        return []
    matches = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    return sorted((int(match[1]), path) for match, path in matches if match)
