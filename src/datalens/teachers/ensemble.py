"""All teachers of a run: trained and asked chunk by chunk, their votes summed as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from threading import Lock

import torch
from torch import Tensor

from datalens.compression.image_cap import strongest_images, tally_of_images
from datalens.compression.topk_sign import SignVotes, topk_sign
from datalens.errors import ConfigError
from datalens.randomness import Streams
from datalens.teachers.family import Fakes, TeacherFamily, TeacherState
from datalens.teachers.parts import TeacherPart, joined, regrouped, rows_of
from datalens.teachers.room import state_bytes
from datalens.teachers.shards import ShardSource
from datalens.teachers.store import MemoryStore, TeacherStore
from datalens.teachers.threads import run_in_threads

TEACHER_BLOCK = 20
"""Teachers that share one random stream. Fixed: it decides who gets which draws, whatever the chunk size."""

PART_BYTES = 2**28
"""Most bytes of a part of a checkpoint, unless a chunk has more."""


@dataclass(frozen=True)
class Diagnostics:
    """What is seen of the teachers in one step. Private: it may be written under ``private/`` only.

    Attributes:
        step: the generator step.
        failed: (teacher, number of images) whose gradients were not finite, so that the votes were zero.
        rms_agreement: root mean square over images and coordinates of tally / N, between 0 and 1, in whole
            votes; votes of pure chance give sqrt(k / (D * N)), not 0.
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

    Chunks of teachers are handled by as many threads as PyTorch may use, one thread a chunk, so that the
    number of threads changes no vote. Where other processes handle the teachers outside ``span``, ``add_others``
    puts their votes into the sums.

    Guarantee: each teacher adds at most ``top_k`` votes of -1 or +1 to an image's tally, and changing one
    teacher's shard changes that teacher's votes alone. Memory for votes grows with the image and the chunk,
    not with the number of teachers. ``chunk_size``, ``device``, ``store`` and ``span`` are performance settings:
    initial weights and vote draws depend on the teacher and the step, never on the chunk.

    Args:
        family: the kind of teacher.
        shards: where the records of each teacher come from.
        streams: private random streams.
        chunk_size: teachers handled at once.
        device: where the teachers compute.
        store: where their states live; in memory on ``device`` unless given. Closed with the ensemble.
        span: (first, last + 1) of the teachers that are handled here; all unless given.
        add_others: adds the counts of the teachers handled elsewhere to integers, in place.

    Attributes:
        compress: from a gradient to at most ``top_k`` votes on an image, :func:`topk_sign`; experiments put
            something else in its place.
        width_of: from the coordinates of an image to those that are voted on; the same number unless changed.
        largest_vote: of a teacher on a coordinate, for the diagnostics.

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
        span: tuple[int, int] | None = None,
        add_others: Callable[[Tensor], None] = lambda counts: None,
    ) -> None:
        if shards.num_teachers < 1 or chunk_size < 1:
            raise ConfigError(
                f"{shards.num_teachers} teachers in chunks of {chunk_size}: both must be at least 1"
            )
        self.family = family
        self.num_teachers: int = shards.num_teachers
        self.chunk_size = chunk_size
        self.device: torch.device = torch.device(device)
        self.span: tuple[int, int] = span if span is not None else (0, self.num_teachers)
        self.compress: Callable[[Tensor, int, float, torch.Generator], SignVotes] = topk_sign
        self.width_of: Callable[[int], int] = int
        self.largest_vote = 1
        self._shards = shards
        self._streams = streams
        self._add_others = add_others
        first, last = self.span
        self._store = store if store is not None else MemoryStore(last - first, self.device, first)
        self._is_filled = False

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """(first, last + 1) of every chunk."""
        first, last = self.span
        return [(start, min(start + self.chunk_size, last)) for start in range(first, last, self.chunk_size)]

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
        self._fill()
        fakes = Fakes(
            fakes.images_BCHW.detach().to(self.device, non_blocking=True),
            fakes.labels_B.to(self.device, non_blocking=True),
        )
        batch_size = len(fakes.images_BCHW)
        width = self.width_of(fakes.images_BCHW[0].numel())
        tally_BD = torch.zeros(batch_size, width, dtype=torch.int32, device=self.device)
        failed_T = torch.zeros(self.num_teachers, dtype=torch.int32, device=self.device)
        adding = Lock()

        def ask(start: int, stop: int) -> None:
            shards = self._shards.chunk(start, stop, self.device)
            state = self.family.train(self._store.load(start, stop), shards, fakes, num_teacher_steps)
            grad_TBD = self.family.input_gradient(state, shards, fakes)
            self._store.save(start, stop, state)
            failed_T[start:stop] = (~torch.isfinite(grad_TBD.abs().amax(2))).sum(1)
            image_TS = None
            if images_per_teacher is not None and images_per_teacher < batch_size:
                grad_TBD, image_TS = strongest_images(grad_TBD, images_per_teacher)
            for block, first, last in _blocks(start, stop):
                part = slice(first - start, last - start)
                vote_TBD = self._votes(grad_TBD[part], block, first, step, top_k, clip_bound)
                if image_TS is None:
                    votes_BD = vote_TBD.sum(0, dtype=torch.int32)
                else:
                    votes_BD = tally_of_images(vote_TBD, image_TS[part], batch_size)
                with adding:
                    tally_BD.add_(votes_BD)

        chunks = self.chunks
        if step % 2:  # there and back: what was used last is still in the system's file cache
            chunks.reverse()
        run_in_threads(chunks, ask, self._store.prefetch, self.device)
        counts = torch.cat([tally_BD.flatten(), failed_T])
        self._add_others(counts)
        host = counts.cpu()  # the one wait for the device in a step
        tally_BD, failed_T = host[: -self.num_teachers].view_as(tally_BD), host[-self.num_teachers :]
        return TallyResult(tally_BD, self._diagnostics(step, tally_BD, failed_T))

    def parts(self) -> Iterator[TeacherPart]:
        """All states that are handled here, a part of at most :data:`PART_BYTES` (or a chunk) at a time."""
        self._fill()
        self._store.flush()
        waiting: list[TeacherPart] = []
        for start, stop in self.chunks:
            tensors = self._store.load(start, stop)
            waiting.append(TeacherPart(start, stop, tensors))
            if state_bytes(tensors) * (len(waiting) + 1) > PART_BYTES or stop == self.span[1]:
                whole = joined(waiting)
                yield replace(whole, tensors={name: value.cpu() for name, value in whole.tensors.items()})
                for part in waiting:
                    self._store.unload(part.start, part.stop)
                waiting = []

    def load_parts(self, parts: Iterable[TeacherPart]) -> None:
        """Put back what :meth:`parts` gave; draws need no state, they follow from the step.

        Args:
            parts: all teachers of the span, in order; others are passed over. How they were cut does not matter.

        Raises:
            CheckpointError: states of another kind or number of teachers.
        """
        shapes = {name: tuple(value.shape[1:]) for name, value in self._state_of(1).items()}
        for chunk in regrouped(parts, self.chunks, shapes, self.num_teachers):
            on_device = {name: value.to(self.device) for name, value in chunk.tensors.items()}
            self._store.save(chunk.start, chunk.stop, on_device)
        self._store.flush()
        self._is_filled = True

    @property
    def disk_bytes(self) -> int:
        """Bytes of states that lie on disk."""
        return self._store.disk_bytes

    def close(self) -> None:
        """Drop all states."""
        self._store.close()

    def _fill(self) -> None:
        """Give every teacher its fresh state, unless it has one."""
        if self._is_filled:
            return

        def fill(start: int, stop: int) -> None:
            pieces = []
            for block, first, last in _blocks(start, stop):
                offset = block * TEACHER_BLOCK
                size = min(TEACHER_BLOCK, self.num_teachers - offset)
                pieces.append(
                    rows_of(TeacherPart(offset, offset + size, self._state_of(size, block)), first, last)
                )
            self._store.save(start, stop, joined(pieces).tensors)

        run_in_threads(self.chunks, fill, lambda start, stop: None, self.device)
        self._store.flush()
        self._is_filled = True

    def _state_of(self, num_teachers: int, block: int = 0) -> TeacherState:
        return self.family.init(num_teachers, self._streams.torch("teacher-weights", block), self.device)

    def _diagnostics(self, step: int, tally_BD: Tensor, failed_T: Tensor) -> Diagnostics:
        share_BD = tally_BD.double() / (self.num_teachers * self.largest_vote)
        return Diagnostics(
            step=step,
            failed=tuple((int(t), int(failed_T[t])) for t in failed_T.nonzero().flatten()),
            rms_agreement=float(share_BD.square().mean().sqrt()),
            max_agreement=float(share_BD.abs().max()),
        )

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
