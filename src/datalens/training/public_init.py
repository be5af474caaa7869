"""A public start in words: how it is trained, and what everybody may know of where a run's weights come from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from datalens.training.sections import Batch, Count, Positive, Section

_SHA256 = re.compile(r"[0-9a-f]{64}")


class PublicInit(Section):
    """How generator and discriminator learn from public images before the run; used where there are such.

    Attributes:
        steps: of both, one each in turn.
        batch_size: public images in a step, and generated ones.
        learning_rate: Adam's, of both.
    """

    steps: Count = 500
    batch_size: Batch = 64
    learning_rate: Positive = 5e-4


class StartSource(StrEnum):
    """What a public start was made from."""

    IMAGES = "images"
    RUN = "run"


@dataclass(frozen=True)
class Origin:
    """Where the weights come from. Public.

    Attributes:
        source: public images, or a run on public images.
        name: of those images.
        same_classes: their classes are the run's; else images had a class by lot, or a run had other names.
        discriminators: teachers start from it as well, and not the generator alone.
    """

    source: StartSource
    name: str
    same_classes: bool
    discriminators: bool

    def to_json(self) -> dict[str, Any]:
        """Plain values; :meth:`from_json` reads them back."""
        return {
            "source": str(self.source),
            "name": self.name,
            "same_classes": self.same_classes,
            "discriminators": self.discriminators,
        }

    @classmethod
    def from_json(cls, data: Any) -> Origin:
        """Read :meth:`to_json`; more names are passed over.

        Raises:
            ValueError, TypeError, KeyError: a value that is missing or of another kind.
        """
        match data["source"], data["name"], data["same_classes"], data["discriminators"]:
            case str(source), str(name), bool(same_classes), bool(discriminators):
                return cls(StartSource(source), name, same_classes, discriminators)
        raise ValueError("a public start that does not say what it was made from")


@dataclass(frozen=True)
class StartFacts:
    """What a run's settings say of its public start.

    Attributes:
        origin: where it comes from.
        sha256: of its file, in hex.
    """

    origin: Origin
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """Plain values; :meth:`from_json` reads them back."""
        return {**self.origin.to_json(), "sha256": self.sha256}

    @classmethod
    def from_json(cls, data: Any) -> StartFacts | None:
        """Read :meth:`to_json`; None stands for no public start.

        Raises:
            ValueError, TypeError, KeyError: a value that is missing or of another kind.
        """
        if data is None:
            return None
        sha256 = data["sha256"]
        if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            raise ValueError("a public start without its SHA-256")
        return cls(Origin.from_json(data), sha256)
