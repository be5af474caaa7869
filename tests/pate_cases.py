"""What tests of the PATE baselines share: drawn shapes, a context with a budget, and a score of a generator."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from datalens.baselines.method import Method
from datalens.data.images import LabelledImages
from datalens.data.shapes import draw_shapes
from datalens.methods.method import Context, PublicSize
from datalens.models.finish import AnyGenerator
from datalens.noise import make_noise
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.student.latent import LatentSpace
from datalens.student.sampling import sample_images
from datalens.training.config import StudentSettings
from datalens.training.sections import Privacy

RECORDS, SIDE = 120, 8
SIZE = PublicSize(RECORDS, (1, SIDE, SIDE), 4)
PRIVACY = Privacy(epsilon=5.0, delta=1e-4, insecure_seed=1, num_records=RECORDS)
OPEN = PRIVACY.model_copy(update={"noise": NoiseKind.NONE})
GENERATOR = StudentSettings(latent_dim=4, hidden_units=48, channels=16)


def shapes(records: int = RECORDS, seed: int = 0) -> LabelledImages:
    return draw_shapes(records, image_size=SIDE, seed=seed)


def without(data: LabelledImages, record: int) -> LabelledImages:
    """The same images but one."""
    return dataclasses.replace(
        data, images=np.delete(data.images, record, 0), labels=np.delete(data.labels, record)
    )


def replaced(data: LabelledImages, record: int) -> LabelledImages:
    """The same images, one of them turned round and of another class."""
    images, labels = data.images.copy(), data.labels.copy()
    images[record] = 255 - images[record]
    labels[record] = (labels[record] + 1) % data.num_classes
    return dataclasses.replace(data, images=images, labels=labels)


def budget_for(privacy: Privacy, epsilon: float | None = None) -> Budget:
    allowed = Authorisation(epsilon or privacy.epsilon, privacy.delta, privacy.accountant)
    if not privacy.is_private:
        allowed = Authorisation.not_private(privacy.delta)
    return Budget(Ledger.in_memory(), allowed)


def context_for(
    privacy: Privacy, data: LabelledImages | None = None, budget: Budget | None = None
) -> Context:
    data = shapes() if data is None else data
    keys = Streams.from_insecure_seed(1, "noise")

    def noise_for(what: str, number: int):
        return make_noise(privacy.noise, keys.key(what, number) if privacy.is_private else None)

    return Context(
        data=data,
        size=PublicSize(max(RECORDS, data.num_records), data.image_shape, data.num_classes),
        budget=budget or budget_for(privacy),
        noise_for=noise_for,
        public=Streams.from_insecure_seed(1, "public"),
        private=Streams.from_insecure_seed(1, "private"),
        device=torch.device("cpu"),
    )


def plan_of(method: Method) -> list[tuple[str, float, int]]:
    """What, mu, and how often of every planned release."""
    return [(part.what, part.event.mu, part.count) for part in method.planned()]


def share_of_shapes_recognised(generator: AnyGenerator, latent_dim: int) -> float:
    """Of fresh shapes, the share that a linear classifier names rightly after seeing generated images alone."""
    images, labels = sample_images(generator, LatentSpace(latent_dim, 4), 600, seed=0)
    fresh = shapes(400, seed=9)
    design, asked = ((np.c_[x.reshape(len(x), -1) / 255.0, np.ones(len(x))]) for x in (images, fresh.images))
    ridge = design.T @ design + 10.0 * np.eye(design.shape[1])
    weights = np.linalg.solve(ridge, design.T @ np.eye(4)[labels])
    return float(((asked @ weights).argmax(1) == fresh.labels).mean())
