"""The teachers of a run on several ranks: the first one leads, the others do with theirs what it does with its own.

The first rank alone has a student, a mechanism, noise, a budget and a ledger. The others are sent the images of a
step, train and ask their teachers, and add their votes; they never learn what was released, and could not release
anything. So noise is drawn once, and on a sum that does not depend on the number of ranks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors
import torch

from datalens.distributed.ranks import Ranks
from datalens.errors import CheckpointError, RunError
from datalens.randomness import Streams
from datalens.teachers.ensemble import TallyResult, TeacherEnsemble
from datalens.teachers.family import Fakes, TeacherFamily
from datalens.teachers.shards import ShardSource
from datalens.teachers.store import TeacherStore
from datalens.training.checkpoint import read_parts, write_parts


class Crew(TeacherEnsemble):
    """This rank's share of the teachers, at work together with the other ranks'.

    On the first rank every method tells the other ranks first, so that they do the same; they are in
    :meth:`follow` meanwhile. A single process tells nobody, and has all teachers.

    Args:
        ranks: of the run.
        others: as for :class:`~datalens.teachers.ensemble.TeacherEnsemble`.

    Attributes:
        is_asked_to_stop: whether another rank was, as of the last step.
    """

    def __init__(
        self,
        family: TeacherFamily,
        shards: ShardSource,
        streams: Streams,
        chunk_size: int,
        device: torch.device,
        store: TeacherStore | None,
        span: tuple[int, int],
        ranks: Ranks,
    ) -> None:
        super().__init__(family, shards, streams, chunk_size, device, store, span, ranks.sum_)
        self.is_asked_to_stop: bool = False
        self._ranks = ranks
        self._stop: Callable[[], bool] = lambda: False

    def tally(
        self,
        fakes: Fakes,
        step: int,
        num_teacher_steps: int,
        top_k: int,
        clip_bound: float,
        images_per_teacher: int | None = None,
    ) -> TallyResult:
        """The votes of all teachers on all ranks, see :meth:`TeacherEnsemble.tally`."""
        fakes = self._shared(
            fakes,
            {
                "step": step,
                "num_teacher_steps": num_teacher_steps,
                "top_k": top_k,
                "clip_bound": clip_bound,
                "images_per_teacher": images_per_teacher,
            },
        )
        result = super().tally(fakes, step, num_teacher_steps, top_k, clip_bound, images_per_teacher)
        self.is_asked_to_stop = bool(self._ranks.largest(int(self._stop())))
        return result

    def write(self, folder: Path) -> dict[str, str]:
        """Put the states of all teachers into a checkpoint's folder, each rank its own.

        Returns:
            From file to SHA-256.

        Raises:
            CheckpointError: they cannot be written.
        """
        self._announce({"do": "write", "folder": folder.name})
        try:
            digests = write_parts(folder, self.parts())
        except (OSError, safetensors.SafetensorError) as error:
            raise CheckpointError(" ".join(str(error).split())) from None
        found = self._ranks.gather(json.dumps(digests))
        return {name: digest for text in found for name, digest in json.loads(text).items()}

    def read(self, folder: Path) -> None:
        """Take the states of all teachers from a checkpoint's folder, each rank its own.

        Raises:
            CheckpointError: they cannot be read, or are others.
        """
        self._announce({"do": "read", "folder": folder.name})
        self.load_parts(read_parts(folder, self.span))

    def dismiss(self, *, stopped: bool) -> None:
        """Let the other ranks end well, when all that the run shares is written."""
        self._announce({"do": "end", "stopped": stopped})

    def follow(self, checkpoints: Path, stop: Callable[[], bool]) -> bool:
        """Do what the first rank says, until it says that the run ends; for all other ranks.

        Args:
            checkpoints: their folder.
            stop: whether this rank was asked to stop; the first one hears of it after every step.

        Returns:
            Whether the run was stopped early.

        Raises:
            DataLensError: the first rank has ended without a word, or what it says cannot be done.
        """
        self._stop = stop
        while True:
            match self._ranks.hear():
                case {"do": "tally", "images": [*shape], "terms": {**terms}}:
                    images_BCHW = torch.empty([int(size) for size in shape])
                    labels_B = torch.empty(len(images_BCHW), dtype=torch.int64)
                    self.tally(Fakes(images_BCHW, labels_B), **terms)
                case {"do": "write", "folder": str(name)}:
                    self.write(checkpoints / name)
                case {"do": "read", "folder": str(name)}:
                    self.read(checkpoints / name)
                case {"do": "end", "stopped": bool(stopped)}:
                    return stopped
                case other:
                    raise RunError(f"the first rank says {other!r:.60}; run one version of datalens on all")

    def _announce(self, message: dict[str, Any]) -> None:
        if self._ranks.is_first:
            self._ranks.tell(message)

    def _shared(self, fakes: Fakes, terms: dict[str, Any]) -> Fakes:
        """The first rank's images, to the last bit, whatever another device would have made of the same weights."""
        if self._ranks.world_size == 1:
            return fakes
        images_BCHW, labels_B = fakes.images_BCHW.detach().cpu().contiguous(), fakes.labels_B.cpu()
        self._announce({"do": "tally", "images": list(images_BCHW.shape), "terms": terms})
        self._ranks.share_(images_BCHW)
        self._ranks.share_(labels_B)
        return Fakes(images_BCHW, labels_B)
