"""Every mode of Pillow's becomes eight bits by a rule that is written down, each image by itself."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from datalens.data.pixels import Form, Pixels, decoded, from_array, in_form
from datalens.errors import ConfigError

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (8, 9), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (8, 9, 3), dtype=np.uint8)
ALPHA = RNG.integers(0, 256, (8, 9), dtype=np.uint8)


def file_of(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def read(content: bytes, form: Form | None = None) -> np.ndarray:
    pixels = decoded(content, form or Form())
    assert isinstance(pixels, Pixels), pixels
    return pixels.array


def over(values: np.ndarray, alpha: np.ndarray, ground: float) -> np.ndarray:
    """Closed form: alpha of the image, the rest of the ground."""
    share = alpha.astype(float) / 255
    return values * share + ground * (1 - share)


def test_grey_of_one_and_eight_bits() -> None:
    np.testing.assert_array_equal(read(file_of(Image.fromarray(GREY))), GREY[np.newaxis])
    black_white = Image.fromarray(GREY > 100)
    assert black_white.mode == "1"
    np.testing.assert_array_equal(read(file_of(black_white))[0], np.where(GREY > 100, 255, 0))


def test_colour_and_palette() -> None:
    np.testing.assert_array_equal(read(file_of(Image.fromarray(COLOUR))), COLOUR.transpose(2, 0, 1))
    palette = Image.fromarray(COLOUR).quantize(16)
    assert palette.mode == "P"
    np.testing.assert_array_equal(
        read(file_of(palette)), np.asarray(palette.convert("RGB")).transpose(2, 0, 1)
    )


@pytest.mark.parametrize(("background", "ground"), [(None, 255), ("black", 0), ("#808080", 128)])
def test_what_is_see_through_is_laid_over_the_background(background: str | None, ground: int) -> None:
    form = Form.of(None, None, background)
    two = Image.merge("LA", (Image.fromarray(GREY), Image.fromarray(ALPHA)))
    four = Image.fromarray(np.dstack([COLOUR, ALPHA]))
    found = decoded(file_of(two), form)
    assert isinstance(found, Pixels)
    assert found.showed_through
    assert found.array.shape == (1, 8, 9)
    assert np.abs(found.array[0] - over(GREY, ALPHA, ground)).max() <= 1
    np.testing.assert_allclose(
        read(file_of(four), form), over(COLOUR.transpose(2, 0, 1), ALPHA, ground), atol=1.0
    )


def test_a_palette_with_a_clear_colour_and_one_with_alpha() -> None:
    palette = Image.new("P", (8, 8), 1)
    palette.putpalette([0, 0, 0, 10, 20, 30])
    clear = decoded(file_of(palette, transparency=1), Form())
    assert isinstance(clear, Pixels)
    assert clear.showed_through
    assert clear.array.min() == 255
    both = Image.new("RGBA", (8, 8), (1, 2, 3, 0)).convert("PA")
    found = in_form(both, Form.of(None, None, "red"))
    assert isinstance(found, Pixels)
    assert found.array[:, 0, 0].tolist() == [255, 0, 0]


def test_alpha_that_lets_nothing_through_changes_nothing() -> None:
    whole = Image.fromarray(np.dstack([COLOUR, np.full_like(ALPHA, 255)]))
    found = in_form(whole, Form.of(None, None, "red"))
    assert isinstance(found, Pixels)
    assert not found.showed_through
    np.testing.assert_array_equal(found.array, COLOUR.transpose(2, 0, 1))


def test_cmyk_is_colour() -> None:
    content = file_of(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG")
    red, green, blue = read(content).mean(axis=(1, 2))
    assert red > 240 > 15 > max(green, blue)


def test_sixteen_bit_grey_is_divided_by_257_and_never_clipped() -> None:
    deep = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    found = read(file_of(Image.fromarray(deep)))[0]
    exact = np.array([round(value / 257) for value in range(65536)]).reshape(256, 256)
    np.testing.assert_array_equal(found, exact)
    assert (found[0, 0], found[-1, -1], len(np.unique(found))) == (0, 255, 256)
    big_endian = Image.frombytes("I;16B", (256, 256), deep.astype(">u2").tobytes())
    other = in_form(big_endian, Form())
    assert isinstance(other, Pixels)
    np.testing.assert_array_equal(other.array[0], exact)


def test_sixteen_bit_grey_with_a_clear_value() -> None:
    deep = Image.fromarray(np.full((8, 8), 1000, np.uint16))
    deep.info["transparency"] = 1000
    found = in_form(deep, Form())
    assert isinstance(found, Pixels)
    assert (found.array.min(), found.showed_through) == (255, True)


@pytest.mark.parametrize("mode", ["I", "F", "HSV", "LAB"])
def test_other_kinds_of_pixels_are_named(mode: str) -> None:
    assert in_form(Image.new(mode, (8, 8)), Form()) == (
        f"pixel kind {mode} is neither grey of 8 or 16 bits nor colour"
    )


def test_an_image_that_lies_on_its_side_is_turned() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    found = read(file_of(Image.fromarray(GREY), "PNG", exif=exif))
    np.testing.assert_array_equal(found[0], np.rot90(GREY, -1))


@pytest.mark.parametrize("background", ["", "no colour", "#12345678", "rgba(1,2,3,4)"])
def test_a_background_that_is_none_is_refused(background: str) -> None:
    with pytest.raises(ConfigError, match=r"--background .* is no colour"):
        Form.of(None, None, background)


MODES = st.sampled_from(["1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "I;16"])


@given(
    MODES,
    st.integers(8, 40),
    st.integers(8, 40),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([None, (9, 12)]),
)
def test_every_mode_gives_its_form_the_same_every_time(
    mode: str, width: int, height: int, channels: int | None, size: tuple[int, int] | None
) -> None:
    image = Image.new(mode, (width, height))
    one, two = (in_form(image.copy(), Form(size, channels)) for _ in range(2))
    assert isinstance(one, Pixels)
    assert isinstance(two, Pixels)
    np.testing.assert_array_equal(one.array, two.array)
    usual = 1 if mode in ("1", "L", "LA", "I;16") else 3
    assert one.array.shape == (channels or usual, *(size or (height, width)))
    assert one.array.dtype == np.uint8


@given(arrays.arrays(np.uint8, st.sampled_from([(1, 8, 8), (3, 8, 9)])), st.sampled_from([None, 1, 3]))
def test_arrays_take_the_same_way(array: np.ndarray, channels: int | None) -> None:
    found = from_array(array, Form(None, channels))
    assert isinstance(found, Pixels)
    assert found.array.shape == (channels or array.shape[0], *array.shape[1:])
    if channels in (None, array.shape[0]):
        np.testing.assert_array_equal(found.array, array)
