"""Which training it is: the cells of Table 10, what coordinates are kept by, and in what form noise comes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from torch import Tensor

from datalens.compression.norm_topk import Kept, by_dimension, by_norm, check_keep, within_parts
from datalens.errors import ConfigError
from datalens.methods.sgd_kinds import Method, SelectBy

_LEAST_NORM, _MOST_NORM = 1e-12, 1e12
_Name = TypeVar("_Name", bound=StrEnum)


class NoiseForm(StrEnum):
    """Opacus's own noise in floating point, rounding not covered; or whole numbers, which can be published."""

    FLOAT = "float"
    INTEGER = "integer"


@dataclass(frozen=True)
class Rule:
    """What happens to one record's gradient before the sum.

    Attributes:
        method: which training.
        keep: share that is kept, in (0, 1]; of no consequence where nothing is dropped.
        select_by: what it is a share of.

    Guarantee:
        What one record adds to the sum is at most ``share_of_norm * max_grad_norm`` long. NormTopK keeps at most
        ``keep`` of a squared norm that is at most C^2, so it is sqrt(keep) * C; applied to each parameter's part it
        keeps at most ``keep`` of each, so of their sum. A share of the coordinates may hold the whole norm, so there,
        and without compression, it is C. TopK-GM-DP drops coordinates by norm but adds the
        noise of C: more than its bound needs, as Table 10 has it.

    Raises:
        ConfigError: an unknown name, or ``keep`` outside (0, 1].
    """

    method: Method = Method.TOPAGG
    keep: float = 1.0
    select_by: SelectBy = SelectBy.NORM

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", chosen(Method, self.method, "method"))
        object.__setattr__(self, "select_by", chosen(SelectBy, self.select_by, "select_by"))
        object.__setattr__(self, "keep", check_keep(self.keep))

    @property
    def drops(self) -> bool:
        """Whether any coordinate is dropped; if not, this is plain Opacus."""
        return self.method.compresses and self.keep < 1

    def select(self, square_RD: Tensor, sizes: Sequence[int]) -> Kept:
        """What stays of each row, from its squares, which may be written over; a parameter has that many of them."""
        keep = self.keep if self.drops else 1.0
        if self.select_by is SelectBy.TENSOR_NORM:
            return within_parts(square_RD, keep, sizes, by_norm)
        return (by_norm if self.select_by is SelectBy.NORM else by_dimension)(square_RD, keep)

    @property
    def share_of_norm(self) -> float:
        """The longest that one record's part may be, and what noise is measured by, over the clipping norm."""
        by_a_norm = self.select_by is not SelectBy.DIMENSION
        if self.drops and by_a_norm and self.method is not Method.TOPK_GM_DP:
            return math.sqrt(self.keep)
        return 1.0


def chosen(kind: type[_Name], value: str, name: str) -> _Name:
    """The member of that name, or a refusal that lists those there are."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise ConfigError(f"{name} is {value!r}, but must be one of {known}; choose one of these") from None


def check_max_grad_norm(value: object) -> float:
    """The clipping norm as a float.

    Raises:
        ConfigError: none that clips and that float32 can hold; one a layer.
    """
    if isinstance(value, list | tuple):
        raise ConfigError(
            "max_grad_norm is a list, but TopAgg measures the whole gradient; give one number (clipping='flat')"
        )
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not _LEAST_NORM <= value <= _MOST_NORM
    ):
        raise ConfigError(
            f"max_grad_norm is {value}, but must be a number from {_LEAST_NORM:g} to {_MOST_NORM:g}; 1.0 is usual"
        )
    return float(value)


def check_noise_multiplier(value: object, method: Method) -> float:
    """The noise multiplier as a float.

    Raises:
        ConfigError: noise where the method has none, no noise where it is private, or no number.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (math.isfinite(value) and value >= 0)
    ):
        raise ConfigError(f"noise_multiplier is {value}, but must be finite and 0 or more; 1.0 is usual")
    if method.is_private and value == 0:
        raise ConfigError(
            f"noise_multiplier is 0, but {method} is private only with noise; give one above 0, or choose method "
            f"{Method.TOPK_SGD} or {Method.CLIPPED_SGD}, which protect nobody"
        )
    if not method.is_private and value > 0:
        raise ConfigError(
            f"noise_multiplier is {value:g}, but {method} adds no noise; give 0, or choose {Method.TOPAGG}"
        )
    return float(value)
