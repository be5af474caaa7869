"""The kinds of training by DP-SGD, by the names that settings and options use; no PyTorch here."""

from __future__ import annotations

from enum import StrEnum


class Method(StrEnum):
    """The trainings of Table 10. The two without noise protect nobody and are there to compare with."""

    TOPAGG = "topagg"
    TOPK_GM_DP = "topk-gm-dp"
    GM_DP = "gm-dp"
    TOPK_SGD = "topk-sgd"
    CLIPPED_SGD = "clipped-sgd"

    @property
    def is_private(self) -> bool:
        """Whether noise is added at all."""
        return self not in (Method.TOPK_SGD, Method.CLIPPED_SGD)

    @property
    def compresses(self) -> bool:
        """Whether coordinates are dropped."""
        return self not in (Method.GM_DP, Method.CLIPPED_SGD)


class SelectBy(StrEnum):
    """What ``keep`` is a share of.

    Of the squared norm (Algorithm 4), of that of each parameter tensor by itself, or of the coordinates (Table 9).
    """

    NORM = "norm"
    TENSOR_NORM = "tensor-norm"
    DIMENSION = "dimension"
