"""The generator that baselines of the PATE kind share with DataLens, so that only what it is told differs."""

from __future__ import annotations

from datalens.baselines.method import MethodSettings, PublicSize
from datalens.models.finish import Finish, FinishedGenerator
from datalens.student.latent import LatentSpace
from datalens.student.update import StudentPlan
from datalens.training.config import StudentSettings


class StudentMethodSettings(MethodSettings):
    """Settings of a method whose generator is DataLens's student.

    Attributes:
        generator: what it is and how it learns; the same choices as DataLens's.
    """

    generator: StudentSettings = StudentSettings()

    def latent(self, size: PublicSize) -> LatentSpace:
        """What the generator is fed."""
        return LatentSpace(self.generator.latent_dim, size.num_classes, self.generator.latent_law)

    def network(self, size: PublicSize) -> FinishedGenerator:
        """The finished generator's network, its weights all zero."""
        return generator_plan(self.generator, size, batch_size=1, num_proposals=1).generator()

    @property
    def least_numbers(self) -> int:
        """Its largest two layers."""
        return self.generator.hidden_units * max(self.generator.latent_dim, self.generator.channels)


def generator_plan(
    settings: StudentSettings, size: PublicSize, batch_size: int, num_proposals: int
) -> StudentPlan:
    """What the generator is and how it learns, from settings and public numbers.

    Args:
        settings: of the generator.
        size: what may be known of the data.
        batch_size: images of one proposal.
        num_proposals: over which the learning rate decays.
    """
    return StudentPlan(
        image_shape=size.image_shape,
        latent=LatentSpace(settings.latent_dim, size.num_classes, settings.latent_law),
        hidden_units=settings.hidden_units,
        channels=settings.channels,
        training_finish=Finish(jitter=settings.jitter, outside=settings.finish.outside),
        finish=Finish(**settings.finish.model_dump()),
        smoothing=settings.smoothing,
        batch_size=batch_size,
        num_steps=num_proposals,
        step_size=settings.step_size,
        learning_rate=settings.learning_rate,
        final_learning_rate=settings.final_learning_rate,
        beta1=settings.beta1,
        weight_average=settings.weight_average,
    )
