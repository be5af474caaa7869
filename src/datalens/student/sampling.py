"""Draw images from a finished generator: any number, chosen or uniform labels, the same bytes for a seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count as count_from

import numpy as np
import torch

from datalens.errors import ConfigError
from datalens.models.finish import AnyGenerator
from datalens.models.judge import JudgedGenerator
from datalens.randomness import Streams
from datalens.student.latent import LatentSpace

BATCH = 500
"""Images whose latents and labels come from one random stream."""
PIECE = 100
"""Images that go through the generator at once: the maps of more leave the processor's cache."""
TRIES = 16
"""Images drawn for one of a class that was asked for, where a judge names them."""


def sample_images(
    generator: AnyGenerator,
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
        ``images`` uint8 [count, C, H, W] and ``labels`` int64 [count]. Where the generator has a judge, labels are
        its names for the images; if none were asked for, classes come as often as it names them.

    Raises:
        ConfigError: a count below 1, or labels that are not class numbers.
    """
    [whole] = iter_images(generator, latent, count, labels=labels, seed=seed, chunk=count)
    return whole


def iter_images(
    generator: AnyGenerator,
    latent: LatentSpace,
    count: int,
    *,
    labels: Sequence[int] | np.ndarray | None = None,
    seed: int | None = None,
    chunk: int = BATCH,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The same images as :func:`sample_images`, ``chunk`` at a time (the last time the rest).

    Guarantee:
        What goes through the generator at once does not depend on ``chunk``, so neither does any byte. No more
        than one chunk and one piece of it are held.

    Raises:
        ConfigError: at the call and not later: a count or chunk below 1, or labels that are not class numbers.
    """
    _check_whole("num_samples", count, "ask for at least one image")
    _check_whole("chunk", chunk, "take at least one image at a time")
    asked = None if labels is None else _checked(labels, count, latent.num_classes)
    streams = Streams.from_entropy() if seed is None else Streams.from_insecure_seed(seed, "samples")
    return _regrouped(_pieces(generator, latent, count, asked, streams), count, chunk)


def rows_of_classes(generator: AnyGenerator, latent: LatentSpace, per_class: int) -> np.ndarray:
    """As many images of each class, uint8 [Y, per_class, C, H, W], from the same latents at every call. Public."""
    labels = np.repeat(np.arange(latent.num_classes), per_class)
    images, _ = sample_images(generator, latent, len(labels), labels=labels, seed=0)
    return images.reshape(latent.num_classes, per_class, *images.shape[1:])


def _pieces(
    generator: AnyGenerator, latent: LatentSpace, count: int, asked: np.ndarray | None, streams: Streams
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Images and labels as they leave the generator, ``PIECE`` at most at once."""
    device = next(generator.parameters()).device
    for batch, start in enumerate(range(0, count, BATCH)):
        size = min(BATCH, count - start)  # whole batches are drawn, so a longer sample begins alike
        latents_BZ = latent.latents(BATCH, streams.torch("latents", batch))[:size]
        labels_B = latent.labels(BATCH, streams.torch("labels", batch))[:size]
        if asked is not None:
            labels_B = torch.from_numpy(asked[start : start + size])
        for piece, (z, y) in enumerate(zip(latents_BZ.split(PIECE), labels_B.split(PIECE), strict=True)):
            with torch.no_grad():
                image_BCHW = _bytes(generator(z.to(device), y.to(device)))
            if isinstance(generator, JudgedGenerator):
                again = _again(latent, streams, batch * (BATCH // PIECE) + piece)
                image_BCHW, y = _named(generator, image_BCHW, y, again if asked is not None else None)
            yield image_BCHW.cpu().numpy(), y.numpy()


def _named(
    generator: JudgedGenerator,
    image_BCHW: torch.Tensor,
    label_B: torch.Tensor,
    again: Iterator[torch.Tensor] | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Images with the names that the judge has for them.

    Where classes were asked for (``again`` has more latents), an image that the judge calls something else is drawn
    again, up to ``TRIES`` times in all; the last one stays as it is, under the name that was asked for.
    """
    device = image_BCHW.device

    def judged(bytes_BCHW: torch.Tensor, asked_B: torch.Tensor) -> torch.Tensor:
        return generator.named(bytes_BCHW.float() / 255, asked_B.to(device)).cpu()

    name_B = judged(image_BCHW, label_B)
    if again is None:
        return image_BCHW, name_B
    for _ in range(TRIES - 1):
        wrong_B = name_B != label_B
        if not bool(wrong_B.any()):
            break
        latents_BZ = next(again)
        with torch.no_grad():
            other = _bytes(
                generator(latents_BZ[: len(label_B)][wrong_B].to(device), label_B[wrong_B].to(device))
            )
        image_BCHW[wrong_B] = other
        name_B[wrong_B] = judged(other, label_B[wrong_B])
    return image_BCHW, label_B


def _again(latent: LatentSpace, streams: Streams, piece: int) -> Iterator[torch.Tensor]:
    """More latents for the images of a piece."""
    for attempt in count_from(piece * TRIES):
        yield latent.latents(PIECE, streams.torch("latents again", attempt))


def _regrouped(
    pieces: Iterator[tuple[np.ndarray, np.ndarray]], count: int, chunk: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The pieces in chunks of another size; every chunk is an array of its own."""
    images, labels = next(pieces)
    left = count
    while left:
        size = min(chunk, left)
        chunk_images, chunk_labels = np.empty((size, *images.shape[1:]), np.uint8), np.empty(size, np.int64)
        filled = 0
        while filled < size:
            if not len(labels):
                images, labels = next(pieces)
            taken = min(size - filled, len(labels))
            chunk_images[filled : filled + taken] = images[:taken]
            chunk_labels[filled : filled + taken] = labels[:taken]
            images, labels = images[taken:], labels[taken:]
            filled += taken
        left -= size
        yield chunk_images, chunk_labels


def _check_whole(name: str, value: object, remedy: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ConfigError(f"{name} = {value!r}: must be a whole number from 1; {remedy}")


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
