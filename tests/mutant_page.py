"""The page of a sample of mutants: counts by room, and every survivor with what people wrote about it."""

from __future__ import annotations

import platform
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Protocol

OUTCOMES = ("killed", "survived", "timed out", "not applicable")
WIDTH = 160
_ROW = re.compile(r"^\| `(?P<key>[0-9a-f]{10})` \|.*(?<!\\)\|(?P<words>(?:[^|\\]|\\.)*)\|$")


class Tried(Protocol):
    """What the page needs of a result."""

    @property
    def key(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def before(self) -> str: ...
    @property
    def after(self) -> str: ...
    @property
    def outcome(self) -> str: ...


def explanations(text: str) -> dict[str, str]:
    """What stands in the last column of a page, by key; empty cells are left out.

    >>> explanations("| `0123456789` | a.py:1 | constant | `x` | `y` | the same number |")
    {'0123456789': 'the same number'}
    """
    rows = [found for line in text.splitlines() if (found := _ROW.match(line))]
    return {row["key"]: row["words"].strip() for row in rows if row["words"].strip()}


def page(
    results: Sequence[Tried],
    lines: Mapping[str, int],
    said: Mapping[str, str],
    *,
    seed: int,
    num_mutants: int,
) -> str:
    """Markdown: the same results and words give the same page, but for date and versions."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("pytest", "hypothesis", "numpy", "torch"))
    survivors = [result for result in results if result.outcome == "survived"]
    survivors.sort(key=lambda result: (result.file, lines[result.key]))
    explained = sum(result.key in said for result in survivors)
    rooms = sorted({_room(result.file) for result in results})
    counts = Counter((_room(result.file), result.outcome) for result in results)
    kinds = sorted({result.kind for result in results})
    by_kind = Counter((result.kind, result.outcome) for result in results)
    text = [
        "# Mutants",
        "",
        "Small edits of the code that the guarantee rests on, each of which should turn a test red. Drawn by",
        "[`tests/mutants.py`](../../tests/mutants.py), which says how. Drawn again by:",
        "",
        "```bash",
        f"python tests/mutants.py --minutes 60 --seed {seed} --out docs/results/mutants.md",
        "```",
        "",
        f"{len(results)} of {num_mutants} mutants were tried, in the order of seed {seed}. "
        f"Page of {time.strftime('%Y-%m-%d', time.gmtime())}; Python {platform.python_version()}, {versions}.",
        "",
        *_table("room", rooms, counts),
        "",
        *_table("edit", kinds, by_kind),
        "",
        "## Survivors",
        "",
        f"{len(survivors)}, of which {explained} are explained. A survivor that is not equivalent needs a test.",
        "",
        "| key | where | edit | line | becomes | why it survives |",
        "|---|---|---|---|---|---|",
    ]
    for result in survivors:
        before, after = _narrow(result.before, result.after)
        where = f"{result.file.removeprefix('src/datalens/')}:{lines[result.key]}"
        text.append(
            f"| `{result.key}` | {where} | {result.kind} | {_code(before)} | {_code(after)} "
            f"| {said.get(result.key, '')} |"
        )
    return "\n".join(text) + "\n"


def _room(file: str) -> str:
    parts = file.split("/")
    return "/".join(parts[2:4]).removesuffix(".py") if parts[2] == "teachers" else parts[2]


def _table(title: str, names: Sequence[str], counts: Mapping[tuple[str, str], int]) -> list[str]:
    """Outcomes by name, with a row of sums."""
    rows = [f"| {title} | {' | '.join(OUTCOMES)} |", "|---|" + "---:|" * len(OUTCOMES)]
    for name in names:
        rows.append(f"| {name} | " + " | ".join(str(counts.get((name, each), 0)) for each in OUTCOMES) + " |")
    sums = [sum(counts.get((name, each), 0) for name in names) for each in OUTCOMES]
    return [*rows, "| all | " + " | ".join(map(str, sums)) + " |"]


def _narrow(before: str, after: str) -> tuple[str, str]:
    """Long lines cut to the surroundings of where they differ."""
    same = next((i for i, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), 0)
    start = max(0, same - WIDTH // 2) if max(len(before), len(after)) > WIDTH else 0
    return tuple(_cut(line, start) for line in (before, after))  # type: ignore[return-value]


def _cut(line: str, start: int) -> str:
    piece = line[start : start + WIDTH]
    return ("… " if start else "") + piece + (" …" if start + WIDTH < len(line) else "")


def _code(text: str) -> str:
    """As code in a cell of a table."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text.replace('|', chr(92) + '|')}{fence}"
