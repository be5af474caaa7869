"""All teachers of a run: trained and asked chunk by chunk, their votes summed as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from datalens.compression.image_cap import strongest_images, tally_of_images
from datalens.compression.topk_sign import SignVotes, topk_sign
from datalens.errors import ConfigError
from datalens.randomness import Streams
from datalens.teachers.family import Fakes, TeacherFamily
from datalens.teachers.shards import ShardSource
from datalens.teachers.store import MemoryStore, TeacherStore

TEACHER_BLOCK = 20
"""Teachers that share one random stream. Fixed: it decides who gets which draws, whatever the chunk size."""


@dataclass(frozen=True)
class Diagnostics:
    """What is seen of the teachers in one step. Private: it may be written under ``private/`` only.

    Attributes:
        step: the generator step.
        failed: (teacher, number of images) whose gradients were not finite, so that the votes were zero.
        rms_agreement: root mean square over images and coordinates of tally / N, between 0 and 1; votes of
            pure chance give sqrt(k / (D * N)), not 0.
        max_agreement: the largest |tally| / N.
    """

    step: int
    failed: tuple[tuple[int, int], ...]
    rms_agreement: float
    max_agreement: float


@dataclass(frozen=True)
class TallyResult:
    """The votes of one step. Private until a mechanism releases them.

    Attributes:
        tally_BD: int32 on the CPU: for each image and coordinate the sum of the teachers' votes.
        diagnostics: see :class:`Diagnostics`.
    """

    tally_BD: Tensor
    diagnostics: Diagnostics


class TeacherEnsemble:
    """Every teacher with its own shard, state and votes; nothing is shared between teachers.

    Guarantee: each teacher adds at most ``top_k`` votes of -1 or +1 to an image's tally, and changing one
    teacher's shard changes that teacher's votes alone. Memory for votes grows with the image and the chunk,
    not with the number of teachers. ``chunk_size`` and ``device`` are performance settings: initial weights
    and vote draws depend on the teacher and the step, never on the chunk.

    Args:
        family: the kind of teacher.
        shards: where the records of each teacher come from.
        streams: private random streams.
        chunk_size: teachers handled at once.
        device: where the teachers compute.
        store: where their states live; in memory on ``device`` unless given.

    Attributes:
        compress: from a gradient to at most ``top_k`` votes on an image, :func:`topk_sign`; experiments put
            something else in its place.

    Raises:
        ConfigError: no teachers, or a chunk of none.

    Source: paper, Algorithm 1 lines 6 to 13.
    """

    def __init__(
        self,
        family: TeacherFamily,
        shards: ShardSource,
        streams: Streams,
        chunk_size: int = TEACHER_BLOCK,
        device: torch.device | str = "cpu",
        store: TeacherStore | None = None,
    ) -> None:
        if shards.num_teachers < 1 or chunk_size < 1:
            raise ConfigError(
                f"{shards.num_teachers} teachers in chunks of {chunk_size}: both must be at least 1"
            )
        self.family = family
        self.num_teachers = shards.num_teachers
        self.chunk_size = chunk_size
        self.device = torch.device(device)
        self.compress: Callable[[Tensor, int, float, torch.Generator], SignVotes] = topk_sign
        self._shards = shards
        self._streams = streams
        self._store = store if store is not None else MemoryStore(self.num_teachers, self.device)
        for block, start, stop in _blocks(0, self.num_teachers):
            rng = streams.torch("teacher-weights", block)
            self._store.save(start, stop, family.init(stop - start, rng, self.device))

    def tally(
        self,
        fakes: Fakes,
        step: int,
        num_teacher_steps: int,
        top_k: int,
        clip_bound: float,
        images_per_teacher: int | None = None,
    ) -> TallyResult:
        """Train every teacher on its shard and the fakes, and sum the votes for each fake.

        Args:
            fakes: the step's generated images and labels.
            step: the generator step, which names the draws of the stochastic signs.
            num_teacher_steps: optimiser steps of every teacher before it votes.
            top_k: coordinates kept for each teacher and image.
            clip_bound: coordinate clip of a teacher's gradient.
            images_per_teacher: images that one teacher may vote on; None for all.
        """
        fakes = Fakes(fakes.images_BCHW.detach().to(self.device), fakes.labels_B.to(self.device))
        batch_size = len(fakes.images_BCHW)
        tally_BD = torch.zeros(
            batch_size, fakes.images_BCHW[0].numel(), dtype=torch.int32, device=self.device
        )
        failures: list[Tensor] = []
        for start in range(0, self.num_teachers, self.chunk_size):
            stop = min(start + self.chunk_size, self.num_teachers)
            shards = self._shards.chunk(start, stop, self.device)
            state = self.family.train(self._store.load(start, stop), shards, fakes, num_teacher_steps)
            grad_TBD = self.family.input_gradient(state, shards, fakes)
            self._store.save(start, stop, state)
            failures.append((~torch.isfinite(grad_TBD.abs().amax(2))).sum(1))
            image_TS = None
            if images_per_teacher is not None and images_per_teacher < batch_size:
                grad_TBD, image_TS = strongest_images(grad_TBD, images_per_teacher)
            for block, first, last in _blocks(start, stop):
                part = slice(first - start, last - start)
                vote_TBD = self._votes(grad_TBD[part], block, first, step, top_k, clip_bound)
                if image_TS is None:
                    tally_BD += vote_TBD.sum(0, dtype=torch.int32)
                else:
                    tally_BD += tally_of_images(vote_TBD, image_TS[part], batch_size)
        failed_T = torch.cat(failures).cpu()
        tally_BD = tally_BD.cpu()
        share_BD = tally_BD.double() / self.num_teachers
        diagnostics = Diagnostics(
            step=step,
            failed=tuple((int(t), int(failed_T[t])) for t in failed_T.nonzero().flatten()),
            rms_agreement=float(share_BD.square().mean().sqrt()),
            max_agreement=float(share_BD.abs().max()),
        )
        return TallyResult(tally_BD, diagnostics)

    def state_dict(self) -> dict[str, Tensor]:
        """All teachers' states, flat name -> tensor with axis 0 the teacher. Private."""
        return self._store.state_dict()

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what :meth:`state_dict` gave; draws need no state, they follow from the step.

        Raises:
            CheckpointError: states of another kind or number of teachers.
        """
        self._store.load_state_dict(tensors)

    def _votes(
        self, grad_TBD: Tensor, block: int, first: int, step: int, top_k: int, clip_bound: float
    ) -> Tensor:
        """Votes of the teachers ``first``... of one block, drawn as if the block were whole."""
        rng = self._streams.torch(f"vote-signs/{step}", block, self.device)
        offset, size = first - block * TEACHER_BLOCK, len(grad_TBD)
        if size < TEACHER_BLOCK:
            whole_TBD = grad_TBD.new_zeros(TEACHER_BLOCK, *grad_TBD.shape[1:])
            whole_TBD[offset : offset + size] = grad_TBD
            grad_TBD = whole_TBD
        return self.compress(grad_TBD, top_k, clip_bound, rng).vote_TBD[offset : offset + size]


def _blocks(start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """(block, first, last + 1) for the part of every block that lies in ``start`` to ``stop - 1``.

    >>> list(_blocks(15, 45))
    [(0, 15, 20), (1, 20, 40), (2, 40, 45)]
    """
    for block in range(start // TEACHER_BLOCK, -(-stop // TEACHER_BLOCK)):
        yield block, max(start, block * TEACHER_BLOCK), min(stop, (block + 1) * TEACHER_BLOCK)
