"""A classifier trained by DP-SGD, as a run plans it: settings, and the noise that makes all steps cost epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, field_validator
from torch import nn

from datalens.compression.norm_topk import check_keep
from datalens.dpsgd.learner import WHAT, ClassifierLearner
from datalens.dpsgd.method import Rule, check_max_grad_norm
from datalens.errors import ConfigError
from datalens.mechanisms.sampled_sum import SampledSum
from datalens.mechanisms.vector_sum import Grid, fitting_units
from datalens.methods.method import Context, Planned, PlannedSettings, PublicSize, WithNoise
from datalens.methods.pricing import NoiseOnPaper
from datalens.methods.sampled import check_lot, sampled_noise
from datalens.methods.sgd_kinds import Method, SelectBy
from datalens.models.small_classifiers import num_weights, small_classifier
from datalens.models.small_kind import SmallKind
from datalens.noise import NoiseSource, make_noise
from datalens.privacy.events import PoissonGaussianEvent
from datalens.training.repeats import refuse_groups
from datalens.training.sections import Count, Positive, Privacy, known_name

NAME = "dp-sgd"
"""Of the method, in settings, ledger and certificate."""
EPOCHS = 10.0
"""Where neither epochs nor steps are given."""
MOST_STEPS = 10**8 - 1
"""Of a training: what the names of checkpoints hold."""


class ClassifierSettings(PlannedSettings):
    """Settings of the training; with epsilon and the number of records they decide how much noise there is.

    Attributes:
        training: a cell of Table 10, see :class:`~datalens.dpsgd.method.Method`.
        keep: share of each record's squared norm (or of the coordinates) that stays, in (0, 1].
        select_by: what ``keep`` is a share of.
        model: the network.
        epochs: how often a record is used, in expectation; 10 where ``num_steps`` is left out too.
        num_steps: of a whole training, in place of ``epochs``; each is one release.
        batch_size: expected number of records in a lot; public.
        max_grad_norm: C, longest gradient of one record; longer ones are cut to it.
        learning_rate: of SGD; at most a million, far below what float32 ends at.
        momentum: of SGD.
    """

    training: Method = Method.TOPAGG
    keep: float = 0.8
    select_by: SelectBy = SelectBy.NORM
    model: SmallKind = SmallKind.CNN
    epochs: Positive | None = None
    num_steps: Count | None = None
    batch_size: Count = 512
    max_grad_norm: float = 1.0
    learning_rate: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 0.5
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0

    _training = field_validator("training", mode="before")(known_name(Method))
    _select_by = field_validator("select_by", mode="before")(known_name(SelectBy))
    _model = field_validator("model", mode="before")(known_name(SmallKind))
    _keep = field_validator("keep")(check_keep)
    _max_grad_norm = field_validator("max_grad_norm")(check_max_grad_norm)

    def steps(self, num_records: int) -> int:
        """Steps of a whole training.

        Raises:
            ConfigError: more than :data:`MOST_STEPS`.
        """
        steps = self.num_steps or (self.epochs or EPOCHS) * num_records / self.batch_size
        if steps > MOST_STEPS:
            asked = (
                f"num_steps = {self.num_steps}" if self.num_steps else f"epochs = {self.epochs or EPOCHS:g}"
            )
            raise ConfigError(
                f"{asked}: makes {steps:.3g} steps, but a training has at most {MOST_STEPS}; ask for fewer"
            )
        return math.ceil(steps)

    def plan(self, privacy: Privacy, size: PublicSize) -> DPSGD:
        """The training with the noise that makes its steps cost at most ``privacy.epsilon``, add-or-remove.

        Raises:
            ConfigError: settings that contradict each other, a lot larger than the data, an image too small for the
                network, or no noise that the sampler has is enough.
        """
        self._check(privacy)
        check_lot(self.batch_size, size.num_records)
        on_paper = DPSGD(self, privacy, size, 0.0)
        if not privacy.is_private:
            return on_paper
        longest = privacy.group_size * on_paper.grid.units

        def event(noise_multiplier: float) -> PoissonGaussianEvent:
            method = DPSGD(self, privacy, size, noise_multiplier * longest)
            return method.mechanism(NoiseOnPaper(privacy.noise)).event()

        remedy = "a larger epsilon, fewer epochs or num_steps, or a smaller batch_size"
        return DPSGD(self, privacy, size, sampled_noise(privacy, event, on_paper.num_steps, longest, remedy))

    def _check(self, privacy: Privacy) -> None:
        if self.epochs is not None and self.num_steps is not None:
            raise ConfigError(
                f"epochs = {self.epochs:g} and num_steps = {self.num_steps}: leave out one of the two"
            )
        if self.training.is_private and not privacy.adds_noise:
            raise ConfigError(
                f"noise = {privacy.noise} with the training {self.training}, which is private by its noise alone; "
                f"choose {Method.TOPK_SGD} or {Method.CLIPPED_SGD} for one without"
            )
        if not self.training.is_private and privacy.adds_noise:
            raise ConfigError(
                f"noise = {privacy.noise} with the training {self.training}, which adds none; set noise = none, and "
                "nothing is promised"
            )
        if privacy.as_published or privacy.score_noise is not None:
            raise ConfigError(f"as_published and score_noise are not for {NAME}: leave them out")


@dataclass(frozen=True)
class DPSGD(WithNoise[ClassifierSettings]):
    """DP-SGD with its noise, on every coordinate of a sum, in units of the grid.

    Guarantee: one record added or removed is in a lot with probability ``batch_size / num_records`` and moves its sum
    by at most ``grid.units`` then (``docs/dpsgd.md``).
    """

    name: ClassVar[str] = NAME

    @property
    def num_steps(self) -> int:
        """Steps of a whole training."""
        return self.settings.steps(self.size.num_records)

    @property
    def rule(self) -> Rule:
        """What stays of a record's gradient."""
        return Rule(self.settings.training, self.settings.keep, self.settings.select_by)

    @property
    def grid(self) -> Grid:
        """Where what stays of a record's gradient is put."""
        dim = num_weights(self.settings.model, self.size.image_shape, self.size.num_classes)
        return Grid(self.rule.share_of_norm * self.settings.max_grad_norm, fitting_units(dim), dim)

    @property
    def noise_multiplier(self) -> float:
        """Noise over what one person can move a sum by."""
        return self.noise_stddev / (self.privacy.group_size * self.grid.units)

    def network(self) -> nn.Sequential:
        """The network, its weights not set."""
        return small_classifier(self.settings.model, self.size.image_shape, self.size.num_classes)

    def mechanism(self, noise: NoiseSource) -> SampledSum:
        """Where gradients become public."""
        rate = self.settings.batch_size / self.size.num_records
        return SampledSum(self.grid, self.noise_stddev, noise, rate, self.privacy.group_size)

    def planned(self) -> tuple[Planned, ...]:
        """The steps. Replacing a record has no event of its own: it is bounded for the whole plan."""
        event = self.mechanism(make_noise(self.privacy.noise)).event()
        return (Planned(WHAT, event, None, self.num_steps),)

    def begin(self, context: Context) -> ClassifierLearner:
        """The classifier before the first step.

        Raises:
            ConfigError: data that say which records are one person's.
        """
        refuse_groups(context.data)
        return ClassifierLearner(self, context)
