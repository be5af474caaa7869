"""Numbers in words: never rounded down, and a delta that says too much."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalens.errors import ConfigError
from datalens.privacy.wording import delta_warning, rounded_up


@given(st.floats(1e-12, 1e12), st.integers(1, 9))
def test_never_below_and_never_a_unit_above(epsilon: float, digits: int) -> None:
    said = float(rounded_up(epsilon, digits))
    assert epsilon <= said <= epsilon * (1 + 2 * 10.0 ** (1 - digits))


def test_what_has_no_digits() -> None:
    assert [rounded_up(value) for value in (0.0, math.inf)] == ["0", "inf"]


def test_delta_of_one_record_is_the_first_that_warns() -> None:
    assert delta_warning(0.9 / 64, 64) is None
    warned = delta_warning(1 / 64, 64)
    assert warned is not None and "delta=0.015625 is not below 1/num_records=0.015625" in warned
    assert "use at most 0.002" in warned
    with pytest.raises(ConfigError, match="releasing a whole record"):
        delta_warning(1 / 64, 64, strict=True)
    assert delta_warning(0.5, 1) is None
    with pytest.raises(ConfigError, match="num_records=0 must be 1 or more"):
        delta_warning(1e-5, 0)
