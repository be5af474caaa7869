"""The site is built strictly, holds everything it shows, and takes code from the files that pages link to."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from document_blocks import REPOSITORY

NEEDED = ("mkdocs", "material", "mkdocstrings")
ELSEWHERE = re.compile(r"<(?:script|img|link|iframe)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: pip install 'datalens-dp[docs]'")
    out = tmp_path_factory.mktemp("site") / "site"
    answer = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    return out


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    found = [f"{page.name}: {hit}" for page in pages for hit in ELSEWHERE.findall(page.read_text())]
    assert found == []
    styles = [
        path.name for path in site.rglob("*.css") if re.search(r"url\((?:https?:)?//", path.read_text())
    ]
    assert styles == []


def test_links_to_code_lead_to_the_line(site: Path) -> None:
    page = (site / "algorithm.html").read_text()
    target, line = re.findall(
        r'href="([^"#]+)#(__codelineno-0-\d+)"><code>datalens.training.algorithm.g', page
    )[0]
    source = (site / target).read_text()
    assert f'id="{line}"' in source or f'name="{line}"' in source
    text = (REPOSITORY / "src/datalens/training/algorithm.py").read_text().splitlines()
    assert text[int(line.rpartition("-")[2]) - 1].startswith("def generator_step")


def test_the_reference_comes_from_docstrings(site: Path) -> None:
    page = (site / "api.html").read_text()
    assert 'id="datalens.training.synthesizer.DataLens.fit"' in page
    assert "&gt;&gt;&gt;" in page or "gp" in page
    assert not re.search(r":(?:class|func|meth|data):`", page), "roles became names"


def test_what_is_large_stays_out(site: Path) -> None:
    assert not list(site.rglob("*.jsonl"))
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 20e6
