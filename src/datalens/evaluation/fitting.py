"""Train a classifier for a fixed number of epochs, and apply one, on uint8 images held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from datalens.models.classifiers import Classifier, ClassifierKind, build_classifier
from datalens.randomness import Streams

WARM_UP = 0.1
EVALUATION_BATCH = 100
"""Images judged at once: the maps of more leave the processor's cache."""


def fit_classifier(
    images: npt.NDArray[np.uint8],
    labels: npt.NDArray[np.int64],
    *,
    kind: ClassifierKind,
    num_classes: int,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    streams: Streams,
    device: torch.device,
    after_epoch: Callable[[int, Classifier], None] | None = None,
) -> Classifier:
    """Train one classifier on exactly the given images, every image once an epoch, and return it.

    Adam on cross-entropy. The learning rate rises linearly over the first tenth of all steps and falls
    linearly to zero over the rest, so the last epoch is the settled one. The last batch of an epoch may be
    smaller; no image is padded, dropped or repeated.

    Args:
        images: uint8 ``[N, C, H, W]``.
        labels: ``[N]`` in 0..Y-1.
        streams: Initial weights, order of images and dropout; the same streams give the same classifier on
            the same machine with the same number of threads.
        after_epoch: Called with the epoch (from 1) and the classifier in ``eval`` mode.
    """
    num_images = len(images)
    image_shape = (images.shape[1], images.shape[2], images.shape[3])
    net = build_classifier(kind, image_shape, num_classes, streams.torch("initial weights"))
    net = net.to(device=device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    net.use_rng(streams.torch("dropout", device=device))
    optimiser = torch.optim.Adam(net.parameters(), lr=learning_rate, fused=True)
    total = epochs * -(-num_images // batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: learning_rate_factor(step, total))
    targets = torch.from_numpy(labels)
    for epoch in range(1, epochs + 1):
        net.train()
        order = torch.randperm(num_images, generator=streams.torch("order", epoch))
        for chosen in order.split(batch_size):
            batch = unit_batch(images[chosen.numpy()], device)
            loss = functional.cross_entropy(net(batch), targets[chosen].to(device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        net.eval()
        if after_epoch is not None:
            after_epoch(epoch, net)
    return net


def learning_rate_factor(step: int, total: int) -> float:
    """The share of the peak learning rate at ``step`` of ``total`` (from 0): up over a tenth, then down to 0.

    >>> [round(learning_rate_factor(step, 20), 2) for step in (0, 1, 2, 11, 19)]
    [0.33, 0.67, 1.0, 0.5, 0.06]
    """
    warm_up = int(WARM_UP * total)
    if step < warm_up:
        return (step + 1) / (warm_up + 1)
    return (total - step) / (total - warm_up)


def unit_batch(images: npt.NDArray[np.uint8], device: torch.device) -> torch.Tensor:
    """float32 ``[B, C, H, W]`` in [0, 1], channels last in memory."""
    batch = torch.from_numpy(images).to(device).to(torch.float32, memory_format=torch.channels_last)
    return batch.div_(255.0)


@torch.inference_mode()
def batches_of(
    apply: Callable[[torch.Tensor], torch.Tensor],
    images: npt.NDArray[np.uint8],
    device: torch.device,
    batch_size: int = EVALUATION_BATCH,
) -> Iterator[torch.Tensor]:
    """What ``apply`` gives for each batch of images, in order, on the CPU.

    The last batch is filled up with black images, whose results are dropped: matrix products round otherwise in
    batches of another size, so that one image more or less would show in the last bits of others.
    """
    for start in range(0, len(images), batch_size):
        batch = images[start : start + batch_size]
        black = np.zeros((batch_size - len(batch), *images.shape[1:]), np.uint8)
        whole = np.concatenate([batch, black]) if len(black) else batch
        yield apply(unit_batch(whole, device)).cpu()[: len(batch)]


def accuracy_of(
    net: Classifier, images: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64], device: torch.device
) -> float:
    """The share of images, 0 to 1, whose largest logit is their label's; the first of equals.

    Whether an image counts depends on that image and the classifier, not on the other images (:func:`batches_of`).
    """
    guesses = torch.cat([logits.argmax(1) for logits in batches_of(net, images, device)])
    return float((guesses == torch.from_numpy(labels)).sum()) / len(labels)
