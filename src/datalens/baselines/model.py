"""The façade of a baseline: settings and images in, a generator with its ledger out."""

from __future__ import annotations

import os
from pathlib import Path

from torch import nn

from datalens.baselines.facts import BaselineFacts, method_of
from datalens.baselines.method import Learner
from datalens.baselines.registry import BaselineConfig
from datalens.baselines.run import BaselineRun
from datalens.data.images import LabelledImages
from datalens.methods.model import MethodModel
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.training.files import read_json
from datalens.training.release import read_generator
from datalens.training.run_folder import RunFolder
from datalens.training.synthesizer import DataLens
from datalens.training.trained import Trained


class Baseline(MethodModel[BaselineConfig, BaselineFacts], Trained[BaselineConfig, BaselineFacts]):
    """Trains a generator by one of the methods that DataLens is compared with, and draws from it.

    Args:
        config: settings; see :func:`datalens.baselines.registry.baseline`.

    Guarantee:
        As :class:`datalens.DataLens`, with the releases that the method's page in ``docs/baselines.md`` names.
    """

    @classmethod
    def _begun(
        cls, config: BaselineConfig, data: LabelledImages, root: Path | None, shared: DatasetBudget | None
    ) -> BaselineRun:
        return BaselineRun.begin(config, data, root, shared)

    @classmethod
    def _reopened(cls, root: Path, data: LabelledImages) -> BaselineRun:
        return BaselineRun.resume(root, data)

    @classmethod
    def _facts_in(cls, folder: RunFolder) -> BaselineFacts:
        return BaselineFacts.from_json(read_json(folder.config), folder.config)

    @staticmethod
    def _file(folder: RunFolder) -> Path:
        return folder.generator

    def _take(self, learner: Learner) -> nn.Module:
        self._generator = learner.generator()
        return self._generator

    def _read(self, path: Path, facts: BaselineFacts) -> None:
        self._generator = read_generator(path, facts)


def load_run(folder: str | os.PathLike[str]) -> DataLens | Baseline:
    """A trained run of any method.

    Raises:
        DataLensError: the folder holds no finished run, or a damaged one.
    """
    return DataLens.load(folder) if method_of(Path(folder)) == "datalens" else Baseline.load(folder)
