"""A folder with one sub-folder a class: every file is looked at first, and none is skipped unasked."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from datalens.data.class_names import check_class_names, declare_classes
from datalens.data.images import SPLITS, LabelledImages, Split
from datalens.data.near import near_names
from datalens.errors import ConfigError, DataError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")
_PNG_START = b"\x89PNG\r\n\x1a\n"
_GREY_MODES = ("1", "L", "LA")
_COLOUR_MODES = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
_SHOWN_FILES = 5


@dataclass(frozen=True)
class ImageFile:
    """One file of an image folder: where it lies, its class's folder, and what is wrong with it."""

    path: Path
    class_name: str
    problem: str | None = None


def folder_splits(folder: Path) -> tuple[Split, ...]:
    """Which splits a folder holds: its train/ and test/ sub-folders; train alone where it has no train/."""
    if not (folder / "train").is_dir():
        return ("train",)
    return tuple(split for split in SPLITS if (folder / split).is_dir())


def scan_folder(folder: Path, split: str = "train") -> tuple[ImageFile, ...]:
    """Decode every image of a split once and say which are damaged, in order of class and name.

    Names that begin with a dot are the system's and not looked at; any other file that isn't PNG or JPEG is
    reported as a problem.

    Raises:
        DataError: no such folder or split, or no class in it.
    """
    return tuple(
        ImageFile(path, class_folder.name, _problem_of(path))
        for class_folder in _class_folders(_split_folder(folder, split))
        for path in sorted(class_folder.rglob("*"))
        if path.is_file() and not _is_hidden(path, class_folder)
    )


def load_folder(
    folder: Path,
    split: str = "train",
    *,
    image_size: int | tuple[int, int] | None = None,
    channels: int | None = None,
    classes: Sequence[object] | int | None = None,
    skip_damaged: bool = False,
    public: bool = False,
) -> LabelledImages:
    """Read one split of an image folder.

    Args:
        folder: holds a sub-folder a class, or train/ and test/ that do.
        split: "train" or "test".
        image_size: height and width to scale every image to; left out, all must have one size already.
        channels: 1 to make every image grey, 3 colour; left out, all must be of one kind already.
        classes: public class names; a sub-folder that isn't named is refused, a class without one is allowed.
            Left out, the sub-folders of the training split name the classes.
        skip_damaged: leave damaged files out, named in the result's ``notes``, instead of refusing.
        public: whether the images are published research data.

    Raises:
        DataError: naming the files that are damaged, or of another size or kind, and what to do.
    """
    if channels not in (None, 1, 3):
        raise ConfigError(f"--channels {channels} (in Python channels): must be 1 (grey) or 3 (colour)")
    names = declare_classes(classes) if classes is not None else _names_of(folder)
    check_class_names(names, str(folder))
    files = scan_folder(folder, split)
    strange = sorted({file.class_name for file in files} - set(names))
    if strange:
        raise DataError(
            f"{folder}: sub-folder {strange[0]!r} is not a declared class; add it to --classes "
            "(in Python classes=[...]), or move it away"
        )
    damaged = [file for file in files if file.problem is not None]
    if damaged and not skip_damaged:
        raise DataError(
            f"{folder}: {len(damaged)} of {len(files)} files can't be used: {_list(damaged)}; "
            "mend or remove them, or leave them out with --skip-damaged (in Python skip_damaged=True)"
        )
    whole = [file for file in files if file.problem is None]
    if not whole:
        raise DataError(
            f"{folder}: the {split} split holds no image; put PNG or JPEG files into its class folders"
        )
    place = {name: position for position, name in enumerate(names)}
    return LabelledImages(
        images=_read_all([file.path for file in whole], image_size, channels),
        labels=np.array([place[file.class_name] for file in whole], np.int64),
        classes=names,
        name=str(folder),
        public=public,
        classes_from_data=classes is None,
        notes=(f"{len(damaged)} damaged files left out: {_list(damaged)}",) if damaged else (),
    )


def resize_images(images: np.ndarray, image_size: int | tuple[int, int]) -> np.ndarray:
    """uint8 [R, C, H, W] scaled to another height and width (Lanczos, each image by itself)."""
    height, width = check_image_size(image_size)
    if images.shape[2:] == (height, width):
        return images
    scaled = np.empty((*images.shape[:2], height, width), np.uint8)
    for record, image in enumerate(images):
        for channel, plane in enumerate(image):
            picture = Image.fromarray(plane).resize((width, height), Image.Resampling.LANCZOS)
            scaled[record, channel] = np.asarray(picture)
    return scaled


def check_image_size(image_size: int | tuple[int, int]) -> tuple[int, int]:
    """(height, width) of a setting that is one number or two."""
    sides = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
    if len(sides) != 2 or not all(isinstance(side, int) and side >= 1 for side in sides):
        raise ConfigError(f"image_size is {image_size!r}, but must be one or two whole numbers from 1")
    return sides[0], sides[1]


def _read_all(
    paths: list[Path], image_size: int | tuple[int, int] | None, channels: int | None
) -> np.ndarray:
    size = None if image_size is None else check_image_size(image_size)
    arrays: list[np.ndarray] = []
    for path in paths:
        array = _read_image(path, size, channels)
        if arrays and array.shape != arrays[0].shape:
            (c, h, w), (c0, h0, w0) = array.shape, arrays[0].shape
            remedy = f"scale all images, such as by --image-size {_as_option(h0, w0)}"
            if c != c0:
                remedy = "make all images one kind by --channels 1 (grey) or 3 (in Python channels=1)"
            raise DataError(f"{path}: is {w}x{h}, {c} channels, but {paths[0]} is {w0}x{h0}, {c0}; {remedy}")
        arrays.append(array)
    return np.stack(arrays)


def _as_option(height: int, width: int) -> str:
    """A size as the command line and Python spell it."""
    if height == width:
        return f"{height} (in Python image_size={height})"
    return f"{height}x{width} (in Python image_size=({height}, {width}))"


def _read_image(path: Path, size: tuple[int, int] | None, channels: int | None) -> np.ndarray:
    """One image as uint8 [C, H, W]."""
    with Image.open(path) as opened:
        image = ImageOps.exif_transpose(opened)
        is_grey = channels == 1 or (channels is None and image.mode in _GREY_MODES)
        image = image.convert("L" if is_grey else "RGB")
    if size is not None:
        image = image.resize((size[1], size[0]), Image.Resampling.LANCZOS)
    array = np.asarray(image)
    return array[np.newaxis] if array.ndim == 2 else np.moveaxis(array, 2, 0)


def _problem_of(path: Path) -> str | None:
    """Why a file can't be used as an image, or None."""
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        return "neither PNG nor JPEG"
    try:
        data = path.read_bytes()
    except OSError as error:
        return f"can't be read ({error.strerror or error})"
    if not data:
        return "empty"
    problem = _png_problem(data) if data.startswith(_PNG_START) else _jpeg_problem(data)
    if problem is not None:
        return problem
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            warnings.simplefilter("ignore")
            image.load()
            if image.mode not in _GREY_MODES + _COLOUR_MODES:
                return f"pixel kind {image.mode} is not 8-bit grey or colour"
    except UnidentifiedImageError:
        return "damaged"
    except Image.DecompressionBombError:
        return "too many pixels"
    except (OSError, ValueError, SyntaxError, struct.error, zlib.error) as error:
        return f"damaged ({error})"
    return None


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


def _split_folder(folder: Path, split: str) -> Path:
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; {near_names(folder)}check the path")
    splits = folder_splits(folder)
    if split not in splits:
        raise DataError(
            f"{folder}: has no {split} split; put one sub-folder a class into train/ and {split}/"
        )
    return folder / split if (folder / "train").is_dir() else folder


def _class_folders(folder: Path) -> list[Path]:
    found = [path for path in folder.iterdir() if not path.name.startswith(".")]
    loose = sorted(path.name for path in found if not path.is_dir())
    if any(Path(name).suffix.lower() in IMAGE_SUFFIXES for name in loose):
        raise DataError(f"{folder}: {loose[0]} lies outside the class sub-folders; move it into one")
    folders = [path for path in found if path.is_dir()]
    if not folders:
        raise DataError(f"{folder}: has no sub-folder; make one for each class and put its images there")
    is_numbered = all(path.name.isdecimal() for path in folders)
    return sorted(folders, key=lambda path: (int(path.name) if is_numbered else 0, path.name))


def _names_of(folder: Path) -> tuple[str, ...]:
    return tuple(path.name for path in _class_folders(_split_folder(folder, "train")))


def _is_hidden(path: Path, top: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(top).parts)


def _list(files: list[ImageFile]) -> str:
    shown = ", ".join(f"{file.path} ({file.problem})" for file in files[:_SHOWN_FILES])
    return shown + (f" and {len(files) - _SHOWN_FILES} more" if len(files) > _SHOWN_FILES else "")
