"""What a mutant is: one small edit of a source text, found by its syntax and made where it stands.

Nothing is made of docstrings, messages of errors, annotations, decorators, imports, ``__all__`` and what only a
type checker reads. An edit that Python would not compile is left out.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

COMPARISONS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
    "is": ("is not",), "is not": ("is",), "in": ("not in",), "not in": ("in",),
}  # fmt: skip
ARITHMETIC = {
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "**": "*", "%": "*", "<<": ">>", ">>": "<<",
    "&": "|", "|": "&", "^": "&", "@": "*",
}  # fmt: skip
JUNCTIONS = {"and": "or", "or": "and"}
SYMMETRIC = {
    "max",
    "min",
    "isclose",
    "allclose",
    "hypot",
    "gcd",
    "maximum",
    "minimum",
    "isinstance",
    "getattr",
}
"""Calls whose two arguments may be exchanged (or, for the last two, never run if they are)."""

MAY_BREAK = {"default removed", "argument removed", "arguments swapped", "statement removed"}
"""Edits that Python may not compile; to ask it of all would take longer than to find them."""


@dataclass(frozen=True)
class Mutant:
    """One edit: ``text[start:stop]`` of ``file`` becomes ``new``.

    ``key`` names it by its file, function, edit and count among equals, not by its line, so that it lasts while
    other lines change.
    """

    file: str
    kind: str
    line: int
    start: int
    stop: int
    new: str
    before: str
    after: str
    key: str

    def apply(self, text: str) -> str:
        """The text with the edit."""
        return text[: self.start] + self.new + text[self.stop :]


class _Edit(NamedTuple):
    """An edit that has no name yet."""

    kind: str
    start: int
    stop: int
    new: str
    function: str


class _Finder(ast.NodeVisitor):
    def __init__(self, text: str) -> None:
        self.text = text
        self.edits: list[_Edit] = []
        self._returns: list[str] = []
        self._names: list[str] = []
        lengths = [0]
        for line in text.splitlines(keepends=True):
            lengths.append(lengths[-1] + len(line))
        self._line_starts = lengths
        self._lines = text.splitlines(keepends=True)

    def add(self, kind: str, start: int, stop: int, new: str) -> None:
        if self.text[start:stop] != new:
            self.edits.append(_Edit(kind, start, stop, new, ".".join(self._names)))

    def place(self, line: int, column: int) -> int:
        """Index in the text; ``ast`` counts columns in bytes."""
        chars = len(self._lines[line - 1].encode()[:column].decode()) if column else 0
        return self._line_starts[line - 1] + chars

    def span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self.place(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.place(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def source(self, node: ast.AST) -> str:
        start, stop = self.span(node)
        return self.text[start:stop]

    def _between(
        self, kind: str, left: ast.AST, right: ast.AST, words: str, choices: tuple[str, ...]
    ) -> None:
        """Replace the operator that stands between two operands, whatever brackets and breaks are there."""
        gap_start, gap_stop = self.span(left)[1], self.span(right)[0]
        pattern = r"\s+".join(re.escape(word) for word in words.split())
        if words[0].isalpha():
            pattern = rf"\b{pattern}\b"
        found = re.search(pattern, self.text[gap_start:gap_stop])
        if found is not None:
            for new in choices:
                self.add(kind, gap_start + found.start(), gap_start + found.end(), new)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._names.append(node.name)
        self._returns.append(ast.unparse(node.returns) if node.returns else "")
        arguments = node.args
        pairs = [
            (arg, default) for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ]
        if arguments.defaults:
            every = [*arguments.posonlyargs, *arguments.args]
            pairs.append((every[-len(arguments.defaults)], arguments.defaults[0]))
        for arg, default in pairs:
            if default is not None:
                self.add("default removed", self.span(arg)[1], self.span(default)[1], "")
        for default in (*arguments.defaults, *(given for given in arguments.kw_defaults if given)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self._returns.pop()
        self._names.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._names.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._names.pop()

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        """A pattern, which holds no arithmetic."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A text, mostly of a message."""

    def visit_If(self, node: ast.If | ast.While | ast.IfExp) -> None:
        """Turn round a condition that no other edit turns round."""
        test = node.test
        if "TYPE_CHECKING" in ast.unparse(test):
            return
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr):
            self.add("condition", *self.span(test), f"not ({self.source(test)})")
        self.generic_visit(node)

    visit_While = visit_IfExp = visit_If

    def _drop(self, node: ast.stmt) -> None:
        self.add("statement removed", *self.span(node), "pass")

    visit_Raise = visit_Continue = visit_Break = visit_Delete = _drop  # and no look at what is raised

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant) and "logg" not in ast.unparse(node.value).split("(")[0]:
            self._drop(node)
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            return
        if not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets):
            self._drop(node)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._drop(node)
        for old, new in ARITHMETIC.items():
            operator = ast.parse(f"x {old} x", mode="eval").body
            if isinstance(operator, ast.BinOp) and type(operator.op) is type(node.op):
                self._between("arithmetic", node.target, node.value, f"{old}=", (f"{new}=",))
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if value is None:
            return
        promised, source = self._returns[-1], self.source(value)
        if promised == "bool":
            self.add("return value", *self.span(value), f"not ({source})")
        elif promised in ("int", "float"):
            self.add("return value", *self.span(value), f"({source}) + 1")
        elif source != "None":
            self.add("return value", *self.span(value), "None")
        self.visit(value)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            words = ast.unparse(ast.Compare(ast.Name("x"), [operator], [ast.Name("x")]))[2:-2]
            self._between("comparison", left, right, words, COMPARISONS[words])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(
            isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and not _is_number(side.value))
            for side in (node.left, node.right)
        )
        if texts:
            return
        words = ast.unparse(ast.BinOp(ast.Name("x"), node.op, ast.Name("x")))[1:-1].strip()
        self._between("arithmetic", node.left, node.right, words, (ARITHMETIC[words],))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        words = "and" if isinstance(node.op, ast.And) else "or"
        for left, right in pairwise(node.values):
            self._between("boolean", left, right, words, (JUNCTIONS[words],))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.add("boolean", *self.span(node), f"bool({self.source(node.operand)})")
        elif isinstance(node.op, ast.USub):
            self.add("arithmetic", *self.span(node), f"(+{self.source(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.add("constant", *self.span(node), str(not node.value))
        elif _is_number(node.value):
            source = self.source(node)
            self.add("constant", *self.span(node), f"({source} + 1)")
            self.add("constant", *self.span(node), f"({source} - 1)")

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func).split(".")[-1]
        given = [self.span(argument) for argument in node.args]
        plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
        if plain and name not in SYMMETRIC:
            for left, right in pairwise(given):
                between = self.text[left[1] : right[0]]
                swapped = self.text[right[0] : right[1]] + between + self.text[left[0] : left[1]]
                self.add("arguments swapped", left[0], right[1], swapped)
        for keyword in node.keywords:
            if keyword.arg is not None and len(node.args) + len(node.keywords) > 1:
                start, stop = self.span(keyword)
                after = re.match(r"\s*,\s*", self.text[stop:])
                self.add("argument removed", start, stop + (after.end() if after else 0), "")
        self.generic_visit(node)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | complex) and not isinstance(value, bool)


def mutants_of(file: str, text: str) -> list[Mutant]:
    """All mutants of one file, in the order of its text; ``decorators`` and annotations are passed over."""
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    return list(_named(file, text, sorted(finder.edits, key=lambda edit: edit[1:3])))


def _named(file: str, text: str, edits: list[_Edit]) -> Iterator[Mutant]:
    seen: Counter[str] = Counter()
    for kind, start, stop, new, function in edits:
        changed = text[:start] + new + text[stop:]
        if kind in MAY_BREAK and not _compiles(changed):
            continue
        before, after = _lines(text, start, stop), _lines(changed, start, start + len(new))
        name = "\n".join((file, function, kind, before, after))
        seen[name] += 1
        key = hashlib.sha256(f"{name}\n{seen[name]}".encode()).hexdigest()[:10]
        line = text.count("\n", 0, start) + 1
        yield Mutant(file, kind, line, start, stop, new, before, after, key)


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _lines(text: str, start: int, stop: int) -> str:
    """The whole lines around a piece, in one line."""
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", stop)
    return " ".join(text[first : last if last >= 0 else None].split())
