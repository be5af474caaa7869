"""Where teachers' states live between steps, by name."""

from __future__ import annotations

from enum import StrEnum


class StoreKind(StrEnum):
    """``auto`` takes the disk where the states do not fit into memory, and memory elsewhere."""

    AUTO = "auto"
    MEMORY = "memory"
    DISK = "disk"
