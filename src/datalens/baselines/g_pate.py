"""G-PATE: teachers say where each generated image should move, by votes on a few random projections of it.

Source: Long et al., NeurIPS 2021, Algorithms 1 and 2, with a data-independent account.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from datalens.baselines.generating import StudentMethodSettings
from datalens.baselines.method import NoisedMethod
from datalens.compression.projection import bin_votes, check_bins, decode_bins, draw_projection
from datalens.errors import CheckpointError, ConfigError
from datalens.mechanisms.gpate import ANSWERS, CHECKS, ConfidentGNMax
from datalens.methods.method import Context, Planned, PublicSize
from datalens.methods.pricing import NoiseOnPaper, noise_that_fits
from datalens.methods.sharding import check_shards, draw_shards, restored_shards
from datalens.models.finish import AnyGenerator
from datalens.noise import NoiseSource, make_noise
from datalens.noise.table import MAX_STDDEV, MIN_STDDEV
from datalens.privacy.events import Event, times
from datalens.student.update import Student
from datalens.teachers.families import TeacherSettings, make_family
from datalens.teachers.family import Fakes, TeacherState
from datalens.teachers.shards import RecordShards
from datalens.training.config import Teachers
from datalens.training.sections import Batch, Count, Fraction, Positive, Privacy, Slots

TEACHER_BLOCK = 20
"""Teachers handled at once, which share one random stream of initial weights."""


class GPateSettings(StudentMethodSettings):
    """Settings of G-PATE. What costs privacy: ``batch_size``, ``num_projected`` and ``num_steps``.

    Attributes:
        num_teachers: N.
        shard_size: slots of each teacher; None for all that fit, with groups for twice an even share.
        batch_size: generated images asked about in one step.
        num_projected: coordinates of the projection, P, each one question for every image.
        num_bins: bins of a projected coordinate, K.
        clip_bound: largest projected coordinate of a unit gradient; None for ``2 / sqrt(P)``, two deviations.
        vote_threshold: fraction of N that the noisy fullest bin must hold for an answer.
        num_steps: steps of the generator.
        noise_stddev: on every bin of an answer, in votes; None for the least that makes all steps fit the budget.
        threshold_noise: noise on the fullest bin, as a multiple of that.
        teachers: which discriminators, and how they learn; the same choices as DataLens's.
    """

    num_teachers: Slots = 2000
    shard_size: Slots | None = None
    batch_size: Batch = 15
    num_projected: Count = 10
    num_bins: Count = 10
    clip_bound: Positive | None = None
    vote_threshold: Fraction = 0.5
    num_steps: Count = 150
    noise_stddev: Positive | None = None
    threshold_noise: Positive = 3.0
    teachers: Teachers = Teachers()

    keeps_groups: ClassVar[bool] = True

    @property
    def clip(self) -> float:
        """The bound in use."""
        return 2 / math.sqrt(self.num_projected) if self.clip_bound is None else self.clip_bound

    def plan(self, privacy: Privacy, size: PublicSize) -> GPate:
        """The method with the noise that makes its releases cost at most ``privacy.epsilon``.

        Raises:
            ConfigError: no noise does, or settings do not fit each other or the images.
        """
        check_shards(self.num_teachers, self.shard_size, size)
        check_bins(self.clip, self.num_bins)
        if self.num_projected > math.prod(size.image_shape):
            raise ConfigError(
                f"num_projected = {self.num_projected}: an image has {math.prod(size.image_shape)} coordinates; "
                "use at most as many"
            )

        def events_of(stddev: float) -> list[Event]:
            checks, answers = GPate(self, privacy, size, stddev).events(NoiseOnPaper(privacy.noise))
            return [times(checks, self.num_steps), times(answers, self.num_steps)]

        remedy = "a larger epsilon or delta, fewer num_steps, or a smaller batch_size or num_projected"
        return GPate(self, privacy, size, noise_that_fits(privacy, events_of, self.noise_stddev, remedy))


@dataclass(frozen=True)
class GPate(NoisedMethod[GPateSettings]):
    """G-PATE with its noise, on every bin of an answer."""

    name: ClassVar[str] = "g-pate"

    @property
    def threshold_stddev(self) -> float:
        """Noise on the fullest bin; kept within what the sampler has."""
        if not self.privacy.is_private:
            return 0.0
        return min(max(self.settings.threshold_noise * self.noise_stddev, MIN_STDDEV), MAX_STDDEV)

    def mechanism(self, noise: NoiseSource) -> ConfidentGNMax:
        """Where votes become public."""
        return ConfidentGNMax(
            num_teachers=self.settings.num_teachers,
            num_bins=self.settings.num_bins,
            vote_threshold=self.settings.vote_threshold,
            threshold_stddev=self.threshold_stddev,
            noise_stddev=self.noise_stddev,
            noise=noise,
            group_size=self.privacy.group_size,
        )

    def events(self, noise: NoiseSource) -> tuple[Event, Event]:
        """Of the checks and of the answers of one step."""
        mechanism, questions = self.mechanism(noise), self.settings.batch_size * self.settings.num_projected
        return mechanism.threshold_event(questions), mechanism.answer_event(questions)

    def planned(self) -> tuple[Planned, ...]:
        """Checks and answers: a record sits with one teacher, so both neighbouring relations cost the same."""
        checks, answers = self.events(make_noise(self.privacy.noise))
        return (
            Planned(CHECKS, checks, checks, self.num_steps),
            Planned(ANSWERS, answers, answers, self.num_steps),
        )

    def begin(self, context: Context) -> GPateLearner:
        """Teachers and generator before the first step."""
        return GPateLearner(self, context)


class GPateLearner:
    """G-PATE in training.

    Guarantee: a record influences the votes of one teacher, which keeps its shard for the whole run and shares
    nothing with others. The generator is a function of released bins and public draws.

    Args:
        method: settings and noise.
        context: data and what is needed to release anything of them.
    """

    def __init__(self, method: GPate, context: Context) -> None:
        settings, size = method.settings, method.size
        self._method, self._context = method, context
        self.partition = draw_shards(
            size, context, settings.num_teachers, settings.shard_size, method.privacy.insecure_seed
        )
        self._records = self._gather()
        learning = settings.teachers
        self._family = make_family(
            learning.kind,
            TeacherSettings(
                image_shape=size.image_shape,
                num_classes=size.num_classes,
                shard_size=self.partition.shard_size,
                batch_size=settings.batch_size,
                num_steps=settings.num_steps,
                learning_rate=learning.learning_rate,
                bandwidth=learning.bandwidth,
                first_bandwidth=learning.first_bandwidth,
                annealing=learning.annealing,
            ),
        )
        self.teachers: list[TeacherState] = [
            self._family.init(stop - start, context.private.torch("teacher-weights", start), context.device)
            for start, stop in self._blocks()
        ]
        plan = settings.student_plan(size, settings.batch_size, settings.num_steps)
        self._generator = Student(plan, context.public, context.device)

    def step(self, step: int) -> None:
        """Teachers learn and vote on projected moves; the generator follows the bins that were released.

        Raises:
            BudgetError: the step does not fit; nothing was released and nobody learned.
        """
        settings = self._method.settings
        mechanism = self._method.mechanism(self._context.noise_for(ANSWERS, step))
        questions = settings.batch_size * settings.num_projected
        self._context.budget.check(mechanism.threshold_event(questions), mechanism.answer_event(questions))
        proposal = self._generator.propose(step)
        dim = math.prod(self._method.size.image_shape)
        basis_DP = draw_projection(
            dim, settings.num_projected, self._context.public.torch("projection", step)
        )
        tally_BPK = self.tally(Fakes(proposal.images_BCHW, proposal.labels_B), basis_DP, step)
        release = mechanism.release(tally_BPK, self._context.budget, {"step": step})
        self._generator.learn(decode_bins(release.value, basis_DP, settings.clip, settings.num_bins))

    def tally(self, fakes: Fakes, basis_DP: Tensor, step: int) -> Tensor:
        """``tally_BPK`` int32 on the CPU: train every teacher and sum the votes for every bin. Private."""
        settings, device = self._method.settings, self._context.device
        basis_DP = basis_DP.to(device)
        fakes = Fakes(fakes.images_BCHW.detach().to(device), fakes.labels_B.to(device))
        steps = settings.teachers.first_steps if step == 0 else settings.teachers.steps
        shape = (len(fakes.labels_B), settings.num_projected, settings.num_bins)
        tally_BPK = torch.zeros(shape, dtype=torch.int32, device=device)
        for block, (start, stop) in enumerate(self._blocks()):
            shards = self._records.chunk(start, stop, device)
            self.teachers[block] = self._family.train(self.teachers[block], shards, fakes, steps)
            grad_TBD = self._family.input_gradient(self.teachers[block], shards, fakes)
            vote_TBPK = bin_votes(grad_TBD, basis_DP, settings.clip, settings.num_bins)
            tally_BPK += vote_TBPK.sum(0, dtype=torch.int32)
        return tally_BPK.cpu()

    def state_dict(self) -> dict[str, Tensor]:
        """Shards, teachers and generator; private."""
        state = {f"partition/{k}": torch.from_numpy(v.copy()) for k, v in self.partition.to_arrays().items()}
        for block, teachers in enumerate(self.teachers):
            state |= {f"teachers/{block}/{name}": value.clone() for name, value in teachers.items()}
        return state | {f"generator/{k}": value for k, value in self._generator.state_dict().items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from :meth:`state_dict`, with the shards of that run.

        Raises:
            CheckpointError: a state of another run.
        """

        def part(prefix: str) -> dict[str, Tensor]:
            return {key.removeprefix(prefix): v for key, v in state.items() if key.startswith(prefix)}

        self.partition = restored_shards(part("partition/"), self.partition)
        self._records = self._gather()
        for block, fresh in enumerate(self.teachers):
            saved = part(f"teachers/{block}/")
            shapes = [{name: v.shape for name, v in teachers.items()} for teachers in (saved, fresh)]
            if shapes[0] != shapes[1]:
                raise CheckpointError(
                    "the saved teachers are of another kind or size: use the settings they were made with"
                )
            self.teachers[block] = {n: v.to(self._context.device, copy=True) for n, v in saved.items()}
        self._generator.load_state_dict(part("generator/"))

    def generator(self) -> AnyGenerator:
        """The generator, a function of the released bins."""
        return self._generator.finished_generator()

    def _gather(self) -> RecordShards:
        data, slots_TR = self._context.data, torch.from_numpy(self.partition.record_of_slot)
        return RecordShards(*data.tensors(), slots_TR)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        num_teachers = self._method.settings.num_teachers
        for start in range(0, num_teachers, TEACHER_BLOCK):
            yield start, min(start + TEACHER_BLOCK, num_teachers)
