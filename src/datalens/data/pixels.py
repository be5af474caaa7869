"""One image, from a file's bytes or from Pillow, to uint8 [C, H, W]: each by itself, and the same every time.

Grey is what Pillow calls 1, L, LA and I;16; colour is P, PA, RGB, RGBA, RGBX, CMYK and YCbCr. Sixteen bits become
eight as round(value / 257), which sends 0 to 0 and 65535 to 255 and clips nothing (of sixteen-bit colour Pillow reads
the high byte). What is see-through is laid over a background.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageColor, ImageOps, UnidentifiedImageError

from datalens.errors import ConfigError, DataError

LEAST_SIDE, MOST_SIDE = 8, 256
"""Sides of images in pixels that people's own sources may have."""
DEFAULT_BACKGROUND = "white"
_PNG_START = b"\x89PNG\r\n\x1a\n"
_GREY_MODES = ("1", "L", "LA")
_COLOUR_MODES = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
_DEEP_MODES = ("I;16", "I;16B", "I;16L", "I;16N")


@dataclass(frozen=True)
class Form:
    """What every image of a source is brought to.

    Attributes:
        size: (height, width) to scale to; None leaves images as they are.
        channels: 1 for grey, 3 for colour; None leaves each as it is.
        background: what shows through, as (red, green, blue).
        any_size: sides need not be 8 to 256 pixels.
    """

    size: tuple[int, int] | None = None
    channels: int | None = None
    background: tuple[int, int, int] = (255, 255, 255)
    any_size: bool = False

    @classmethod
    def of(
        cls, image_size: int | tuple[int, int] | None, channels: int | None, background: str | None
    ) -> Form:
        """The settings of a source, checked.

        Args:
            image_size: one side or (height, width), 8 to 256 pixels each.
            channels: 1 or 3.
            background: a colour as CSS names it, such as "black" or "#102030"; white where it is left out.

        Raises:
            ConfigError: a value that breaks its rule.

        >>> Form.of(28, None, "black")
        Form(size=(28, 28), channels=None, background=(0, 0, 0), any_size=False)
        """
        if channels not in (None, 1, 3):
            raise ConfigError(f"--channels {channels} (in Python channels): must be 1 (grey) or 3 (colour)")
        try:
            colour = ImageColor.getrgb(DEFAULT_BACKGROUND if background is None else background)
        except ValueError:
            colour = ()
        if len(colour) != 3:
            raise ConfigError(
                f"--background {background!a:.40} (in Python background): is no colour; give such as white, black or "
                "'#808080'"
            )
        return cls(None if image_size is None else check_image_size(image_size), channels, colour)


class Pixels(NamedTuple):
    """An image in its form: uint8 [C, H, W], and whether anything had shown through it."""

    array: np.ndarray
    showed_through: bool


def decoded(content: bytes, form: Form) -> Pixels | str:
    """A whole PNG or JPEG in its form, or what is wrong with it.

    >>> decoded(b"not a picture", Form())
    'not an image, whatever its name says'
    """
    if not content:
        return "empty"
    problem = _png_problem(content) if content.startswith(_PNG_START) else _jpeg_problem(content)
    if problem is not None:
        return problem
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
            warnings.simplefilter("ignore")
            image.load()
            return in_form(image, form)
    except UnidentifiedImageError:
        return "damaged"
    except Image.DecompressionBombError:
        return "too many pixels"
    except (OSError, ValueError, SyntaxError, struct.error, zlib.error) as error:
        return f"damaged ({_printable(error)})"


def in_form(image: Image.Image, form: Form) -> Pixels | str:
    """An image of Pillow's in its form, or why its kind of pixels can't be used.

    >>> in_form(Image.new("RGBA", (8, 8), (0, 0, 0, 0)), Form(channels=1)).array.max()
    np.uint8(255)
    """
    is_deep = image.mode in _DEEP_MODES or (image.mode == "I" and image.format == "PNG")
    if not is_deep and image.mode not in _GREY_MODES + _COLOUR_MODES:
        return f"pixel kind {image.mode} is neither grey of 8 or 16 bits nor colour"
    image = ImageOps.exif_transpose(image)
    if is_deep:
        image = _of_eight_bits(image)
    is_grey = form.channels == 1 or (form.channels is None and image.mode in _GREY_MODES)
    showed_through = False
    if image.has_transparency_data:
        image, showed_through = _laid_over(image, form.background)
    image = image.convert("L" if is_grey else "RGB")
    if form.size is not None:
        image = image.resize((form.size[1], form.size[0]), Image.Resampling.LANCZOS)
    array = np.asarray(image)
    return Pixels(array[np.newaxis] if array.ndim == 2 else np.moveaxis(array, 2, 0), showed_through)


def from_array(array_CHW: np.ndarray, form: Form) -> Pixels | str:
    """uint8 [C, H, W], grey or colour, in its form."""
    if form.channels in (None, array_CHW.shape[0]) and form.size in (None, array_CHW.shape[1:]):
        return Pixels(array_CHW, False)
    plain = array_CHW[0] if array_CHW.shape[0] == 1 else np.moveaxis(array_CHW, 0, 2)
    return in_form(Image.fromarray(np.ascontiguousarray(plain)), form)


def resize_images(images: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """uint8 [R, C, H, W] scaled to another (height, width) (Lanczos, each channel of each image by itself)."""
    height, width = size
    if images.shape[2:] == (height, width):
        return images
    scaled = np.empty((*images.shape[:2], height, width), np.uint8)
    for record, image in enumerate(images):
        for channel, plane in enumerate(image):
            picture = Image.fromarray(plane).resize((width, height), Image.Resampling.LANCZOS)
            scaled[record, channel] = np.asarray(picture)
    return scaled


def check_image_size(image_size: int | tuple[int, int]) -> tuple[int, int]:
    """(height, width) of a setting that is one number or two.

    Raises:
        ConfigError: not that, or a side that is not 8 to 256 pixels.
    """
    sides = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
    if len(sides) != 2 or not all(
        isinstance(side, int) and LEAST_SIDE <= side <= MOST_SIDE for side in sides
    ):
        raise ConfigError(
            f"--image-size (image_size) is {image_size!r:.40}, but must be one or two whole numbers from "
            f"{LEAST_SIDE} to {MOST_SIDE}"
        )
    return sides[0], sides[1]


def check_sides(image_shape: tuple[int, ...], name: str) -> None:
    """Refuse images of a size that nobody asked for and no training was tried on.

    Raises:
        DataError: a side that is not 8 to 256 pixels; names the option that scales.
    """
    height, width = image_shape[-2:]
    if not all(LEAST_SIDE <= side <= MOST_SIDE for side in (height, width)):
        raise DataError(
            f"{name}: is {width}x{height}, but sides must be {LEAST_SIDE} to {MOST_SIDE} pixels; scale all images, "
            "such as by --image-size 64 (in Python image_size=64)"
        )


def _of_eight_bits(image: Image.Image) -> Image.Image:
    """Sixteen-bit grey as round(value / 257); the one value that a PNG may call transparent stays so."""
    deep = np.asarray(image).astype(np.int64)
    grey = Image.fromarray(((deep + 128) // 257).astype(np.uint8))
    clear = image.info.get("transparency")
    if not isinstance(clear, int):
        return grey
    return Image.merge("LA", (grey, Image.fromarray(np.where(deep == clear, 0, 255).astype(np.uint8))))


def _laid_over(image: Image.Image, background: tuple[int, int, int]) -> tuple[Image.Image, bool]:
    """The image over a background, and whether that shows anywhere."""
    clear = image.convert("RGBA")
    if clear.getchannel("A").getextrema() == (255, 255):
        return clear.convert("RGB"), False
    ground = Image.new("RGBA", image.size, (*background, 255))
    ground.alpha_composite(clear)
    return ground.convert("RGB"), True


def _png_problem(data: bytes) -> str | None:
    """Walk a PNG's chunks: each must be whole, with the right check sum, up to the closing one."""
    position = len(_PNG_START)
    while position + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, position)
        end = position + 12 + length
        if end > len(data):
            break
        kind = data[position + 4 : position + 8]
        (promised,) = struct.unpack_from(">I", data, end - 4)
        if zlib.crc32(data[position + 4 : end - 4]) != promised:
            return f"damaged at byte {position}"
        if kind == b"IEND":
            return None
        position = end
    return f"cut off at byte {len(data)}"


def _jpeg_problem(data: bytes) -> str | None:
    """A JPEG begins with its start mark and has an end mark after its last scan."""
    if not data.startswith(b"\xff\xd8"):
        return "not an image, whatever its name says"
    if data.rfind(b"\xff\xd9") < data.rfind(b"\xff\xda"):
        return f"cut off at byte {len(data)}"
    return None


def _printable(error: Exception) -> str:
    return ascii(" ".join(str(error).split()) or type(error).__name__)[1:-1][:100]
