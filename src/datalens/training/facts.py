"""What everybody may know of a run, and the file that says it: ``release/config.json``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datalens.data.images import LabelledImages
from datalens.errors import ConfigError, DataError, RunError
from datalens.models.finish import AnyGenerator
from datalens.moments.measuring import Measures
from datalens.randomness import ROOT_BYTES, Streams
from datalens.student.latent import LatentSpace
from datalens.student.update import StudentPlan
from datalens.training.config import Config, parse_config
from datalens.training.files import read_json
from datalens.training.public_init import StartFacts
from datalens.training.run_folder import RunFolder
from datalens.training.sections import Privacy, RunSettings
from datalens.version import __version__

CONFIG_FORMAT = "datalens-run/1"
"""What ``release/config.json`` says of itself."""
GROUP = "group"
"""What it says is protected as a whole, where that is more than a record."""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What everybody may know of a run, whatever its method.

    Attributes:
        config: the settings.
        image_shape: (C, H, W).
        classes: names of the classes, in the order of their numbers.
        classes_from_data: the class list was read off the data and not declared beforehand.
        data_name: name of a published data set, else "private".
        num_records: the public number of records.
        num_steps: planned.
        public_root: key of the public random streams.
        of_groups: records come in groups, and each group is protected as a whole.
    """

    config: RunSettings
    image_shape: tuple[int, int, int]
    classes: tuple[str, ...]
    classes_from_data: bool
    data_name: str
    num_records: int
    num_steps: int
    public_root: bytes
    of_groups: bool = False

    @property
    def dim(self) -> int:
        """Coordinates of one image, D."""
        channels, height, width = self.image_shape
        return channels * height * width

    @property
    def streams(self) -> Streams:
        """The public random streams."""
        return Streams(self.public_root)

    def to_json(self) -> dict[str, Any]:
        """Plain values; :func:`common_facts` reads them back."""
        return {
            "format": CONFIG_FORMAT,
            "datalens": __version__,
            "image_shape": list(self.image_shape),
            "classes": list(self.classes),
            "classes_from_data": self.classes_from_data,
            "data": self.data_name,
            "num_records": self.num_records,
            "num_steps": self.num_steps,
            "public_root": self.public_root.hex(),
            **({"unit": GROUP} if self.of_groups else {}),
        }


@dataclass(frozen=True, kw_only=True)
class GeneratorFacts(RunFacts, ABC):
    """What everybody may know of a run that trains a generator."""

    @property
    @abstractmethod
    def latent(self) -> LatentSpace:
        """What the generator is fed."""

    @abstractmethod
    def blank_generator(self) -> AnyGenerator:
        """The finished generator's network, its weights all zero."""

    @property
    @abstractmethod
    def least_numbers(self) -> int:
        """Fewest numbers that its weights can be, for a look at a file before memory is taken for what it asks."""


def common_facts(data: Any, source: Path) -> dict[str, Any]:
    """The fields of :class:`RunFacts` but settings, from plain values.

    Raises:
        RunError: a format from a newer version.
        ValueError, TypeError, KeyError: a value that is missing, of another kind or out of range.
    """
    if data["format"] != CONFIG_FORMAT:
        raise RunError(f"{source}: format {data['format']!r} is unknown; update datalens")
    channels, height, width = (int(size) for size in data["image_shape"])
    public_root = bytes.fromhex(data["public_root"])
    if len(public_root) != ROOT_BYTES or min(channels, height, width, int(data["num_steps"])) < 1:
        raise ValueError("a size or key out of range")
    if data.get("unit", GROUP) != GROUP:
        raise ValueError("an unknown unit of privacy")
    return {
        "image_shape": (channels, height, width),
        "classes": tuple(str(name) for name in data["classes"]),
        "classes_from_data": bool(data["classes_from_data"]),
        "data_name": str(data["data"]),
        "num_records": int(data["num_records"]),
        "num_steps": int(data["num_steps"]),
        "public_root": public_root,
        "of_groups": "unit" in data,
    }


def shown_of(data: LabelledImages) -> dict[str, Any]:
    """What everybody may know of the data, as fields of :class:`RunFacts`."""
    return {
        "image_shape": data.image_shape,
        "classes": data.classes,
        "classes_from_data": data.classes_from_data,
        "data_name": data.name if data.public else "private",
        "of_groups": data.group_ids is not None,
    }


@contextmanager
def whole(source: Path) -> Iterator[None]:
    """Whatever goes wrong while a run's settings are read is one line about their file.

    Raises:
        RunError: says what is damaged.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, ConfigError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{source}: is not a run's settings ({reason:.120}); restore the file") from None


@dataclass(frozen=True, kw_only=True)
class PublicFacts(GeneratorFacts):
    """What everybody may know of a run of DataLens; it fills ``release/config.json``.

    Attributes:
        config: the settings.
        noise_stddev: of every release.
        start: the public weights that it begins with; None where it begins at random.
    """

    config: Config
    noise_stddev: float
    start: StartFacts | None = None

    @property
    def measures(self) -> Measures:
        """What a warm start measures of every record."""
        return Measures(self.image_shape, len(self.classes))

    @property
    def student_plan(self) -> StudentPlan:
        """What the student is and how it learns."""
        batch_size = self.config.voting.batch_size
        return self.config.student.plan(self.image_shape, len(self.classes), batch_size, self.num_steps)

    @property
    def latent(self) -> LatentSpace:
        """What the generator is fed."""
        return self.student_plan.latent

    def blank_generator(self) -> AnyGenerator:
        """The finished generator's network, its weights all zero."""
        return self.student_plan.generator()

    @property
    def least_numbers(self) -> int:
        """Its largest two layers."""
        student = self.config.student
        return max(student.hidden_units * student.latent_dim, student.hidden_units * student.channels)

    def to_json(self) -> dict[str, Any]:
        """Plain values; :meth:`from_json` reads them back."""
        plain = super().to_json() | {"noise_stddev": self.noise_stddev, "config": self.config.to_json()}
        if self.start is None:
            return plain
        used = {**plain["config"], "public_init": self.config.public_init.model_dump(mode="json")}
        return {**plain, "config": used, "public_init": self.start.to_json()}

    @classmethod
    def from_json(cls, data: Any, source: Path) -> PublicFacts:
        """Read ``release/config.json``.

        Raises:
            RunError: it is not one, from a newer version, or of another method.
        """
        with whole(source):
            if "method" in data:
                raise RunError(
                    f"{source}: is a run of {data['method']}, and this is for runs of datalens; give one"
                )
            return cls(
                config=parse_config(data["config"]),
                noise_stddev=float(data["noise_stddev"]),
                start=StartFacts.from_json(data.get("public_init")),
                **common_facts(data, source),
            )


def read_facts(folder: RunFolder) -> PublicFacts:
    """The public settings of a run.

    Raises:
        RunError: there are none, or they are damaged.
    """
    if not folder.config.is_file():
        name = f"{folder.release.name}/config.json"
        raise RunError(f"{folder.root}: holds no run (no {name}); give the folder of a run")
    return PublicFacts.from_json(read_json(folder.config), folder.config)


def declared_records(privacy: Privacy, data: LabelledImages) -> int:
    """The public number of records: declared, or the file's own length where that is public.

    Raises:
        ConfigError: neither was declared.
        DataError: fewer were declared than there are.
    """
    declared = privacy.num_records
    if declared is not None:
        if data.num_listed > declared:
            raise DataError(
                f"--num-records {declared} (privacy.num_records): the data hold {data.num_listed}; "
                "declare at least as many, or leave records out before training"
            )
        return declared
    if data.public or privacy.record_count_is_public:
        return data.num_listed
    raise ConfigError(
        "the number of records is not public: give --num-records with an upper bound that may be known, "
        "or --public-record-count if the file's own length may be"
    )


def require_public_classes(privacy: Privacy, data: LabelledImages) -> None:
    """Refuse a class list that was found in people's records, where the run may be published and it would be seen.

    Raises:
        ConfigError: it was neither declared beforehand, nor declared public as it was found.
    """
    if not data.classes_from_data or data.public or privacy.labels_are_public:
        return
    if privacy.is_publishable:
        raise ConfigError(
            f"{data.name}: the class list was found in the records, and everybody will see it: declare it "
            "beforehand with --classes A,B,C (in Python classes=[...]), or say with --labels-are-public "
            "(labels_are_public=True) that the labels found may be known"
        )
