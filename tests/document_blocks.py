"""Blocks of code in documents, and the marks that say why one does not run here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])
FENCE = re.compile(r"(?:^<!-- not run: ([^>]*?) -->\n)?^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = ("bash", "sh", "console")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: after the fence.
        text: within it.
        not_run: the reason in ``<!-- not run: reason -->`` on the line above; empty where it runs.
    """

    language: str
    text: str
    not_run: str

    @property
    def lines(self) -> list[str]:
        """Command lines, those that go on with a backslash joined, without prompts."""
        joined = self.text.replace("\\\n", " ").splitlines()
        return [line.strip().removeprefix("$ ") for line in joined if line.strip()]


def blocks(path: Path) -> Iterator[Block]:
    """Every block of a document, in order."""
    for not_run, language, text in FENCE.findall(path.read_text()):
        yield Block(language, text, not_run)


def name_of(path: Path) -> str:
    """A document's path in the repository."""
    return str(path.relative_to(REPOSITORY))
