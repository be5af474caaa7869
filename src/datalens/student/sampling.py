"""Draw images from a finished generator: any number, chosen or uniform labels, the same bytes for a seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from datalens.errors import ConfigError
from datalens.models.finish import FinishedGenerator
from datalens.randomness import Streams
from datalens.student.latent import LatentSpace

BATCH = 500
"""Images whose latents and labels come from one random stream."""
PIECE = 100
"""Images that go through the generator at once: the maps of more leave the processor's cache."""


def sample_images(
    generator: FinishedGenerator,
    latent: LatentSpace,
    count: int,
    *,
    labels: Sequence[int] | np.ndarray | None = None,
    seed: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw ``count`` images. Public: the generator is, and nothing else goes in.

    Args:
        generator: finished, in evaluation mode.
        latent: what it is fed.
        count: how many images, 1 or more.
        labels: class numbers, one for each image; None for labels uniform on the classes.
        seed: for the same images again; None for fresh ones.

    Returns:
        ``images`` uint8 [count, C, H, W] and ``labels`` int64 [count].

    Raises:
        ConfigError: a count below 1, or labels that are not class numbers.
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ConfigError(
            f"num_samples = {count!r}: must be a whole number from 1; ask for at least one image"
        )
    streams = Streams.from_entropy() if seed is None else Streams.from_insecure_seed(seed, "samples")
    asked = torch.from_numpy(_checked(labels, count, latent.num_classes)) if labels is not None else None
    device = next(generator.parameters()).device
    images = np.empty((count, *generator.inner.image_shape), np.uint8)
    drawn_labels = np.empty(count, np.int64)
    with torch.no_grad():
        for batch, start in enumerate(range(0, count, BATCH)):
            size = min(BATCH, count - start)  # whole batches are drawn, so a longer sample begins alike
            latents_BZ = latent.latents(BATCH, streams.torch("latents", batch))[:size]
            labels_B = latent.labels(BATCH, streams.torch("labels", batch))[:size]
            if asked is not None:
                labels_B = asked[start : start + size]
            drawn_labels[start : start + size] = labels_B.numpy()
            place = start
            for z, y in zip(latents_BZ.split(PIECE), labels_B.split(PIECE), strict=True):
                unit_BCHW = generator(z.to(device), y.to(device))
                images[place : place + len(y)] = _bytes(unit_BCHW).cpu().numpy()
                place += len(y)
    return images, drawn_labels


def _bytes(unit_BCHW: torch.Tensor) -> torch.Tensor:
    return (unit_BCHW * 255).round().clamp(0, 255).to(torch.uint8)


def _checked(labels: Sequence[int] | np.ndarray, count: int, num_classes: int) -> np.ndarray:
    asked = np.asarray(labels)
    if asked.shape != (count,) or asked.dtype.kind not in "iu":
        raise ConfigError(
            f"labels have shape {asked.shape} and type {asked.dtype}: give {count} whole class numbers"
        )
    outside = asked[(asked < 0) | (asked >= num_classes)]
    if outside.size:
        raise ConfigError(f"label {outside[0]} is not a class: choose from 0 to {num_classes - 1}")
    return asked.astype(np.int64)
