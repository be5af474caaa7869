"""A run's settings: frozen, checked when made, the same in Python, in TOML and in a run's folder.

Two kinds of settings. *Privacy settings* change the guarantee. *Performance settings* (:class:`Performance`)
never change noise, ledger or epsilon. What concerns learning only (teachers, student) may be anything at all:
teachers are arbitrary programs of their own shard, the student sees only what was released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, field_validator

from datalens.errors import ConfigError
from datalens.mechanisms.kinds import MechanismKind
from datalens.models.outside import Outside
from datalens.privacy.sensitivity import images_voted
from datalens.student.latent_law import LatentLaw
from datalens.teachers.kinds import TeacherKind
from datalens.teachers.store_kind import StoreKind
from datalens.training.public_init import PublicInit
from datalens.training.sections import (
    Batch,
    Count,
    Fraction,
    Positive,
    RunSettings,
    Section,
    Slots,
    Width,
    known_name,
    merged,
    validated,
)
from datalens.training.warm_settings import WarmStart

if TYPE_CHECKING:
    from datalens.student.update import StudentPlan


class Voting(Section):
    """TopAgg (Algorithms 2 and 3), or what it is compared with, and the number of questions asked of the teachers.

    Attributes:
        mechanism: how votes are compressed and released: topagg, d2p-fed, fetchsgd-sound, or fetchsgd, which has no
            guarantee; see ``docs/baselines.md``.
        num_teachers: N.
        shard_size: slots of each teacher; None for all that fit, and where records come in groups, which leave
            some slots empty and find others taken, for twice an even share.
        top_k: kept coordinates per teacher and image, k; d2p-fed keeps all of them.
        levels: of a vote on a rotated coordinate, for d2p-fed.
        sketch_rows: of the sketch, odd, for fetchsgd and fetchsgd-sound.
        sketch_buckets: of each of its rows.
        clip_bound: coordinate clip of a teacher's gradient, c; of d2p-fed after the rotation.
        noise_stddev: in votes (of d2p-fed in units of the quantiser, levels - 1 to a vote); None for the smallest
            that makes ``num_steps`` fit the budget.
        vote_threshold: fraction of N that a noisy vote must reach to count, beta; None for the one that keeps
            most of a weak signal under the run's noise.
        batch_size: generated images voted on in one generator step, m.
        images_per_teacher: most of them that one teacher may vote on; None for all.
        num_steps: generator steps, T; None for as many as the budget allows.
    """

    mechanism: MechanismKind = MechanismKind.TOPAGG
    num_teachers: Slots = 4000
    shard_size: Slots | None = None
    top_k: Count = 200
    levels: Annotated[int, Field(ge=2, le=128)] = 8
    sketch_rows: Annotated[int, Field(ge=1, le=99)] = 5
    sketch_buckets: Annotated[int, Field(ge=1, le=2**20)] = 500
    clip_bound: Positive = 1e-5
    noise_stddev: Positive | None = None
    vote_threshold: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    batch_size: Batch = 15
    images_per_teacher: Count | None = None
    num_steps: Count | None = None

    _mechanism = field_validator("mechanism", mode="before")(known_name(MechanismKind))

    @field_validator("sketch_rows")
    @classmethod
    def _odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError("must be odd, so that the median of the rows is one of them")
        return value

    @property
    def images_voted(self) -> int:
        """Images of a step that one teacher may vote on."""
        return images_voted(self.batch_size, self.images_per_teacher)


class Teachers(Section):
    """How the teachers learn. Free of privacy: a teacher may be any program of its own shard.

    Attributes:
        kind: which discriminator.
        steps: optimiser steps of every teacher before it votes.
        first_steps: the same at the first generator step.
        learning_rate: of the optimiser of teachers that train.
        bandwidth: of kernel teachers, large for class means, small for the nearest record; of matching
            teachers at the end of their annealing.
        first_bandwidth: of matching teachers at the first step.
        annealing: fraction of the steps over which matching teachers' bandwidth falls.
    """

    kind: TeacherKind = TeacherKind.KERNEL
    steps: Count = 2
    first_steps: Count = 10
    learning_rate: Positive = 1e-3
    bandwidth: Positive = 1e4
    first_bandwidth: Positive = 1e4
    annealing: Fraction = 0.6

    _kind = field_validator("kind", mode="before")(known_name(TeacherKind))


class Finishing(Section):
    """The random last layer of the finished generator: a public prior on how such images vary.

    Attributes:
        jitter: strength of the small affine warp; 1 is up to 15 degrees, 12%, shear 0.2 and 5% of the side.
        contrast: gain on the logit of every pixel; 1 for none.
        lightness: added to that logit before the gain.
        lightness_spread: largest random change of the lightness of an image.
        outside: what moves in at the edge of a warped image, also while the generator learns: edge or black.
    """

    jitter: float = Field(default=0.0, ge=0, le=4)
    contrast: Annotated[float, Field(gt=0, le=100)] = 1.0
    lightness: float = Field(default=0.0, ge=-10, le=10)
    lightness_spread: float = Field(default=0.0, ge=0, le=10)
    outside: Outside = Outside.EDGE

    _outside = field_validator("outside", mode="before")(known_name(Outside))


class StudentSettings(Section):
    """The generator and how it learns from what was released; all of it is post-processing.

    Attributes:
        latent_dim: Z, or the number of kinds a class where latents are codes.
        latent_law: uniform on [-1, 1], normal, or codes.
        hidden_units: width of the generator's dense layer.
        channels: channels of its smallest map.
        step_size: length of an image's move along the released direction, gamma.
        learning_rate: Adam's, at the first step.
        final_learning_rate: fraction of it left at the last step; the decay is linear.
        beta1: Adam's.
        weight_average: decay of the averaged weights that samples are drawn from; 0 for the last weights.
        jitter: strength of the random small affine warp in the generator's last layer while it learns.
        finish: the last layer when it is done; see :class:`Finishing`.
        smoothing: passes of a 3x3 binomial filter before the generator's sigmoid; 0 for none.
    """

    latent_dim: Width = 50
    latent_law: LatentLaw = LatentLaw.UNIFORM
    hidden_units: Width = 1024
    channels: Width = 128
    step_size: Positive = 1e-3
    learning_rate: Positive = 1e-3
    final_learning_rate: Fraction = 1.0
    beta1: float = Field(default=0.5, ge=0, lt=1)
    weight_average: float = Field(default=0.0, ge=0, lt=1)
    jitter: float = Field(default=0.0, ge=0, le=4)
    finish: Finishing = Finishing()
    smoothing: int = Field(default=0, ge=0, le=8)

    _latent_law = field_validator("latent_law", mode="before")(known_name(LatentLaw))

    def plan(
        self, image_shape: tuple[int, int, int], num_classes: int, batch_size: int, num_steps: int
    ) -> StudentPlan:
        """What the generator is and how it learns.

        Args:
            image_shape: (C, H, W).
            num_classes: Y.
            batch_size: images proposed in a step.
            num_steps: over which the learning rate decays.
        """
        from datalens.models.finish import Finish
        from datalens.student.latent import LatentSpace
        from datalens.student.update import StudentPlan

        return StudentPlan(
            image_shape=image_shape,
            latent=LatentSpace(self.latent_dim, num_classes, self.latent_law),
            hidden_units=self.hidden_units,
            channels=self.channels,
            training_finish=Finish(jitter=self.jitter, outside=self.finish.outside),
            finish=Finish(**self.finish.model_dump()),
            smoothing=self.smoothing,
            batch_size=batch_size,
            num_steps=num_steps,
            step_size=self.step_size,
            learning_rate=self.learning_rate,
            final_learning_rate=self.final_learning_rate,
            beta1=self.beta1,
            weight_average=self.weight_average,
        )


class Performance(Section):
    """Settings that change speed and memory, and never noise, ledger or epsilon.

    Attributes:
        device: where teachers and student compute, as PyTorch names it.
        chunk_size: teachers handled at once; None for as many as suit the device.
        teacher_store: where teachers' states live between steps: memory, disk, or auto, which takes the disk
            where they do not fit into memory.
        teacher_memory: GiB that the states may take in memory before the disk is used; None for most of what
            is free with auto, and nothing with disk.
        checkpoint_every: generator steps between checkpoints.
    """

    device: str = "cpu"
    chunk_size: Count | None = None
    teacher_store: StoreKind = StoreKind.AUTO
    teacher_memory: Annotated[float, Field(ge=0, le=2**20, allow_inf_nan=False)] | None = None
    checkpoint_every: Count = 25

    _teacher_store = field_validator("teacher_store", mode="before")(known_name(StoreKind))


class Config(RunSettings):
    """Everything that makes a run, but for the data.

    >>> from datalens.training.sections import Privacy
    >>> Config(recipe="mine", privacy=Privacy(epsilon=2.0)).privacy.epsilon
    2.0
    """

    voting: Voting = Voting()
    teachers: Teachers = Teachers()
    student: StudentSettings = StudentSettings()
    performance: Performance = Performance()
    public_init: PublicInit = PublicInit()
    warm_start: WarmStart = WarmStart()

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in a run's ``config.json``; what a run begins with where it is not at its default."""
        usual = {"public_init": PublicInit(), "warm_start": WarmStart()}
        left_out = {name for name, section in usual.items() if getattr(self, name) == section}
        return self.model_dump(mode="json", exclude=left_out)

    def replace(self, **changes: Any) -> Config:
        """The same settings with some changed, checked again.

        Args:
            changes: ``section__name=value`` or ``section={"name": value}``.

        Raises:
            ConfigError: one line that names the setting, its value and the rule.

        >>> Config().replace(privacy__epsilon=0.5).privacy.epsilon
        0.5
        """
        data = self.model_dump()
        for path, value in changes.items():
            section, _, name = path.partition("__")
            if section not in data:
                raise ConfigError(f"setting {path!r} is unknown; known sections: {', '.join(data)}")
            if name:
                data[section][name] = value
            else:
                data = merged(data, {section: value})
        return parse_config(data)


def parse_config(data: dict[str, Any]) -> Config:
    """Settings from plain values.

    Raises:
        ConfigError: one line that names the first setting that breaks a rule, its value and the rule.
    """
    return validated(Config, data)
