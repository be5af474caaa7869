"""The generator that baselines of the PATE kind share with DataLens, so that only what it is told differs."""

from __future__ import annotations

from datalens.baselines.method import MethodSettings
from datalens.methods.method import PublicSize
from datalens.models.finish import AnyGenerator
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
        return self.student_plan(size, 1, 1).latent

    def network(self, size: PublicSize) -> AnyGenerator:
        """The finished generator's network, its weights all zero."""
        return self.student_plan(size, 1, 1).generator()

    def student_plan(self, size: PublicSize, batch_size: int, num_proposals: int) -> StudentPlan:
        """How it learns from that many batches of so many images."""
        return self.generator.plan(size.image_shape, size.num_classes, batch_size, num_proposals)

    @property
    def least_numbers(self) -> int:
        """Its largest two layers."""
        return self.generator.hidden_units * max(self.generator.latent_dim, self.generator.channels)
