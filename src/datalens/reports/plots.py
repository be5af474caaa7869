"""Line plots and image grids, each saved as PNG and SVG; the same numbers give the same bytes.

matplotlib is imported only when something is drawn (extra ``reports``). Curves differ in colour (a palette
for colour-blind readers, dark and light in turn), line style and marker, so that they stay apart in grey.
"""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datalens.errors import ConfigError, MissingExtraError, RunError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PALETTE = ("#000000", "#D55E00", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
"""Okabe and Ito 2008, without the yellow that white paper swallows."""
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<")
MOST_CURVES = len(PALETTE) * len(LINES)

_DPI = 100
_STYLE: dict[str, Any] = {
    "svg.hashsalt": "datalens",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 10,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "axes.axisbelow": True,
    "legend.framealpha": 0.9,
}


@dataclass(frozen=True)
class Curve:
    """One line of a plot.

    Attributes:
        label: for the legend.
        x, y: as many numbers each; points that are not finite are left out.

    Raises:
        ConfigError: no label, or another number of x than of y.

    >>> Curve("epsilon", (1, 2), (0.1, 0.2)).y
    (0.1, 0.2)
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.label or len(self.x) != len(self.y) or not self.x:
            raise ConfigError(
                f"curve {self.label!r} has {len(self.x)} x and {len(self.y)} y: give a label and as many of each"
            )


def line_plot(
    curves: Sequence[Curve],
    target: str | os.PathLike[str],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    x_log: bool = False,
    y_log: bool = False,
) -> tuple[Path, Path]:
    """Draw labelled curves into one plot.

    Args:
        curves: up to 28, with different labels.
        target: path without its ending; ``.png`` and ``.svg`` are added. Both files are replaced.
        x_log, y_log: logarithmic axes; points at 0 or below are left out there.

    Returns:
        Paths of the PNG and of the SVG.

    Raises:
        ConfigError: no curves, too many, two of one name, nothing to be seen, or matplotlib is missing.
        RunError: a file cannot be written.
    """
    _check_curves(curves, x_log=x_log, y_log=y_log)
    matplotlib = _load_matplotlib()
    with matplotlib.rc_context(_STYLE):
        figure = _figure(matplotlib, 700, 440)
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot()
        for number, curve in enumerate(curves):
            x, y = _visible(curve, x_log=x_log, y_log=y_log)
            gap = max(1, len(x) // 10)
            axes.plot(
                x,
                y,
                label=_plain(curve.label),
                color=PALETTE[number % len(PALETTE)],
                linestyle=LINES[number % len(LINES)],
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
                markevery=(number * gap // len(curves), gap),  # so that curves on top of each other both show
                linewidth=1.6,
            )
        axes.set(xlabel=_plain(x_label), ylabel=_plain(y_label), title=_plain(title))
        axes.set_xscale("log" if x_log else "linear")
        axes.set_yscale("log" if y_log else "linear")
        axes.legend(fontsize=8)
        return _save(figure, target)


def image_grid(
    images: np.ndarray,
    target: str | os.PathLike[str],
    *,
    columns: int,
    row_labels: Sequence[str] = (),
    title: str = "",
    zoom: int = 2,
) -> tuple[Path, Path]:
    """Images in rows, left to right, every pixel a square of ``zoom`` x ``zoom`` in the PNG.

    Args:
        images: uint8 [R, C, H, W], grey (C = 1) or colour (C = 3), 0 to 255. A last row that is not full is
            filled up with white.
        target: path without its ending; ``.png`` and ``.svg`` are added. Both files are replaced.
        columns: images in a row.
        row_labels: one for each row, left of it; or none.
        zoom: screen pixels a pixel.

    Returns:
        Paths of the PNG and of the SVG.

    Raises:
        ConfigError: images of another type or shape, numbers that do not fit, or matplotlib is missing.
        RunError: a file cannot be written.
    """
    sheet = _sheet(images, columns, zoom)
    rows = -(-len(images) // columns)
    if row_labels and len(row_labels) != rows:
        raise ConfigError(f"{len(row_labels)} row labels for {rows} rows: give one for each row, or none")
    matplotlib = _load_matplotlib()
    with matplotlib.rc_context(_STYLE):
        left = 12 + 8 * max((len(label) for label in row_labels), default=0)
        top = 28 if title else 8
        height, width = sheet.shape[0], sheet.shape[1]
        full_width, full_height = left + width + 8, top + height + 8
        figure = _figure(matplotlib, full_width, full_height)
        figure.figimage(sheet, xo=left, yo=8, resize=False)
        for row, label in enumerate(row_labels):
            middle = 1 - (top + (row + 0.5) * height / rows) / full_height
            figure.text((left - 6) / full_width, middle, _plain(label), ha="right", va="center", fontsize=9)
        if title:
            figure.text(0.5, 1 - top / 2 / full_height, _plain(title), ha="center", va="center")
        return _save(figure, target)


def _sheet(images: np.ndarray, columns: int, zoom: int) -> np.ndarray:
    """uint8 [height, width, 3]: the images side by side with white seams, magnified."""
    if (
        not isinstance(images, np.ndarray)
        or images.dtype != np.uint8
        or images.ndim != 4
        or images.shape[1] not in (1, 3)
        or images.size == 0
    ):
        found = f"{images.dtype} {images.shape}" if isinstance(images, np.ndarray) else type(images).__name__
        raise ConfigError(f"a grid needs uint8 images [R, C, H, W] with 1 or 3 channels, not {found}")
    if columns < 1 or zoom < 1:
        raise ConfigError(f"columns={columns!r} and zoom={zoom!r} must be 1 or more: raise them")
    count, _, height, width = images.shape
    columns = min(columns, count)
    rows, seam = -(-count // columns), 1
    sheet = np.full((rows * (height + seam) - seam, columns * (width + seam) - seam, 3), 255, np.uint8)
    for number, image in enumerate(images):
        down, right = number // columns * (height + seam), number % columns * (width + seam)
        sheet[down : down + height, right : right + width] = image.transpose(1, 2, 0)
    return sheet.repeat(zoom, axis=0).repeat(zoom, axis=1)


def _check_curves(curves: Sequence[Curve], *, x_log: bool, y_log: bool) -> None:
    if not 1 <= len(curves) <= MOST_CURVES:
        raise ConfigError(
            f"{len(curves)} curves: a plot can tell 1 to {MOST_CURVES} apart; draw several plots"
        )
    labels = [curve.label for curve in curves]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ConfigError(f"two curves are called {twice!r}: give each a label of its own")
    if not any(len(_visible(curve, x_log=x_log, y_log=y_log)[0]) for curve in curves):
        raise ConfigError("no point of any curve can be drawn: use linear axes, or finite numbers")


def _visible(curve: Curve, *, x_log: bool, y_log: bool) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.array(curve.x, dtype=np.float64), np.array(curve.y, dtype=np.float64)
    seen = np.isfinite(x) & np.isfinite(y)
    seen &= (x > 0) | (not x_log)
    seen &= (y > 0) | (not y_log)
    return x[seen], y[seen]


def _plain(text: str) -> str:
    """Text as it stands: a dollar sign would begin a formula, an underscore in front hides a legend entry."""
    shown = text.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _load_matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise MissingExtraError(
            "figures need matplotlib, which is not installed; run: pip install 'datalens-dp[report]'"
        ) from None
    return matplotlib


def _figure(matplotlib: Any, width: int, height: int) -> Figure:
    """A figure of so many pixels: no global state, no window, whatever backend the user has chosen."""
    return matplotlib.figure.Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor="white")


def _save(figure: Figure, target: str | os.PathLike[str]) -> tuple[Path, Path]:
    stem = Path(target)
    written = []
    for ending, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        content = io.BytesIO()
        figure.savefig(content, format=ending, dpi=_DPI, metadata=metadata)
        path = stem.with_name(f"{stem.name}.{ending}")
        _write(path, content.getvalue())
        written.append(path)
    return written[0], written[1]


def _write(path: Path, content: bytes) -> None:
    """Write the file whole or not at all."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise RunError(f"{path}: cannot be written ({error.strerror}); make room or permit it") from None
