"""PATE-GAN: teachers label generated images by a noisy vote, a student learns from the labels, a generator from it.

Source: Yoon, Jordon and van der Schaar, ICLR 2019, Algorithm 1, with Gaussian noise and a data-independent account.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from pydantic import field_validator
from torch import Tensor
from torch.nn import functional

from datalens.baselines.discriminators import Discriminators
from datalens.baselines.generating import StudentMethodSettings
from datalens.baselines.method import NoisedMethod
from datalens.baselines.vote_rule import VoteRule, yes_votes
from datalens.mechanisms.gnmax import GNMax
from datalens.methods.method import Context, Planned, PublicSize
from datalens.methods.pricing import NoiseOnPaper, noise_that_fits
from datalens.methods.sharding import check_shards, draw_shards, restored_shards
from datalens.models.finish import AnyGenerator
from datalens.noise import NoiseSource, make_noise
from datalens.privacy.events import Event, GaussianEvent, times
from datalens.student.update import Proposal, Student
from datalens.teachers.family import Shards
from datalens.teachers.shards import RecordShards
from datalens.training.sections import Batch, Count, Fraction, Positive, Privacy, Slots, Width, known_name

VOTES = "votes"


class PateGanSettings(StudentMethodSettings):
    """Settings of PATE-GAN. What costs privacy: ``batch_size``, ``num_steps`` and ``student_steps``.

    Attributes:
        num_teachers: N.
        shard_size: slots of each teacher; None for all that fit, with groups for twice an even share.
        batch_size: generated images of one vote, and of every other batch.
        num_steps: steps of the generator.
        teacher_steps: Adam steps of every teacher before each of them.
        student_steps: batches that the teachers label, and Adam steps of the student on them, before each.
        records_per_step: records that a teacher draws from its shard for one Adam step.
        noise_stddev: in votes; None for the least that makes all votes fit the budget.
        teacher_units: width of a teacher's hidden layer.
        student_units: width of the student's hidden layer.
        vote_rule: when a teacher says yes; see :class:`VoteRule`.
        instance_noise: standard deviation of the noise on every image, real or generated, that a discriminator
            sees; public on generated ones. Without it generated images are too alike at first to compare. 0 as
            published.
        learning_rate: Adam's, of teachers and student.
    """

    num_teachers: Slots = 1000
    shard_size: Slots | None = None
    batch_size: Batch = 64
    num_steps: Count = 500
    teacher_steps: Count = 5
    student_steps: Count = 5
    records_per_step: Count = 64
    noise_stddev: Positive | None = None
    teacher_units: Width = 32
    student_units: Width = 128
    vote_rule: VoteRule = VoteRule.RANK
    instance_noise: Fraction = 0.3
    learning_rate: Positive = 1e-3

    keeps_groups: ClassVar[bool] = True

    _vote_rule = field_validator("vote_rule", mode="before")(known_name(VoteRule))

    def plan(self, privacy: Privacy, size: PublicSize) -> PateGan:
        """The method with the noise that makes its votes cost at most ``privacy.epsilon`` at ``privacy.delta``.

        Raises:
            ConfigError: no noise does, or there are more teachers than records.
        """
        check_shards(self.num_teachers, self.shard_size, size)

        def events_of(stddev: float) -> list[Event]:
            on_paper = PateGan(self, privacy, size, stddev)
            vote = on_paper.mechanism(NoiseOnPaper(privacy.noise)).event(self.batch_size)
            return [times(vote, on_paper.num_votes)]

        remedy = "a larger epsilon or delta, fewer num_steps or student_steps, or a smaller batch_size"
        return PateGan(self, privacy, size, noise_that_fits(privacy, events_of, self.noise_stddev, remedy))


@dataclass(frozen=True)
class PateGan(NoisedMethod[PateGanSettings]):
    """PATE-GAN with its noise, on the count of each vote."""

    name: ClassVar[str] = "pate-gan"

    @property
    def num_votes(self) -> int:
        """Batches labelled in a whole training, each one release."""
        return self.settings.num_steps * self.settings.student_steps

    def mechanism(self, noise: NoiseSource) -> GNMax:
        """Where votes become public."""
        return GNMax(self.settings.num_teachers, self.noise_stddev, noise, group_size=self.privacy.group_size)

    def event(self) -> GaussianEvent:
        """Of one vote on a batch."""
        return self.mechanism(make_noise(self.privacy.noise)).event(self.settings.batch_size)

    def planned(self) -> tuple[Planned, ...]:
        """The votes: a record sits with one teacher, so both neighbouring relations cost the same."""
        event = self.event()
        return (Planned(VOTES, event, event, self.num_votes),)

    def begin(self, context: Context) -> PateGanLearner:
        """Teachers, student and generator before the first step."""
        return PateGanLearner(self, context)


class PateGanLearner:
    """PATE-GAN in training.

    Guarantee: a record influences the votes of one teacher, which keeps its shard for the whole run and shares
    nothing with others. Student and generator are functions of released labels and public draws. A step begins
    only if all of its votes fit the budget.

    Args:
        method: settings and noise.
        context: data and what is needed to release anything of them.
    """

    def __init__(self, method: PateGan, context: Context) -> None:
        settings, size = method.settings, method.size
        self._method, self._context = method, context
        self.partition = draw_shards(
            size, context, settings.num_teachers, settings.shard_size, method.privacy.insecure_seed
        )
        self._shards = self._gather()
        dim, device = math.prod(size.image_shape), context.device
        kind = (dim, size.num_classes)
        self.teachers: Discriminators = Discriminators(
            settings.num_teachers,
            *kind,
            settings.teacher_units,
            settings.learning_rate,
            context.private.torch("teacher-weights"),
            device,
        )
        self.student: Discriminators = Discriminators(
            1,
            *kind,
            settings.student_units,
            settings.learning_rate,
            context.public.torch("student-weights"),
            device,
        )
        self._proposals = settings.teacher_steps + settings.student_steps + 1
        plan = settings.student_plan(size, settings.batch_size, settings.num_steps * self._proposals)
        self._generator = Student(plan, context.public, device)

    def step(self, step: int) -> None:
        """Teachers learn, the student learns from their noisy votes, the generator learns from the student.

        Raises:
            BudgetError: not all votes of this step fit; nothing was released and nobody learned.
        """
        settings = self._method.settings
        self._context.budget.check(times(self._method.event(), settings.student_steps))
        number = step * self._proposals
        for _ in range(settings.teacher_steps):
            self._teach(self.propose(number))
            number += 1
        for turn in range(settings.student_steps):
            self._label_and_learn(self.propose(number), step, step * settings.student_steps + turn)
            number += 1
        self._generator.learn(self._towards_real(self.propose(number)))

    def propose(self, number: int) -> Proposal:
        """Generated images of this run's ``number``-th batch, with their noise. Public."""
        proposal = self._generator.propose(number)
        rng = self._context.public.torch("instance-noise", number)
        return replace(proposal, images_BCHW=self._noisy(proposal.images_BCHW, rng))

    def votes(self, fakes: Proposal) -> Tensor:
        """``vote_TB`` bool: which teacher says yes to which image. Private. One that is not finite says no."""
        with torch.no_grad():
            logit_TB = self.teachers.logits(*self._as_batch(fakes))
        return yes_votes(self._method.settings.vote_rule, logit_TB, fakes.labels_B)

    def state_dict(self) -> dict[str, Tensor]:
        """Shards, teachers, student and generator; private."""
        parts = {
            "partition": {name: torch.from_numpy(v.copy()) for name, v in self.partition.to_arrays().items()},
            "teachers": self.teachers.state_dict(),
            "student": self.student.state_dict(),
            "generator": self._generator.state_dict(),
        }
        return {f"{part}/{name}": value for part, state in parts.items() for name, value in state.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from :meth:`state_dict`, with the shards of that run.

        Raises:
            CheckpointError: a state of another run.
        """

        def part(name: str) -> dict[str, Tensor]:
            prefix = f"{name}/"
            return {key.removeprefix(prefix): v for key, v in state.items() if key.startswith(prefix)}

        self.partition = restored_shards(part("partition"), self.partition)
        self._shards = self._gather()
        self.teachers.load_state_dict(part("teachers"))
        self.student.load_state_dict(part("student"))
        self._generator.load_state_dict(part("generator"))

    def generator(self) -> AnyGenerator:
        """The generator, a function of the released labels."""
        return self._generator.finished_generator()

    def _gather(self) -> Shards:
        """The records of every teacher, once for the whole run."""
        data, slots_TR = self._context.data, torch.from_numpy(self.partition.record_of_slot)
        source = RecordShards(*data.tensors(), slots_TR)
        return source.chunk(0, self.partition.num_teachers, self._context.device)

    def _noisy(self, images: Tensor, rng: torch.Generator) -> Tensor:
        """Images with instance noise."""
        noise = torch.randn(images.shape, generator=rng, device=rng.device).to(images.device)
        return images + self._method.settings.instance_noise * noise

    def _teach(self, fakes: Proposal) -> None:
        """One Adam step of every teacher on records of its own shard and on the fakes. Private."""
        rng = self._context.private.torch("teacher-records", fakes.step)
        drawn = torch.randperm(self.partition.shard_size, generator=rng)[
            : self._method.settings.records_per_step
        ].to(self._context.device)
        present_TR = self._shards.present_TR[:, drawn]
        images_TRD = self._noisy(self._shards.images_TRCHW[:, drawn].flatten(2), rng)
        real_TR = self.teachers.logits(images_TRD, self._shards.labels_TR[:, drawn])
        fake_TB = self.teachers.logits(*self._as_batch(fakes))
        real_T = (functional.softplus(-real_TR) * present_TR).sum(1) / present_TR.sum(1).clamp(min=1)
        self.teachers.learn(real_T + functional.softplus(fake_TB).mean(1))

    def _label_and_learn(self, fakes: Proposal, step: int, vote: int) -> None:
        """Release labels for a batch, charged first; then one Adam step of the student on them."""
        count_B1 = self.votes(fakes).sum(0, dtype=torch.int64)[:, None]
        mechanism = self._method.mechanism(self._context.noise_for(VOTES, vote))
        release = mechanism.release(count_B1.cpu(), self._context.budget, {"step": step, "what": VOTES})
        label_B = release.value.to(self._context.device)
        logit_B = self.student.logits(*self._as_batch(fakes))[0]
        self.student.learn(functional.binary_cross_entropy_with_logits(logit_B, label_B)[None])

    def _towards_real(self, fakes: Proposal) -> Tensor:
        """``move_BD``: which way the student finds each image more real, by the usual non-saturating loss."""
        images_BCHW, labels_1B = fakes.images_BCHW.clone().requires_grad_(), fakes.labels_B[None]
        logit_1B = self.student.logits(images_BCHW.flatten(1)[None], labels_1B.to(images_BCHW.device))
        (grad,) = torch.autograd.grad(functional.softplus(-logit_1B).sum(), images_BCHW)
        return -grad.flatten(1)

    def _as_batch(self, fakes: Proposal) -> tuple[Tensor, Tensor]:
        device = self._context.device
        return fakes.images_BCHW.flatten(1)[None].to(device), fakes.labels_B[None].to(device)
