"""The pages in a real browser: nothing is asked for, nothing complains, nothing overflows, and markup stays text."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datalens.reports.facts import read_release
from datalens.reports.release_page import release_page
from datalens.reports.sheets import Row, Sheet
from datalens.training.run_folder import RunFolder

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((path for name in BROWSERS if (path := shutil.which(name))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason=f"none of {', '.join(BROWSERS)} is installed"),
]


def browse(page: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Open a page without a window."""
    profile = page.parent / "profile"
    fixed = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--enable-logging=stderr",
    )
    return subprocess.run(
        [str(BROWSER), *fixed, f"--user-data-dir={profile}", *words, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


@pytest.fixture
def page(evil: RunFolder, images: np.ndarray, tmp_path: Path) -> Path:
    """The page of a run whose classes are called like markup."""
    facts = read_release(evil.release)
    sheet = Sheet("", tuple(Row(name, images) for name in facts.classes))
    target = tmp_path / "report.html"
    target.write_text(release_page(facts, [sheet]))
    return target


def test_markup_stays_text_and_the_console_is_silent(page: Path) -> None:
    answer = browse(page, "--dump-dom")
    assert "<script" not in answer.stdout and "onerror=" in answer.stdout  # as text alone
    assert not re.search(r"<img[^>]+onerror=(?!alert\(1\)&gt;)[^>]*src=.x", answer.stdout)
    assert not re.findall(r"CONSOLE|Refused to|net::ERR", answer.stderr)


@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_phone_and_desk(page: Path, width: int) -> None:
    """Right and left edge are paper from top to bottom, so nothing runs over."""
    target = page.with_name(f"{width}.png")
    browse(page, f"--screenshot={target}", f"--window-size={width},4000")
    seen = np.asarray(Image.open(target).convert("RGB"))
    paper = seen[0, 0]
    assert (seen[:, -4:] == paper).all() and (seen[:, :4] == paper).all()
    assert len(np.unique(seen.reshape(-1, 3), axis=0)) > 20  # and something is drawn


def test_dark_is_dark_and_light_is_light(page: Path) -> None:
    shades = []
    for name, words in (("light", ()), ("dark", ("--blink-settings=preferredColorScheme=0",))):
        target = page.with_name(f"{name}.png")
        browse(page, *words, f"--screenshot={target}", "--window-size=800,1200")
        shades.append(int(np.asarray(Image.open(target).convert("L"))[0, 0]))
    assert shades[0] > 200 and shades[1] < 60


def test_it_prints(page: Path) -> None:
    target = page.with_name("report.pdf")
    browse(page, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    assert target.read_bytes().startswith(b"%PDF")
