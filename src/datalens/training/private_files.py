"""What only the owner of a run may have: root key, slot map, fingerprint of the data. All under ``private/``."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from datalens.data.images import LabelledImages
from datalens.errors import CheckpointError, RunError
from datalens.randomness import ROOT_BYTES, Streams
from datalens.teachers.groups import SlotMap, slot_map_from_arrays
from datalens.training.files import PRIVATE, read_json, write_atomically, write_json
from datalens.training.run_folder import RunFolder


@dataclass(frozen=True)
class Secrets:
    """What a run needs to go on and may never show.

    Attributes:
        private_root: key of the private random streams.
        fingerprint: SHA-256 of the data, to notice a wrong file.
        budget_file: the data set's budget that is charged too, or None.
    """

    private_root: bytes
    fingerprint: str
    budget_file: Path | None = None

    @property
    def streams(self) -> Streams:
        """The private random streams."""
        return Streams(self.private_root)

    def write(self, path: Path) -> None:
        """Put it on disk, for the owner alone."""
        budget_file = None if self.budget_file is None else str(self.budget_file)
        value = {
            "private_root": self.private_root.hex(),
            "fingerprint": self.fingerprint,
            "budget_file": budget_file,
        }
        write_json(path, value, mode=PRIVATE)

    @classmethod
    def read(cls, path: Path) -> Secrets:
        """Read :meth:`write`.

        Raises:
            RunError: missing or damaged.
        """
        data: Any = read_json(path)
        try:
            root = bytes.fromhex(data["private_root"])
            budget_file = data.get("budget_file")
            if len(root) != ROOT_BYTES or not isinstance(data["fingerprint"], str):
                raise ValueError("a key of the wrong size")
            return cls(root, data["fingerprint"], None if budget_file is None else Path(budget_file))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise RunError(f"{path}: is damaged; the run cannot go on without it, restore the file") from None


def require_private(folder: RunFolder) -> None:
    """Refuse a run whose private side was purged, also where scores were kept there since.

    Raises:
        RunError: it cannot go on.
    """
    if not folder.secrets.is_file() and not folder.partition.is_file():
        raise RunError(
            f"{folder.root}: its private side is gone (purged?), so it cannot go on; sampling needs only release/"
        )
    for path in (folder.secrets, folder.partition):
        if not path.is_file():
            raise RunError(f"{path}: is missing; the run cannot go on without it, restore the file")


def fingerprint(data: LabelledImages) -> str:
    """SHA-256 of the data; private, and only to notice a wrong file."""
    digest = hashlib.sha256(np.ascontiguousarray(data.images).tobytes())
    digest.update(np.ascontiguousarray(data.labels).tobytes())
    if data.group_ids is not None:
        digest.update(b"groups" + np.ascontiguousarray(data.group_ids).tobytes())
    digest.update(json.dumps([list(data.images.shape), list(data.classes)]).encode())
    return digest.hexdigest()


def save_partition(path: Path, partition: SlotMap) -> None:
    """Write the slot map, for the owner alone."""
    write_atomically(path, safetensors.numpy.save(partition.to_arrays()), mode=PRIVATE)


def load_partition(path: Path) -> SlotMap:
    """Read the slot map.

    Raises:
        CheckpointError: missing or damaged.
    """
    try:
        return slot_map_from_arrays(safetensors.numpy.load(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(
            f"{path}: cannot be read ({reason:.120}); the run cannot go on without it, restore the file"
        ) from None
