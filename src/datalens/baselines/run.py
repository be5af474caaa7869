"""One run of a baseline."""

from __future__ import annotations

from pathlib import Path

from datalens.baselines.facts import BaselineFacts
from datalens.baselines.method import Learner
from datalens.baselines.registry import BaselineConfig, check_form
from datalens.data.images import LabelledImages
from datalens.methods.opening import decide
from datalens.methods.run import MethodRun
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.student.sampling import rows_of_classes
from datalens.training.files import read_json
from datalens.training.progress import Draw
from datalens.training.run_folder import RunFolder


class BaselineRun(MethodRun[BaselineFacts, Learner]):
    """A run in progress. Make one with :meth:`begin` or :meth:`resume`, then call :meth:`run`."""

    @classmethod
    def begin(
        cls,
        config: BaselineConfig,
        data: LabelledImages,
        root: Path | None,
        shared: DatasetBudget | None = None,
    ) -> BaselineRun:
        """A new run; with ``root`` its folder is made, and removed again if the run cannot begin.

        Args:
            config: settings.
            data: the sensitive records.
            root: a new folder, or None to keep everything in memory.
            shared: the data set's budget, open; charged before the run's own, and closed with the run.

        Raises:
            DataLensError: settings or data that do not fit; nothing is left behind.

        Warns:
            PrivacyWarning: a delta at which releasing a whole record would be allowed.
        """
        check_form(config)
        return cls.begun(decide(BaselineFacts, config, data, shared), data, root, shared)

    @classmethod
    def resume(cls, root: Path, data: LabelledImages) -> BaselineRun:
        """A run that was interrupted, at its last good checkpoint.

        Args:
            root: the run's folder.
            data: the same records.

        Raises:
            DataLensError: the folder lacks what is needed, or disagrees with the data or itself.
        """
        folder = RunFolder.open(root)
        return cls.reopened(BaselineFacts.from_json(read_json(folder.config), folder.config), root, data)

    def _draw(self) -> Draw:
        return lambda per_class: rows_of_classes(self.learner.generator(), self.facts.latent, per_class)
