"""Figures: the same bytes for the same numbers, readable without colour, and one clear line when they cannot be."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datalens.errors import ConfigError, MissingExtraError, RunError
from datalens.reports.plots import LINES, MARKERS, MOST_CURVES, PALETTE, Curve, image_grid, line_plot

CURVES = (Curve("one", (1, 2, 3), (0.1, 10.0, 1000.0)), Curve("two", (1, 2, 3), (5.0, 4.0, 0.0)))


def draw(target: Path, curves=CURVES, **options) -> tuple[Path, Path]:
    return line_plot(curves, target, x_label="k", y_label="bound", **options)


def pixels(path: Path, mode: str) -> np.ndarray:
    with Image.open(path) as drawn:
        return np.asarray(drawn.convert(mode))


def test_plots_are_written_as_png_and_svg(tmp_path):
    png, svg = draw(tmp_path / "figure.2", title="costs $5 to _you_", y_log=True)
    assert (png.name, svg.name) == ("figure.2.png", "figure.2.svg")
    with Image.open(png) as drawn:
        assert drawn.size == (700, 440)
    assert xml.parse(svg).getroot().tag.endswith("svg")
    assert sorted(tmp_path.iterdir()) == [png, svg]


def test_the_same_numbers_give_the_same_bytes_in_another_process_at_another_time(tmp_path):
    here = [path.read_bytes() for path in draw(tmp_path / "a", x_log=True)]
    program = (
        "from datalens.reports.plots import Curve, line_plot;"
        "curves = [Curve('one', (1, 2, 3), (0.1, 10.0, 1000.0)), Curve('two', (1, 2, 3), (5.0, 4.0, 0.0))];"
        f"line_plot(curves, {str(tmp_path / 'b')!r}, x_label='k', y_label='bound', x_log=True)"
    )
    surroundings = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}
    surroundings |= {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1", "MPLBACKEND": "svg"}
    subprocess.run([sys.executable, "-c", program], check=True, env=surroundings)
    assert [(tmp_path / name).read_bytes() for name in ("b.png", "b.svg")] == here
    assert b"<dc:date>" not in here[1] and b"matplotlib.org" not in here[0]


def test_curves_stay_apart_in_grey():
    looks = {
        (PALETTE[i % len(PALETTE)], LINES[i % len(LINES)], MARKERS[i % len(MARKERS)])
        for i in range(MOST_CURVES)
    }
    assert len(looks) == MOST_CURVES
    without_colour = {(LINES[i % len(LINES)], MARKERS[i % len(MARKERS)]) for i in range(MOST_CURVES)}
    assert len(without_colour) == MOST_CURVES


def test_colours_stand_out_from_paper():
    for colour in PALETTE:
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        assert 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.72


@pytest.mark.parametrize(
    ("curves", "reason"),
    [
        ((), "0 curves"),
        ((CURVES[0], CURVES[0]), "called 'one'"),
        (tuple(Curve(str(i), (1,), (1,)) for i in range(MOST_CURVES + 1)), "draw several plots"),
        ((Curve("zero", (1, 2), (0.0, float("nan"))),), "linear axes"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_anything_is_written(tmp_path, curves, reason):
    with pytest.raises(ConfigError, match=reason):
        draw(tmp_path / "figure", curves, y_log=True)
    assert list(tmp_path.iterdir()) == []


def test_a_curve_needs_as_many_x_as_y():
    with pytest.raises(ConfigError, match="2 x and 1 y"):
        Curve("a", (1, 2), (1,))


def test_a_grid_shows_every_pixel(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (5, 3, 4, 6), dtype=np.uint8)
    png, svg = image_grid(images, tmp_path / "grid", columns=3, row_labels=("first", "second"), zoom=3)
    assert xml.parse(svg).getroot().tag.endswith("svg")
    drawn = pixels(png, "RGB")
    left, top = 12 + 8 * len("second"), 8
    for number, image in enumerate(images):
        down, right = top + number // 3 * 15, left + number % 3 * 21
        patch = drawn[down : down + 12, right : right + 18].reshape(4, 3, 6, 3, 3)
        assert (patch == image.transpose(1, 2, 0)[:, None, :, None]).all()
    again = image_grid(images, tmp_path / "again", columns=3, row_labels=("first", "second"), zoom=3)
    assert [path.read_bytes() for path in again] == [png.read_bytes(), svg.read_bytes()]


def test_grey_images_and_a_title(tmp_path):
    png, _ = image_grid(np.full((2, 1, 8, 8), 7, np.uint8), tmp_path / "grid", columns=9, title="grey")
    assert (pixels(png, "L")[28:44, 12:28] == 7).all()


@pytest.mark.parametrize(
    "images",
    [np.zeros((2, 1, 4, 4)), np.zeros((2, 2, 4, 4), np.uint8), np.zeros((0, 1, 4, 4), np.uint8), [1]],
)
def test_other_arrays_are_refused(tmp_path, images):
    with pytest.raises(ConfigError, match="uint8 images"):
        image_grid(images, tmp_path / "grid", columns=2)


def test_labels_must_fit_the_rows(tmp_path):
    with pytest.raises(ConfigError, match="1 row labels for 2 rows"):
        image_grid(np.zeros((4, 1, 4, 4), np.uint8), tmp_path / "grid", columns=2, row_labels=("a",))


def test_a_missing_folder_is_one_clear_line(tmp_path):
    with pytest.raises(RunError, match="cannot be written"):
        draw(tmp_path / "nowhere" / "figure")


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'datalens-dp\[report\]'"):
        draw(tmp_path / "figure")
