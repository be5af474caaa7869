"""First stage of Inception Score and FID: images -> features and class probabilities.

The features come from a classifier trained on the *real training* images of the same data set, since the
usual Inception network was made for colour photographs. It is cached in a folder that the caller names.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from datalens.errors import DataError
from datalens.evaluation.fitting import accuracy_of, batches_of, fit_classifier
from datalens.evaluation.inputs import ImageArray, ValueRange, byte_images, check_labels
from datalens.models.classifiers import Classifier, ClassifierKind, build_classifier
from datalens.randomness import Streams

FEATURE_CACHE_VERSION = 1


@dataclass(frozen=True)
class FeatureRecipe:
    """How the feature classifier is trained; part of what names it in the cache.

    Attributes:
        kind: Which network.
        epochs: Passes over the training images; more where they are so few that ``least_steps`` asks for it.
        batch_size: Images in one step.
        learning_rate: Adam's, at its peak.
        seed: Of initial weights, order and dropout.
        least_steps: Steps below which batch norm has learnt nothing.
    """

    kind: ClassifierKind = ClassifierKind.FEATURE_NET
    epochs: int = 8
    batch_size: int = 128
    learning_rate: float = 3e-3
    seed: int = 0
    least_steps: int = 300

    def epochs_for(self, num_images: int) -> int:
        """How many epochs are made with so many images.

        >>> FeatureRecipe().epochs_for(60000), FeatureRecipe().epochs_for(300)
        (8, 100)
        """
        return max(self.epochs, -(-self.least_steps // -(-num_images // self.batch_size)))


@dataclass(frozen=True, eq=False)
class Features:
    """What a classifier says about a set of images.

    Attributes:
        features: float32 ``[N, F]``, the input of the classifier's last layer: for FID.
        log_probabilities: float64 ``[N, Y]``, for the Inception Score; 0 is certain.
        extractor: Digest of the classifier's weights: compare numbers only where it is the same.
        channel_repeat: How many times the only channel was repeated to fit the extractor (1: not at all).
        resize: How the extractor scaled the images, in words.
    """

    features: npt.NDArray[np.float32]
    log_probabilities: npt.NDArray[np.float64]
    extractor: str
    channel_repeat: int = 1
    resize: str = "none"

    @property
    def num_images(self) -> int:
        """N."""
        return len(self.features)


@dataclass(frozen=True, eq=False)
class FeatureExtractor:
    """A trained classifier together with the digest of its weights.

    Attributes:
        net: The classifier, in ``eval`` mode.
        image_shape: (C, H, W) of the images it takes.
        num_classes: Y.
        digest: SHA-256 over its weights, hexadecimal.
        device: Where it runs.
    """

    net: Classifier
    image_shape: tuple[int, int, int]
    num_classes: int
    digest: str
    device: torch.device

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return f"{self.net.kind} ({self.net.num_features} features)"

    def extract(self, images: ImageArray, value_range: ValueRange | str | None = None) -> Features:
        """Features and class probabilities of images, in their order.

        Grey images are repeated over the channels where the extractor takes more than one. Images are never
        resized.

        Args:
            images: ``[N, H, W]``, ``[N, C, H, W]`` or ``[N, H, W, C]``.
            value_range: What the numbers mean, where they are not uint8.

        Raises:
            DataError: no images, an undeclared range, or another shape than ``image_shape``.
        """
        prepared = byte_images(images, value_range)
        repeat = self.image_shape[0] if prepared.shape[1] == 1 else 1
        if repeat > 1:
            prepared = np.repeat(prepared, repeat, axis=1)
        if prepared.shape[1:] != self.image_shape:
            raise DataError(
                f"images are {prepared.shape[1:]} (C, H, W), the feature network takes {self.image_shape}; "
                "give images of that shape"
            )
        features: list[torch.Tensor] = []
        logs: list[torch.Tensor] = []
        for batch in batches_of(self.net.features, prepared, self.device):
            features.append(batch)
            with torch.inference_mode():
                logits = self.net.head(batch.to(self.device)).double()
                logs.append(torch.log_softmax(logits, dim=1).cpu())
        return Features(torch.cat(features).numpy(), torch.cat(logs).numpy(), self.digest, repeat)

    def accuracy(
        self, images: ImageArray, labels: ImageArray, value_range: ValueRange | str | None = None
    ) -> float:
        """The classifier's own accuracy, 0 to 1, on labelled images: what its features are worth."""
        prepared = byte_images(images, value_range)
        targets = check_labels(labels, len(prepared), self.num_classes, name="labels")
        return accuracy_of(self.net, prepared, targets, self.device)


def feature_extractor(
    images: ImageArray,
    labels: ImageArray,
    *,
    num_classes: int,
    cache: str | os.PathLike[str] | None,
    recipe: FeatureRecipe | None = None,
    value_range: ValueRange | str | None = None,
    device: str | torch.device = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> FeatureExtractor:
    """The feature classifier of one real training set: from the cache, or trained and put there.

    The cache file is named after a digest of the images, the labels and the recipe, and holds the digest of
    its weights; a file that does not match is trained anew and replaced. It saw people's images: the cache
    belongs under ``private/`` unless the images are public.

    Args:
        images: Real training images.
        labels: Their labels, 0..Y-1.
        num_classes: Y.
        cache: Folder of cached classifiers, made if absent; ``None`` trains without keeping.
        recipe: How to train; :class:`FeatureRecipe` by default.
        value_range: What the numbers mean, where images are not uint8.
        device: Where to train and run.
        progress: Called after each epoch of training with the epoch (from 1) and the number of epochs.

    Raises:
        DataError: no images, an undeclared range, or wrong labels.
    """
    recipe = recipe or FeatureRecipe()
    prepared = byte_images(images, value_range)
    targets = check_labels(labels, len(prepared), num_classes, name="labels")
    image_shape = (prepared.shape[1], prepared.shape[2], prepared.shape[3])
    place = torch.device(device)
    key = _key(prepared, targets, num_classes, recipe)
    epochs = recipe.epochs_for(len(prepared))
    path = None if cache is None else Path(cache) / f"features-{key}.safetensors"
    net = None if path is None else _read(path, recipe.kind, image_shape, num_classes)
    if net is None:

        def after_epoch(epoch: int, _: Classifier) -> None:
            if progress is not None:
                progress(epoch, epochs)

        net = fit_classifier(
            prepared,
            targets,
            kind=recipe.kind,
            num_classes=num_classes,
            epochs=epochs,
            batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate,
            streams=Streams.from_insecure_seed(recipe.seed, "features"),
            device=place,
            after_epoch=after_epoch,
        )
        if path is not None:
            _write(path, net)
    net = net.to(place).eval()
    return FeatureExtractor(net, image_shape, num_classes, weights_digest(net), place)


def weights_digest(net: torch.nn.Module) -> str:
    """SHA-256 over names, shapes and values of all weights, hexadecimal."""
    digest = hashlib.sha256()
    for name, tensor in sorted(net.state_dict().items()):
        array = tensor.detach().cpu().contiguous().numpy()
        digest.update(f"{name}|{array.dtype}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _key(
    images: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64], num_classes: int, recipe: FeatureRecipe
) -> str:
    fixed = {"version": FEATURE_CACHE_VERSION, "shape": images.shape, "num_classes": num_classes}
    settings = {**asdict(recipe), **fixed}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    digest.update(images.tobytes())
    digest.update(labels.tobytes())
    return digest.hexdigest()[:32]


def _write(path: Path, net: Classifier) -> None:
    """Put it in the cache whole or not at all, for the owner alone: it saw people's images."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in net.state_dict().items()}
    content = save(tensors, metadata={"digest": weights_digest(net)})
    partial = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _read(
    path: Path, kind: ClassifierKind, image_shape: tuple[int, int, int], num_classes: int
) -> Classifier | None:
    try:
        content = path.read_bytes()
        header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
        net = build_classifier(kind, image_shape, num_classes, torch.Generator().manual_seed(0))
        net.load_state_dict(load(content))
    except (OSError, SafetensorError, RuntimeError, ValueError, struct.error):
        return None
    return net if header.get("__metadata__", {}).get("digest") == weights_digest(net) else None
