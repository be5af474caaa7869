"""A cell of a table: one training and what is measured on its images, named by everything that decides them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from datalens import recipes
from datalens.errors import ConfigError
from datalens.experiments.variants import Variant
from datalens.training.config import Config

PROTOCOL = 1
"""Raised when the way of measuring changes, so that old results are not mixed with new ones."""


@dataclass(frozen=True)
class DataSet:
    """A published data set: those of the paper, and some that can be had everywhere.

    Attributes:
        title: as the paper writes it.
        quick: the recipe with compact teachers; None where no generator is trained on it.
        paper: the recipe with the paper's networks, likewise.
        image_shape: (C, H, W).
    """

    title: str
    quick: str | None = None
    paper: str | None = None
    image_shape: tuple[int, int, int] = (1, 28, 28)

    @property
    def dim(self) -> int:
        """Coordinates of an image."""
        channels, height, width = self.image_shape
        return channels * height * width


COLOUR = (3, 64, 64)


DATA_SETS = {
    "mnist": DataSet("MNIST", "mnist-quick", "mnist-paper"),
    "fashion-mnist": DataSet("Fashion-MNIST", "fashion-quick", "fashion-paper"),
    "shapes": DataSet("drawn shapes", "shapes-quick", image_shape=(1, 16, 16)),
    "cifar10": DataSet("CIFAR-10", image_shape=(3, 32, 32)),
    "celeba-gender": DataSet("CelebA-Gender", "colour-quick", "celeba-gender-paper", COLOUR),
    "celeba-hair": DataSet("CelebA-Hair", "colour-quick", "celeba-hair-paper", COLOUR),
    "places365": DataSet("Places365", "colour-quick", "places365-paper", COLOUR),
    "emoji": DataSet("emoji", "emoji-quick", "emoji-paper", COLOUR),
}


@dataclass(frozen=True)
class Cell:
    """One training, with an insecure seed so that anyone gets it again.

    Attributes:
        data_set: a name of :data:`DATA_SETS`.
        epsilon: authorised, at delta 1e-5, for adding or removing one record.
        seed: of everything.
        changes: settings that differ from the recipe's, as ``("voting__top_k", 100)``.
        variant: the compression and mechanism in place of TopAgg.
        paper_networks: the paper's networks instead of compact ones.
        held_out: never: only other methods have trials of settings.
    """

    data_set: str
    epsilon: float
    seed: int = 0
    changes: tuple[tuple[str, Any], ...] = ()
    variant: Variant = Variant.TOPAGG
    paper_networks: bool = False
    held_out: ClassVar[bool] = False

    @property
    def recipe(self) -> str | None:
        """The recipe it starts from; None where no generator is trained on such data."""
        data_set = DATA_SETS[self.data_set]
        return data_set.paper if self.paper_networks else data_set.quick

    def config(self) -> Config:
        """Its settings.

        Raises:
            ConfigError: a setting that is unknown or out of range, or a data set without a recipe.
        """
        if self.recipe is None:
            raise ConfigError(
                f"{DATA_SETS[self.data_set].title}: has no recipe here; choose another data set"
            )
        config = recipes.by_name(self.recipe, epsilon=self.epsilon)
        return config.replace(privacy__insecure_seed=self.seed, **dict(self.changes))

    def with_seed(self, seed: int) -> Cell:
        """The same with another seed."""
        return replace(self, seed=seed)

    @property
    def key(self) -> str:
        """Digest of everything that decides the result: equal settings are run once.

        Settings at their default are left out, so that a setting that the product gains later changes no key.

        >>> Cell("mnist", 1.0).key == Cell("mnist", 1.0, changes=(("voting__top_k", 200),)).key
        True
        >>> Cell("mnist", 1.0).key == Cell("mnist", 1.0, seed=1).key
        False
        """
        settings = self.config().model_dump(mode="json", exclude_defaults=True)
        settings.pop("performance", None)
        settings.pop("recipe", None)
        what = [PROTOCOL, self.data_set, str(self.variant), settings]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """One line for people.

        >>> Cell("mnist", 1.0, 2, (("voting__top_k", 100),)).title
        'MNIST, epsilon 1, seed 2, top_k 100'
        """
        changes = [f"{name.partition('__')[2]} {value}" for name, value in self.changes if value is not None]
        variant = [] if self.variant is Variant.TOPAGG else [str(self.variant)]
        networks = ["the paper's networks"] if self.paper_networks else []
        title = DATA_SETS[self.data_set].title
        return ", ".join(
            [title, f"epsilon {self.epsilon:g}", f"seed {self.seed}", *networks, *variant, *changes]
        )

    def to_json(self) -> dict[str, Any]:
        """The cell as plain values."""
        return {**asdict(self), "recipe": self.recipe, "changes": [list(change) for change in self.changes]}
