"""The façade of DP-SGD: settings and labelled images in, a classifier with its ledger out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from datalens.data.images import LabelledImages
from datalens.dpsgd.facts import ClassifierConfig, ClassifierFacts
from datalens.dpsgd.learner import ClassifierLearner
from datalens.errors import DataError, RunError
from datalens.methods.opening import decide
from datalens.methods.run import MethodRun
from datalens.models.small_classifiers import small_classifier
from datalens.privacy.ledger import Ledger
from datalens.training.files import read_json
from datalens.training.progress import Progress
from datalens.training.release import certify, environment, read_environment, read_network, write_network
from datalens.training.run_folder import RunFolder
from datalens.training.shared_budget import budget_for
from datalens.training.trained import Certified, there

Tell = Callable[[Progress], None]
ClassifierRun = MethodRun[ClassifierFacts, ClassifierLearner]
_IMAGES_AT_ONCE = 1000


class DPSGDClassifier(Certified[ClassifierConfig, ClassifierFacts]):
    """Trains a classifier by DP-SGD, keeping the largest part of each record's gradient (TopAgg).

    Args:
        config: settings; see :func:`datalens.dpsgd.parse_classifier`.

    Guarantee:
        Everything in the run's ``release/`` together is (epsilon, delta)-differentially private for one record added
        or removed; its certificate says what that is for one record replaced (``docs/dpsgd.md``).

    Source: Wang et al. 2021, section 4.4 and Appendix A.
    """

    def __init__(self, config: ClassifierConfig | None = None) -> None:
        super().__init__(config or ClassifierConfig())
        self._classifier: nn.Module | None = None

    def fit(
        self,
        data: LabelledImages,
        *,
        out: str | os.PathLike[str] | None = None,
        budget_file: str | os.PathLike[str] | None = None,
        data_name: str | None = None,
        tell: Tell = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> DPSGDClassifier:
        """Train on sensitive images.

        Args:
            data: as :func:`datalens.data.load` reads them.
            out: a new folder for the run; left out, nothing is written and nothing can be resumed.
            budget_file: the data set's budget, charged before the run's own.
            data_name: the name that the budget file must have; left out, any.
            tell: called with a :class:`Progress` after every step.
            stop: asked before every step; True ends the training early.

        Raises:
            DataLensError: settings or data that do not fit; raised before anything is trained.
        """
        with budget_for(budget_file, data_name) as shared:
            decided = decide(ClassifierFacts, self.config, data, shared)
            run = ClassifierRun.begun(decided, data, None if out is None else Path(out), shared)
        return self._train(run, tell, stop)

    @classmethod
    def resume(
        cls,
        folder: str | os.PathLike[str],
        data: LabelledImages,
        *,
        tell: Tell = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> DPSGDClassifier:
        """Go on with a run that was interrupted; what was charged stays charged.

        Raises:
            DataLensError: the folder lacks what is needed, or disagrees with the data or itself.
        """
        run = ClassifierRun.reopened(facts_of(RunFolder.open(Path(folder))), Path(folder), data)
        return cls(run.facts.config)._train(run, tell, stop)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> DPSGDClassifier:
        """A trained run, from its ``release/`` alone.

        Raises:
            DataLensError: the folder holds no finished run of DP-SGD, or a damaged one.
        """
        source = RunFolder.open(Path(folder))
        facts = facts_of(source)
        if not source.classifier.is_file():
            raise RunError(f"{folder}: the run has no classifier yet; resume the training first")
        loaded = cls(facts.config)
        loaded._facts = facts
        loaded._classifier = read_network(source.classifier, lambda: _blank(facts), facts.num_weights)
        loaded._ledger = Ledger.read(source.ledger)
        loaded._made_in = read_environment(source.classifier)
        return loaded

    @property
    def classifier(self) -> nn.Module:
        """The network: class scores [N, Y] of images [N, C, H, W] in [0, 1]."""
        return there(self._classifier)

    def predict(self, images: np.ndarray) -> np.ndarray:
        """The most likely class of each image, int64 [N]: a number in the order of ``classes``.

        Args:
            images: uint8 [N, C, H, W], of the shape that the run was trained on.

        Raises:
            DataError: images of another type or shape.
            RunError: nothing was trained or loaded.
        """
        shape = self.facts.image_shape
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != shape:
            raise DataError(
                f"images of type {images.dtype} and shape {images.shape} cannot be classified; give uint8 "
                f"[N, {', '.join(str(side) for side in shape)}]"
            )
        with torch.no_grad():
            parts = [self._classes(part) for part in torch.from_numpy(images).split(_IMAGES_AT_ONCE)]
        return torch.cat(parts).numpy()

    def accuracy(self, data: LabelledImages) -> float:
        """Share of the images that are given their own class. On people's data it is not covered by the guarantee.

        Raises:
            DataError: other classes, another shape, or no image.
        """
        if data.classes != self.classes or not data.num_records:
            raise DataError(
                f"{data.name}: has no images of the run's classes; give the data that it was trained for"
            )
        return float((self.predict(data.images) == data.labels).mean())

    def _classes(self, images_NCHW: Tensor) -> Tensor:
        return self.classifier(images_NCHW.float() / 255).argmax(1)

    def _train(self, run: ClassifierRun, tell: Tell, stop: Callable[[], bool]) -> DPSGDClassifier:
        try:
            run.run(tell=tell, stop=stop)
            self._facts, self._ledger = run.facts, run.ledger
            self._classifier = run.learner.classifier()
            self._made_in = environment(run.device)
            self._notes = tuple(run.notes)
            if run.folder is not None:
                write_network(run.folder.classifier, self._classifier, self._made_in)
                certify(run.folder, run.ledger)
            self.was_stopped = run.was_stopped
        finally:
            run.close()
        return self


def facts_of(folder: RunFolder) -> ClassifierFacts:
    """What everybody may know of a run of DP-SGD.

    Raises:
        RunError: the folder holds another run, or a damaged one.
    """
    return ClassifierFacts.from_json(read_json(folder.config), folder.config)


def _blank(facts: ClassifierFacts) -> nn.Module:
    return small_classifier(facts.config.settings.model, facts.image_shape, len(facts.classes))
