"""Features of images, computed once and kept: in blocks, so that an interruption costs one block at most."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from datalens.experiments.extractors import INPUT_SIZE, FrozenNet
from datalens.training.files import write_atomically

_VERSION = 1
_BLOCK, _AT_ONCE = 5_000, 50


def cached_features(
    images: np.ndarray, net: FrozenNet, folder: Path, tell: Callable[[str], None] = lambda _: None
) -> torch.Tensor:
    """Features [R, F], float16, of images; what the folder has is not computed again.

    A block's file is named after a digest of its pixels, the extractor's weights and the input size, is written whole
    or not at all, and holds a digest of its own contents: one that is damaged is told of and computed again.

    Args:
        images: uint8 [R, 3, H, W].
        net: the extractor.
        folder: made where it is missing.
        tell: told of each block that is computed.

    Raises:
        RunError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for start in range(0, len(images), _BLOCK):
        block = images[start : start + _BLOCK]
        path = folder / f"{_name(block, net.digest)}.safetensors"
        features = _read(path)
        if features is None or len(features) != len(block):
            reason = " (the file that was kept is damaged)" if path.exists() else ""
            tell(f"features of images {start:,} to {start + len(block):,} of {len(images):,}{reason}")
            features = _compute(block, net)
            _write(path, features)
        found.append(features)
    return torch.cat(found)


def _compute(images: np.ndarray, net: FrozenNet) -> torch.Tensor:
    return torch.cat(
        [
            net.features(torch.from_numpy(images[start : start + _AT_ONCE]).float() / 255)
            for start in range(0, len(images), _AT_ONCE)
        ]
    )


def _name(images: np.ndarray, digest: str) -> str:
    what = hashlib.sha256(f"{_VERSION} {INPUT_SIZE} {digest} {images.shape}".encode())
    what.update(np.ascontiguousarray(images).data)
    return what.hexdigest()[:24]


def _write(path: Path, features: torch.Tensor) -> None:
    content = {"features": features.contiguous()}
    write_atomically(path, safetensors.torch.save(content, {"sha256": _digest(features)}))


def _read(path: Path) -> torch.Tensor | None:
    """What was kept; None where there is nothing, or nothing whole."""
    try:
        with safe_open(path, "pt") as file:
            features = file.get_tensor("features")
            whole = (file.metadata() or {}).get("sha256") == _digest(features)
    except (OSError, SafetensorError):
        return None
    return features if whole else None


def _digest(features: torch.Tensor) -> str:
    return hashlib.sha256(features.contiguous().numpy().data).hexdigest()
