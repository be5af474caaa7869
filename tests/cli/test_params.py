"""Values that take no liberties."""

from __future__ import annotations

import click
import pytest

from datalens.cli.params import Classes, ImageSize, Kind, Number, Range, Text, Whole
from datalens.privacy.events import NoiseKind


def convert(kind: click.ParamType, text: str) -> object:
    return kind.convert(text, None, None)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Whole(), "1", 1),
        (Whole(0), "0", 0),
        (Whole(), "0012", 12),
        (Number(0, above=True), "1e-5", 1e-5),
        (Number(0, 1), "1", 1.0),
        (Number(), ".5", 0.5),
        (Number(), "5.", 5.0),
        (Number(anything=True), "-3", -3.0),
        (Number(anything=True), "inf", float("inf")),
        (Kind(NoiseKind), "discrete", NoiseKind.DISCRETE),
        (Kind(NoiseKind), "none", NoiseKind.NONE),
        (Kind(NoiseKind), "continuous-gaussian", NoiseKind.CONTINUOUS),
        (Classes(), "10", 10),
        (Classes(), "cat, dog", ("cat", "dog")),
        (ImageSize(), "28", 28),
        (ImageSize(), "28x32", (28, 32)),
        (Range(), "-1..1", (-1.0, 1.0)),
        (Range(), "0,255", (0.0, 255.0)),
        (Text(), "a b", "a b"),
    ],
)
def test_what_is_meant_is_taken(kind, text, value) -> None:
    assert convert(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (
            Whole(),
            ["", " ", "0", "-1", "1.0", "1e3", "1_000", "1,000", " 1", "0x10", "ten", "١", "nan", "9" * 19],
        ),
        (Whole(2), ["1"]),
        (
            Number(0, above=True),
            ["", "0", "-1", "nan", "inf", "-inf", "1e999", "1_0", " 1", "1,5", "one", "1e"],
        ),
        (Number(0, 1, above=True, below=True), ["0", "1", "1.5", "nan"]),
        (Number(anything=True), ["", "one", "0x1"]),
        (Kind(NoiseKind), ["", "laplace", "gaussian", "NONE", "round"]),
        (Classes(), ["", "0", "a,,b", "a,a", ","]),
        (ImageSize(), ["", "0", "28x", "x28", "-1", "28X28", "28x28x1", "1.5"]),
        (Range(), ["", "1", "1..0", "0..0", "0..inf", "nan..1", "a..b", "0..1..2"]),
        (Text(), ["", "  ", "a\0b"]),
    ],
)
def test_what_is_odd_is_refused(kind, texts) -> None:
    for text in texts:
        with pytest.raises(click.BadParameter):
            convert(kind, text)


def test_a_number_that_is_too_long_is_not_called_no_number() -> None:
    with pytest.raises(click.BadParameter, match="is too large"):
        convert(Whole(), "1" + "0" * 30)
