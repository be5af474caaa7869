"""What everybody may know of a baseline's run: ``release/config.json``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datalens.baselines.registry import METHODS, BaselineConfig, parse_baseline
from datalens.errors import RunError
from datalens.methods.facts import MethodFacts
from datalens.models.finish import AnyGenerator
from datalens.privacy import promises
from datalens.student.latent import LatentSpace
from datalens.training.facts import GeneratorFacts, PublicFacts, common_facts, read_facts, whole
from datalens.training.files import read_json
from datalens.training.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class BaselineFacts(MethodFacts, GeneratorFacts):
    """What everybody may know of a run of a baseline.

    Attributes:
        config: the settings.
    """

    config: BaselineConfig

    @property
    def latent(self) -> LatentSpace:
        """What the generator is fed."""
        return self.config.settings.latent(self.size)

    def blank_generator(self) -> AnyGenerator:
        """The finished generator's network, its weights all zero."""
        return self.config.settings.network(self.size)

    @property
    def least_numbers(self) -> int:
        """Fewest numbers that its weights can be."""
        return self.config.settings.least_numbers

    @classmethod
    def from_json(cls, data: Any, source: Path) -> BaselineFacts:
        """Read ``release/config.json``.

        Raises:
            RunError: it is not one, or from a newer version.
        """
        with whole(source):
            if data.get("method") in promises.CLASSIFIERS:
                raise RunError(
                    f"{source}: is a run of {data['method']}, a classifier, and this is for generators; see "
                    "`datalens dpsgd` and `datalens evaluate`"
                )
            if data["method"] not in METHODS:
                raise RunError(
                    f"{source}: is of {data['method']!r:.40}, which is no method here (known: {', '.join(METHODS)}); "
                    "if somebody wrote it, run their program, which registers it"
                )
            config = parse_baseline(data["config"])
            if data["method"] != config.method:
                raise ValueError(f"method {data['method']!r} with the settings of {config.method!r}")
            return cls(config=config, **common_facts(data, source))


def method_of(root: Path) -> str:
    """The method of the run in a folder, as its settings say: ``datalens``, or a baseline's name.

    Raises:
        RunError: there is no run, or its settings are damaged.
    """
    folder = RunFolder.open(root)
    data = read_json(folder.config)
    if not isinstance(data, dict):
        raise RunError(f"{folder.config}: is not a run's settings; restore the file")
    return str(data.get("method", "datalens"))


def facts_of(root: Path) -> PublicFacts | BaselineFacts:
    """What everybody may know of the run in a folder, whatever its method.

    Raises:
        RunError: there is no run, or its settings are damaged.
    """
    folder = RunFolder.open(root)
    if method_of(root) == "datalens":
        return read_facts(folder)
    return BaselineFacts.from_json(read_json(folder.config), folder.config)
