"""The paper's teachers: its convolutional discriminator, one Adam a teacher, the ordinary GAN loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import torch
from torch import Tensor
from torch.optim.adam import adam

from datalens.errors import CheckpointError
from datalens.models.scratch import ThreadScratch
from datalens.models.stacked import PaperDiscriminator, Params
from datalens.teachers.family import Fakes, Shards, TeacherState

IN_CACHE = 10
"""Teachers handled at once on a CPU: fewer cost more calls, more leave its caches."""

ADAM_EPS = 1e-8
BETA2 = 0.999
MEAN, SQUARE, STEP = "adam.mean.", "adam.square.", "adam.step"


class VoteStatistics(StrEnum):
    """Which batch statistics normalise the fakes while a teacher says how to move them.

    ``FAKES``: their own, as in training; each fake's gradient then depends on the others, and what all fakes
    lack alike is normalised away. ``RECORDS``: those of the teacher's records, which shows it.
    """

    FAKES = "fakes"
    RECORDS = "records"


@dataclass(frozen=True)
class PaperTeachers:
    """The published discriminator for every teacher, each with its own weights and Adam moments.

    A teacher's step is one Adam step on binary cross-entropy: the mean over the present records of its
    shard plus the mean over the fakes. Batch norm uses batch statistics, of records and fakes apart.

    Guarantee: axis T is a batch of independent programs; an empty slot influences nothing; a teacher whose
    numbers are not finite spoils its own gradient alone.

    Attributes:
        image_shape: (C, H, W), H = W divisible by 4.
        num_classes: Y.
        channels: width of the second convolution before Y is added (see PaperDiscriminator).
        hidden_units: width of the dense layer.
        learning_rate: of Adam.
        beta1: of Adam.
        init_stddev: standard deviation of the initial weights.
        vote_statistics: see :class:`VoteStatistics`; the paper's are those of the fakes.
        start: parameters ``[1, ...]`` that every teacher begins with, which must be public; None for random ones.

    Source: paper, Algorithm 1 lines 6 to 11; sizes as in the published code.
    """

    image_shape: tuple[int, int, int]
    num_classes: int
    channels: int = 32
    hidden_units: int = 256
    learning_rate: float = 1e-3
    beta1: float = 0.5
    init_stddev: float = 0.02
    vote_statistics: VoteStatistics = VoteStatistics.FAKES
    start: Mapping[str, Tensor] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def network(self) -> PaperDiscriminator:
        """The stacked network."""
        return PaperDiscriminator(
            self.image_shape, self.num_classes, self.channels, self.hidden_units, self.init_stddev
        )

    @cached_property
    def _buffers(self) -> ThreadScratch:
        return ThreadScratch()

    def init(self, num_teachers: int, rng: torch.Generator, device: torch.device) -> TeacherState:
        """Weights at random, different for every teacher and drawn where ``rng`` lives, or those to begin with.

        Moments are zero.
        """
        if self.start is None:
            params = {name: value.to(device) for name, value in self.network.init(num_teachers, rng).items()}
        else:
            params = {
                name: self.start[name].to(device).repeat(num_teachers, *[1] * len(shape))
                for name, shape in self.network.shapes().items()
            }
        state = dict(params)
        for name, value in params.items():
            state[MEAN + name] = torch.zeros_like(value)
            state[SQUARE + name] = torch.zeros_like(value)
        state[STEP] = torch.zeros(num_teachers, device=device)
        return state

    def train(self, state: TeacherState, shards: Shards, fakes: Fakes, num_steps: int) -> TeacherState:
        """``num_steps`` steps of every teacher, in place: ``state`` itself is updated and returned."""
        done = _steps_done(state)
        for part, few in self._parts(state, shards):
            self._train(part, few, fakes, num_steps, done.clone())
        state[STEP] += num_steps
        return state

    def input_gradient(self, state: TeacherState, shards: Shards, fakes: Fakes) -> Tensor:
        """``grad_TBD``: d (sum over fakes of log D) / d x, by the image alone, not its label planes.

        A teacher without any record has nothing to say: zero gradient, hence no vote.
        """
        grads = [self._input_gradient(part, few, fakes) for part, few in self._parts(state, shards)]
        has_none_T = ~shards.present_TR.any(1)
        return torch.cat(grads).masked_fill_(has_none_T[:, None, None], 0.0)

    def _parts(self, state: TeacherState, shards: Shards) -> Iterator[tuple[TeacherState, Shards]]:
        """On a CPU a few teachers at a time, so that they stay in its caches; elsewhere all at once."""
        num_teachers = shards.num_teachers
        few = IN_CACHE if state[STEP].device.type == "cpu" else num_teachers
        for start in range(0, num_teachers, few):
            rows = slice(start, start + few)
            yield (
                {name: value[rows] for name, value in state.items()},
                Shards(
                    shards.images_TRCHW[rows],
                    shards.labels_TR[rows],
                    shards.present_TR[rows],
                    shards.first + start,
                ),
            )

    @torch.no_grad()
    def _train(self, state: TeacherState, shards: Shards, fakes: Fakes, num_steps: int, done: Tensor) -> None:
        params = self._params(state)
        images_TBCHW, labels_TB = _shared(params, fakes)
        real_images = shards.images_TRCHW.to(images_TBCHW)
        batch = self.network.batch(
            [(real_images, shards.labels_TR, shards.present_TR), (images_TBCHW, labels_TB, None)],
            self._buffers.scratch,
        )
        num_real = shards.labels_TR.shape[1]
        for _ in range(num_steps):
            logit_TB, tape = self.network.forward(params, batch)
            belief_TB = torch.sigmoid(logit_TB)
            grad_TB = torch.cat([belief_TB[:, :num_real] - 1.0, belief_TB[:, num_real:]], 1)
            grads = self.network.backward(params, batch, tape, grad_TB.mul_(batch.weight_TB))
            self._adam_step(state, grads, done)

    @torch.no_grad()
    def _input_gradient(self, state: TeacherState, shards: Shards, fakes: Fakes) -> Tensor:
        params = self._params(state)
        images_TBCHW, labels_TB = _shared(params, fakes)
        if self.vote_statistics is VoteStatistics.FAKES:
            batch = self.network.batch([(images_TBCHW, labels_TB, None)], self._buffers.scratch)
        else:
            records = (shards.images_TRCHW.to(images_TBCHW), shards.labels_TR, shards.present_TR)
            batch = self.network.batch(
                [records, (images_TBCHW, labels_TB, None)], self._buffers.scratch
            ).judged_by_first()
        logit_TB, tape = self.network.forward(params, batch)
        num_fakes = labels_TB.shape[1]
        doubt_TB = torch.sigmoid(-logit_TB)
        doubt_TB[:, :-num_fakes] = 0.0
        grad = self.network.image_gradient(params, batch, tape, doubt_TB)
        return grad[:, -num_fakes:].flatten(2).float()

    def _params(self, state: TeacherState) -> Params:
        return {name: state[name] for name in self.network.shapes()}

    def _adam_step(self, state: TeacherState, grads: Params, done: Tensor) -> None:
        """One fused Adam step; elementwise, so the stack steps as its teachers would one by one."""
        names = list(grads)
        adam(
            [state[name] for name in names],
            [grads[name] for name in names],
            [state[MEAN + name] for name in names],
            [state[SQUARE + name] for name in names],
            [],
            [done.clone() for _ in names],  # every one is counted up inside
            fused=True,
            amsgrad=False,
            beta1=self.beta1,
            beta2=BETA2,
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=ADAM_EPS,
            maximize=False,
        )
        done += 1


def _steps_done(state: TeacherState) -> Tensor:
    """Adam's step count, equal for the teachers of a chunk: how often they were trained is public."""
    first, last = state[STEP].aminmax()
    if first.device.type != "cpu":  # a comparison on the host would wait for the device in every chunk
        torch.ops.aten._assert_async.msg(first == last, "teachers of one chunk took unequal steps")
    elif first != last:
        raise CheckpointError(
            f"teachers of one chunk took {int(first)} to {int(last)} steps: they must be equal; "
            "load the whole checkpoint of one run"
        )
    return first.clone()


def _shared(params: Params, fakes: Fakes) -> tuple[Tensor, Tensor]:
    """The fakes as every teacher sees them, without a copy, in the precision of the parameters."""
    bias = params["out.bias"]
    images_BCHW = fakes.images_BCHW.detach().to(bias)
    labels_B = fakes.labels_B.to(bias.device)
    return images_BCHW.expand(len(bias), *images_BCHW.shape), labels_B.expand(len(bias), -1)
