"""What may be measured of classes: numbers that stay finite and in memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from datalens.errors import ConfigError
from datalens.models.frequencies import Frequencies

ROWS = 64
"""Records at once, always: a record's vector must not depend on how many others are put with it."""

Share = Annotated[float, Field(ge=1e-3, le=0.999)]
Length = Annotated[float, Field(ge=1e-3, le=10)]
"""Root mean square of a pixel in [0, 1]: no image is longer than 1, and few residuals are."""
Weight = Annotated[float, Field(ge=1e-3, le=1e3)]

_MOST_NUMBERS = 2**26
"""Of one table, or of the records at once: half a GiB, and 2.3 GiB with all copies."""


def check_memory(basis: Frequencies, num_classes: int, rank: int) -> None:
    """Refuse what takes many GiB.

    Args:
        basis: of the images.
        num_classes: Y.
        rank: directions a class.

    Raises:
        ConfigError: names the setting that asks for the most.
    """
    channels, height, width = basis.image_shape
    low, rows = basis.num_low_coordinates, max(ROWS, num_classes)
    asked = (
        (f"images of {channels}x{height}x{width}", rows * basis.dim, "smaller images or fewer classes"),
        (
            f"low_frequencies = {basis.num_low}",
            rows * low * (low + 1) // 2,
            "fewer low_frequencies or fewer classes",
        ),
        (f"rank = {rank}", num_classes * rank * low, "a lower rank, fewer low_frequencies or fewer classes"),
    )
    for name, numbers, remedy in asked:
        if numbers > _MOST_NUMBERS:
            raise ConfigError(
                f"{name} with {num_classes} classes: takes {numbers / 1e6:.0f} million numbers at once, and "
                f"{_MOST_NUMBERS / 1e6:.0f} is the most; use {remedy}"
            )
