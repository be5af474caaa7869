"""Features of the usual Inception network, from a file of weights that the user has; nothing is downloaded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from datalens.errors import ConfigError, DataError
from datalens.evaluation.features import Features, weights_digest
from datalens.evaluation.inputs import ImageArray, ValueRange, byte_images
from datalens.models.inception import LAYERS, NUM_OUTPUTS, InceptionKind, InceptionV3
from datalens.models.weights import read_weights

KNOWN_FILES = ("weights-inception-2015-12-05-6726825d.pth", "inception_v3_google-0cc3c7bd.pth")
"""The names under which torch-fidelity (and torchmetrics), and torchvision, download theirs."""
HOW_TO_GET = (
    f"get torch-fidelity's {KNOWN_FILES[0]} (comparable with published FIDs) or torchvision's {KNOWN_FILES[1]}, "
    "as .pth or .safetensors"
)
_RESIZES = {
    InceptionKind.TENSORFLOW: "bilinear to 299x299, as TensorFlow 1 did (corner-aligned, no antialias)",
    InceptionKind.TORCHVISION: "bilinear to 299x299 (centre-aligned, antialias)",
}


@dataclass(frozen=True, eq=False)
class InceptionExtractor:
    """Inception v3 with somebody's weights.

    Attributes:
        net: The network, in ``eval`` mode.
        layer: Number of features: 64, 192, 768 or 2048.
        digest: SHA-256 over its weights, hexadecimal.
        device: Where it runs.
    """

    net: InceptionV3
    layer: int
    digest: str
    device: torch.device

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return f"inception-v3 ({self.net.kind}, {self.layer} features)"

    @torch.inference_mode()
    def extract(
        self, images: ImageArray, value_range: ValueRange | str | None = None, *, batch_size: int = 32
    ) -> Features:
        """Features and class probabilities of images, in their order.

        Images are scaled to 299x299 and grey ones repeated over three channels; the result says so.

        Raises:
            DataError: no images, an undeclared range, or neither one nor three channels.
        """
        prepared = byte_images(images, value_range)
        if prepared.shape[1] not in (1, 3):
            raise DataError(f"images have {prepared.shape[1]} channels; give 1 (grey) or 3 (colour)")
        repeat = 3 // prepared.shape[1]
        features, logs = [], []
        for start in range(0, len(prepared), batch_size):
            batch = torch.from_numpy(prepared[start : start + batch_size]).to(self.device).float()
            found, logits = self.net(batch.expand(-1, 3, -1, -1), self.layer)
            features.append(found.cpu())
            logs.append(torch.log_softmax(logits.double(), dim=1).cpu())
        return Features(
            torch.cat(features).numpy(),
            torch.cat(logs).numpy(),
            self.digest,
            repeat,
            _RESIZES[self.net.kind],
        )


def find_weights() -> Path:
    """The file of weights where torch's own downloads lie on this machine.

    Raises:
        DataError: there is none; says what to get and where to put it.
    """
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    for name in KNOWN_FILES:
        if (folder / name).is_file():
            return folder / name
    raise DataError(f"no Inception weights on this machine: {HOW_TO_GET}, and put it into {folder}")


def load_inception(
    path: str | os.PathLike[str], *, layer: int = 2048, device: str | torch.device = "cpu"
) -> InceptionExtractor:
    """Inception v3 with the weights of a file, which is never unpickled beyond plain tensors.

    Args:
        path: torch-fidelity's or torchvision's weights, ``.pth`` or ``.safetensors``; told apart by the number
            of outputs, 1008 or 1000.
        layer: 64, 192, 768 or 2048 features.
        device: Where to run.

    Raises:
        ConfigError: no such layer.
        DataError: no such file (says what to get), or other contents.
    """
    if layer not in LAYERS:
        raise ConfigError(f"layer is {layer}; choose one of: {', '.join(str(known) for known in LAYERS)}")
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file; {HOW_TO_GET}")
    state = read_weights(path, HOW_TO_GET)
    outputs = len(state["fc.weight"]) if "fc.weight" in state else 0
    kinds = [kind for kind, number in NUM_OUTPUTS.items() if number == outputs]
    if not kinds:
        raise DataError(f"{path}: holds no Inception v3 of 1008 or 1000 outputs; {HOW_TO_GET}")
    net = InceptionV3(kinds[0])
    wanted = {name: state[name] for name in net.state_dict() if name in state}
    try:
        net.load_state_dict(wanted)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: its weights do not fit Inception v3 ({reason}); {HOW_TO_GET}") from None
    place = torch.device(device)
    net = net.to(place).eval().requires_grad_(False)
    return InceptionExtractor(net, layer, weights_digest(net), place)
