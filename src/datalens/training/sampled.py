"""Drawn images as a PyTorch ``Dataset``, to train on as on any other."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset


class SampledImages(Dataset[tuple[Tensor, int]]):
    """Images of a generator with their class numbers; held as bytes, given as numbers.

    Args:
        images: uint8 [N, C, H, W].
        labels: int64 [N].
        classes: names of the classes, in the order of their numbers.

    An item is ``(image, label)``: float32 [C, H, W] in [0, 1], and a class number from 0.
    """

    images: Tensor
    labels: np.ndarray
    classes: tuple[str, ...]

    def __init__(self, images: np.ndarray, labels: np.ndarray, classes: tuple[str, ...]) -> None:
        self.images, self.labels, self.classes = torch.from_numpy(images), labels, classes

    def __len__(self) -> int:
        """How many images there are."""
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """One image with its label."""
        return self.images[index].float() / 255, int(self.labels[index])
