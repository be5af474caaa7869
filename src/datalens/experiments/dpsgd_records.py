"""What the classifiers of DP-SGD learn on: MNIST's pixels, or the features of CIFAR-10's images."""

from __future__ import annotations

from collections.abc import Callable

import torch

from datalens import data
from datalens.data.images import LabelledImages
from datalens.experiments.dpsgd_cells import DpsgdCell
from datalens.experiments.dpsgd_training import Records
from datalens.experiments.extractors import EXTRACTORS, RESNET18, FrozenNet
from datalens.experiments.frozen import cached_features
from datalens.experiments.workplace import Workplace

CONTRAST, SHIFT = 3.0, 0.4
"""A pixel x in [0, 1] is shown as 3 x - 0.4, about where Opacus's example puts it. The example's own two numbers are
the mean and standard deviation of MNIST's training pixels, which no epsilon covers."""


def records_of(cell: DpsgdCell, place: Workplace, tell: Callable[[str], None] = lambda _: None) -> Records:
    """The records of a cell; those last asked for are kept in memory, features in the workplace's folder.

    Raises:
        DataError: files of the data set or of the extractor's weights are not here.
        MissingExtraError: the package that has the weights is not installed.
    """
    what = f"{cell.data_set} {cell.features}"
    if what not in place.records:
        place.records.clear()
        net = None if cell.features is None else frozen_net(cell.features, place)
        train, test = (data.load(cell.data_set, split=split, root=place.data_root) for split in data.SPLITS)
        shown = [_shown(images, net, place, tell) for images in (train, test)]
        labels = [torch.from_numpy(images.labels) for images in (train, test)]
        place.records[what] = Records(shown[0], labels[0], shown[1], labels[1])
    return place.records[what]


def frozen_net(name: str, place: Workplace) -> FrozenNet:
    """The extractor of that name, with its weights.

    Raises:
        DataError: its weights are not here.
        MissingExtraError: nor is the package that has them installed.
    """
    extractor = EXTRACTORS[name]
    return FrozenNet(extractor, place.resnet18 if extractor is RESNET18 else None)


def _shown(
    images: LabelledImages, net: FrozenNet | None, place: Workplace, tell: Callable[[str], None]
) -> torch.Tensor:
    if net is None:
        return images.to_unit() * CONTRAST - SHIFT
    folder = place.scratch / "frozen-features"
    features = cached_features(images.images, net, folder, lambda what: tell(f"{images.name}: {what}"))
    return features[:, : net.extractor.used].float()
