"""What the owner of a run of moments is told: whether its noise leaves anything to see."""

from __future__ import annotations

import math

from datalens.methods.method import PublicSize


def note_of_noise(size: PublicSize, epsilon: float, noise_to_mean: float) -> str | None:
    """One line where noise is larger than a class's mean can be; of public numbers alone, or None.

    Args:
        size: what may be known of the data.
        epsilon: what was asked for.
        noise_to_mean: standard deviation of the noise on a class's sum, over the longest mean of one record.
    """
    needed = math.ceil(size.num_classes * noise_to_mean)
    if size.num_records >= needed:
        return None
    return (
        f"moments: with {size.num_records} records in {size.num_classes} classes at epsilon {epsilon:g} noise is "
        f"larger than the mean of a class, so images show noise; use {needed} records or more, fewer classes, or a "
        "larger epsilon"
    )
