"""A judge that names images, and a generator whose images are called what the judge calls them."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from datalens.models.classifiers import Classifier, ClassifierKind, build_classifier
from datalens.models.finish import Finish, FinishedGenerator
from datalens.models.mixed import MixedImages

NETWORKS = 2
"""Classifiers whose features a judge looks at."""
CELLS = 5
"""Rows and columns to which maps of features are averaged."""
MAPS = 64
"""Of the last convolution of a classifier."""
FEATURES = NETWORKS * (MAPS * CELLS**2 + 64)
"""Numbers that a judge knows of an image before it takes coordinates."""


class Judge(nn.Module):
    """Logits from coordinates of features of two classifiers, which learned from synthetic images.

    An image's features are the maps of each classifier's last convolution, averaged to 5 by 5, and its last
    hidden layer. Its coordinates are these less their centre, in a frame of K directions, cut to a length, and a
    constant; so a row of coordinates is at most 1 long. Logits are linear in them.

    Parameters are zeros until they are set; a judge of length 0 knows nothing and names nothing.

    Args:
        image_shape: (C, H, W).
        num_classes: Y.
        size: K.

    Raises:
        ConfigError: images too small for the classifiers.
    """

    centre_F: Tensor
    frame_FK: Tensor
    head_YK: Tensor
    length: Tensor
    networks: nn.ModuleList

    def __init__(self, image_shape: tuple[int, int, int], num_classes: int, size: int) -> None:
        super().__init__()
        self.num_classes: int = num_classes
        self.size: int = size
        blank = torch.Generator().manual_seed(0)
        self.networks = nn.ModuleList(
            build_classifier(ClassifierKind.CNN, image_shape, num_classes, blank) for _ in range(NETWORKS)
        )
        shapes = {
            "centre_F": (FEATURES,),
            "frame_FK": (FEATURES, size),
            "head_YK": (num_classes, size + 1),
            "length": (),
        }
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))
        with torch.no_grad():
            for parameter in self.networks.parameters():
                parameter.zero_()

    @property
    def knows(self) -> bool:
        """Whether it was made from anything yet."""
        return bool(self.length > 0)

    def features(self, images_BCHW: Tensor) -> Tensor:
        """float32 ``[B, F]`` of images in [0, 1]."""
        found: list[Tensor] = []
        for network in self.networks:
            x = maps = images_BCHW
            for layer in cast(Classifier, network).trunk:
                x = layer(x)
                maps = x if x.dim() == 4 else maps
            found += [functional.adaptive_avg_pool2d(maps, CELLS).flatten(1), x]
        return torch.cat(found, 1)

    def coordinates(self, images_BCHW: Tensor) -> Tensor:
        """float64 ``[B, K + 1]``, no row longer than 1."""
        return self.framed(self.features(images_BCHW))

    def framed(self, features_BF: Tensor) -> Tensor:
        """Coordinates of features; float64 ``[B, K + 1]``."""
        return self.cut((features_BF.double() - self.centre_F.double()) @ self.frame_FK.double())

    def cut(self, along_BK: Tensor) -> Tensor:
        """Rows along the frame's directions cut to the length, a constant beside them; float64 ``[B, K + 1]``."""
        length = self.length.double()
        norm_B1 = torch.linalg.vector_norm(along_BK, dim=1, keepdim=True)
        along_BK = along_BK * (length / norm_B1.clamp(min=1e-12)).clamp(max=1.0)
        rows_BK = torch.cat([along_BK, torch.ones_like(norm_B1)], 1)
        return rows_BK / torch.sqrt(length.square() + 1)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        """Logits float64 ``[B, Y]`` of images in [0, 1]."""
        return self.coordinates(images_BCHW) @ self.head_YK.double().T


class JudgedGenerator(FinishedGenerator[MixedImages]):
    """Draws images, and says what its judge calls them.

    Args:
        inner: draws the plain images.
        finish: the last layer.
        judge: names finished images.
    """

    def __init__(self, inner: MixedImages, finish: Finish, judge: Judge) -> None:
        super().__init__(inner, finish)
        self.judge: Judge = judge

    @torch.no_grad()
    def named(self, images_BCHW: Tensor, asked_B: Tensor) -> Tensor:
        """int64 ``[B]``: what images in [0, 1] are, or what was asked for where there is no judge yet."""
        return self.judge(images_BCHW).argmax(1) if self.judge.knows else asked_B
