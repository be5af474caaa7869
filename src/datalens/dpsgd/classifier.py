"""The façade of DP-SGD: settings and labelled images in, a classifier with its ledger out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from datalens.data.images import LabelledImages
from datalens.dpsgd.facts import ClassifierConfig, ClassifierFacts
from datalens.dpsgd.learner import ClassifierLearner
from datalens.errors import DataError
from datalens.methods.model import MethodModel
from datalens.methods.opening import decide
from datalens.methods.run import MethodRun
from datalens.models.small_classifiers import small_classifier
from datalens.privacy.dataset_budget import DatasetBudget
from datalens.training.files import read_json
from datalens.training.release import read_network
from datalens.training.run_folder import RunFolder
from datalens.training.trained import there

ClassifierRun = MethodRun[ClassifierFacts, ClassifierLearner]
_IMAGES_AT_ONCE = 1000


class DPSGDClassifier(MethodModel[ClassifierConfig, ClassifierFacts]):
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
            NotFittedError: nothing was trained or loaded.
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

    @property
    def classes_(self) -> np.ndarray:
        """What :meth:`predict` gives, int64 [Y], under the name that scikit-learn's tools ask for."""
        return np.arange(len(self.classes))

    def score(self, images: np.ndarray, labels: np.ndarray) -> float:
        """Share of the images whose number is predicted; on people's data it is not covered by the guarantee.

        Args:
            images: uint8 [N, C, H, W], N at least 1.
            labels: class numbers [N].

        Raises:
            DataError: images of another type or shape, or labels of another number.
            NotFittedError: nothing was trained or loaded.
        """
        found = self.predict(images)
        if np.shape(labels) != found.shape or not len(found):
            raise DataError(f"labels of shape {np.shape(labels)} for {len(found)} images: give one for each")
        return float((found == labels).mean())

    def accuracy(self, data: LabelledImages) -> float:
        """Share of the images that are given their own class. On people's data it is not covered by the guarantee.

        Raises:
            DataError: other classes, another shape, or no image.
        """
        if data.classes != self.classes or not data.num_records:
            raise DataError(
                f"{data.name}: has no images of the run's classes; give the data that it was trained for"
            )
        return self.score(data.images, data.labels)

    def _classes(self, images_NCHW: Tensor) -> Tensor:
        return self.classifier(images_NCHW.float() / 255).argmax(1)

    @classmethod
    def _begun(
        cls, config: ClassifierConfig, data: LabelledImages, root: Path | None, shared: DatasetBudget | None
    ) -> ClassifierRun:
        return ClassifierRun.begun(decide(ClassifierFacts, config, data, shared), data, root, shared)

    @classmethod
    def _reopened(cls, root: Path, data: LabelledImages) -> ClassifierRun:
        return ClassifierRun.reopened(facts_of(RunFolder.open(root)), root, data)

    @classmethod
    def _facts_in(cls, folder: RunFolder) -> ClassifierFacts:
        return facts_of(folder)

    @staticmethod
    def _file(folder: RunFolder) -> Path:
        return folder.classifier

    def _take(self, learner: ClassifierLearner) -> nn.Module:
        self._classifier = learner.classifier()
        return self._classifier

    def _read(self, path: Path, facts: ClassifierFacts) -> None:
        self._classifier = read_network(path, lambda: _blank(facts), facts.num_weights)


def facts_of(folder: RunFolder) -> ClassifierFacts:
    """What everybody may know of a run of DP-SGD.

    Raises:
        RunError: the folder holds another run, or a damaged one.
    """
    return ClassifierFacts.from_json(read_json(folder.config), folder.config)


def _blank(facts: ClassifierFacts) -> nn.Module:
    return small_classifier(facts.config.settings.model, facts.image_shape, len(facts.classes))
