"""A hook of MkDocs: links that lead out of docs/ lead to pages with those files, so that the site is whole by itself.

In the sources such a link is a path (``../src/datalens/...``), which a checkout and a forge follow as it stands. A
link whose text is a dotted name in backticks goes to the line of its definition.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

REPOSITORY = Path(__file__).resolve().parents[1]
SHELF = "source"
"""The folder of the site with files from outside docs/."""
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
NAMED = re.compile(rf'href="([^"#]*{SHELF}/([^"#]+\.py)\.html)"><code>(\w[\w.]*)')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put what pages link to outside docs/ on the shelf, and what those link to."""
    waiting = [place_of(file) for file in files.documentation_pages()]
    while waiting:
        place = waiting.pop()
        for target in outside(place):
            if files.get_file_from_path(shelved(target)) is None:
                files.append(File.generated(config, shelved(target), content=page_of(target)))
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, *, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Turn paths in the repository into paths in the site."""
    place, here = place_of(page.file), page.file.src_uri

    def turned(match: re.Match[str]) -> str:
        target = resolved(place, match[1])
        if target is None:
            return match[0]
        return posixpath.relpath(in_site(target), posixpath.dirname(here) or ".") + (match[2] or "")

    return markdown if place.endswith(".py") else LINK.sub(turned, markdown)


def on_page_content(html: str, *, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Let links to a named definition lead to its line."""

    def aimed(match: re.Match[str]) -> str:
        line = line_of(REPOSITORY / match[2], match[3])
        return (
            match[0] if line is None else match[0].replace(match[1], f"{match[1]}#__codelineno-0-{line}", 1)
        )

    return NAMED.sub(aimed, html)


def place_of(file: File) -> str:
    """Where a page of the site lies in the repository."""
    uri = file.src_uri
    if not uri.startswith(f"{SHELF}/"):
        return f"docs/{uri}"
    place = uri.removeprefix(f"{SHELF}/")
    return place if (REPOSITORY / place).exists() else place.removesuffix(".md")


def in_site(target: str) -> str:
    """Where a file of the repository lies in the site's sources."""
    return target.removeprefix("docs/") if target.startswith("docs/") else shelved(target)


def shelved(target: str) -> str:
    """The page of a file from outside docs/."""
    return f"{SHELF}/{target}" if target.endswith(".md") else f"{SHELF}/{target}.md"


def outside(place: str) -> Iterator[str]:
    """Files outside docs/ that a Markdown file links to."""
    if place.endswith(".md"):
        for match in LINK.finditer((REPOSITORY / place).read_text()):
            target = resolved(place, match[1])
            if target is not None and not target.startswith("docs/"):
                yield target


def resolved(place: str, link: str) -> str | None:
    """The file of the repository that a link leads to; None for addresses and what is not there."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(place), link))
    return target if "://" not in link and (REPOSITORY / target).is_file() else None


def page_of(target: str) -> str:
    """A file as a page: Markdown as it stands, anything else with numbered lines."""
    text = (REPOSITORY / target).read_text()
    if target.endswith(".md"):
        return text
    language = "python" if target.endswith(".py") else "text"
    return f'# {target}\n\n``````{{ .{language} linenums="1" }}\n{text}\n``````\n'


def line_of(path: Path, name: str) -> int | None:
    """The line on which a function, class, method or constant is defined; None where it is not in that file."""
    owner, _, last = name.rpartition(".")
    body = ast.parse(path.read_text()).body
    owners = [node for node in body if isinstance(node, ast.ClassDef) and node.name == owner.split(".")[-1]]
    for node in owners[0].body if owners else body:
        goals = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if last in (getattr(node, "name", None), *(getattr(goal, "id", None) for goal in goals)):
            return node.lineno
    return None
