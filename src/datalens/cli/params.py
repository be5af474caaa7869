"""Commands and values that take no liberties: a repeated option or an odd number is refused, not guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click
from click.shell_completion import CompletionItem

Given = TypeVar("Given", covariant=True)

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_OVERLONG = re.compile(r"[+-]?[0-9]{19,}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def starting(known: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Those of the names that begin so, as shells are told of them."""
    return [CompletionItem(str(name)) for name in known if name.startswith(incomplete)]


if TYPE_CHECKING:

    class Value(click.ParamType[Given]):
        """A type of values on the command line."""
else:  # before click 8.4 its types say nothing of the value

    class Value(click.ParamType, Generic[Given]):
        """A type of values on the command line."""


class Once(click.Command):
    """A command whose options may each be given once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments as click takes them, an option given twice refused."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for param in [] if ctx.resilient_parsing else order:
            if isinstance(param, click.Option) and not param.is_eager and order.count(param) > 1:
                name = max(param.opts, key=len)
                raise click.UsageError(f"{name} is given more than once; give it once", ctx)
        return super().parse_args(ctx, args)


class Whole(Value[int]):
    """A whole number in plain digits, from ``low`` on."""

    name = "integer"

    def __init__(self, low: int = 1) -> None:
        self.low = low

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a text that is none, or too small, is refused."""
        if isinstance(value, int):
            return value
        if _OVERLONG.fullmatch(value):
            self.fail(f"{value:.20}... is too large; give a number of at most 18 digits", param, ctx)
        if not _WHOLE.fullmatch(value):
            self.fail(
                f"{value!r:.60} is not a whole number; give plain digits, such as {self.low + 100}",
                param,
                ctx,
            )
        number = int(value)
        if number < self.low:
            self.fail(f"{number} is too small; give {self.low} or more", param, ctx)
        return number


class Number(Value[float]):
    """A finite number, within bounds that are themselves allowed or not.

    Args:
        low: smallest.
        high: largest.
        above: whether ``low`` itself is refused.
        below: whether ``high`` itself is refused.
        anything: take every value that is a number at all, also nan and inf (checked later).
    """

    name = "number"
    low: float
    high: float
    above: bool
    below: bool
    anything: bool

    def __init__(
        self,
        low: float = -math.inf,
        high: float = math.inf,
        *,
        above: bool = False,
        below: bool = False,
        anything: bool = False,
    ) -> None:
        self.low, self.high, self.above, self.below, self.anything = low, high, above, below, anything

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; a text that is none, or out of range, is refused."""
        if isinstance(value, int | float):
            return float(value)
        if self.anything and value.lower().lstrip("+-") in ("nan", "inf", "infinity"):
            return float(value)
        if not _NUMBER.fullmatch(value):
            self.fail(
                f"{value!r:.60} is not a number; give one such as 0.5 or 1e-5{self._rule()}", param, ctx
            )
        number = float(value)
        if self.anything:
            return number
        too_low = number < self.low or (self.above and number == self.low)
        too_high = number > self.high or (self.below and number == self.high)
        if too_low or too_high or not math.isfinite(number):
            self.fail(f"{value:.60} is out of range; give a finite number{self._rule()}", param, ctx)
        return number

    def _rule(self) -> str:
        low = "" if self.low == -math.inf else f" {'above' if self.above else 'from'} {self.low:g}"
        high = "" if self.high == math.inf else f" {'and below' if self.below else 'to'} {self.high:g}"
        return low + high


class Kind(Value[StrEnum]):
    """One name of a closed list; the first word of a name will do (``discrete``)."""

    name = "kind"

    def __init__(self, kind: type[StrEnum]) -> None:
        self.kind = kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The names, for the help page."""
        return f"[{'|'.join(self.kind)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> StrEnum:
        """The member of that name or first word; an unknown one is refused with the known ones listed."""
        for member in self.kind:
            if value == member:
                return member
        starts = [member for member in self.kind if str(member).split("-")[0] == value]
        if len(starts) == 1:
            return starts[0]
        self.fail(f"{value!r:.60} is unknown; known: {', '.join(self.kind)}", param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names that begin so."""
        return starting(self.kind, incomplete)


class Several(Value[tuple[str, ...]]):
    """One or more names of a closed list, with commas between, each once."""

    name = "names"

    def __init__(self, *known: str) -> None:
        self.known = known

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The names, for the help page."""
        return f"[{'|'.join(self.known)}],..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """The names, in the order given; an unknown or repeated one is refused."""
        if not isinstance(value, str):
            return value
        names = tuple(name.strip() for name in value.split(","))
        strange = [name for name in names if name not in self.known]
        if strange:
            self.fail(f"{strange[0]!r:.60} is unknown; known: {', '.join(self.known)}", param, ctx)
        if len(set(names)) < len(names):
            self.fail(f"{value!r:.60} names one twice; name each once", param, ctx)
        return names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names given so far, and one that begins so; none twice."""
        before, comma, last = incomplete.rpartition(",")
        rest = [name for name in self.known if name not in before.split(",")]
        return [CompletionItem(f"{before}{comma}{item.value}") for item in starting(rest, last)]


def _is_like_option(value: str, ctx: click.Context | None) -> bool:
    """Whether a value is more likely the next option, whose own value is then lost: ``--out --quiet``."""
    known = [] if ctx is None else [name for param in ctx.command.params for name in param.opts]
    return value in (*known, "-h") or (value.startswith("--") and value != "--")


class Text(Value[str]):
    """Text that is not empty, and of an option none that looks like the next option.

    Args:
        known: names that completion offers; others may be given, and are judged where they are used.
        paths: completion offers files and folders, too.
    """

    name = "text"
    known: tuple[str, ...]
    paths: bool

    def __init__(self, *known: str, paths: bool = False) -> None:
        self.known, self.paths = known, paths

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text; an empty one is refused."""
        if not value.strip() or "\0" in value:
            self.fail("is empty; give a value, or leave it out", param, ctx)
        if isinstance(param, click.Option) and _is_like_option(value, ctx):
            self.fail(
                f"{value!r:.60} looks like an option of its own; give a value before it (./NAME for a file of "
                "such a name)",
                param,
                ctx,
            )
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Known names that begin so, after files where paths may be given."""
        files = [CompletionItem(incomplete, type="file")] if self.paths else []
        return [
            *files,
            *starting(self.known, incomplete),
        ]  # in this order: bash forgets what stands before files


class Classes(Value[int | tuple[str, ...]]):
    """The public class list: how many, or names with commas between."""

    name = "classes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | tuple[str, ...]:
        """How many, or the names; none, an empty or a repeated name is refused."""
        if not isinstance(value, str):
            return value
        if re.fullmatch(r"[0-9]{1,6}", value):
            if int(value) < 1:
                self.fail("0 is too small; give how many classes there are, or their names", param, ctx)
            return int(value)
        names = tuple(name.strip() for name in value.split(","))
        if "" in names or len(set(names)) < len(names):
            self.fail(f"{value!r:.60} must name each class once and none emptily; give A,B,C", param, ctx)
        return names


class ImageSize(Value[int | tuple[int, int]]):
    """``28`` or ``HEIGHTxWIDTH``."""

    name = "size"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | tuple[int, int]:
        """One side of a square, or (height, width)."""
        if not isinstance(value, str):
            return value
        match = re.fullmatch(r"([1-9][0-9]{0,4})(?:x([1-9][0-9]{0,4}))?", value)
        if match is None:
            self.fail(f"{value!r:.60} is not a size; give 28, or HEIGHTxWIDTH such as 28x32", param, ctx)
        return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


class Range(Value[tuple[float, float]]):
    """``BLACK..WHITE``, such as ``0..1``."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """(black, white), both finite and black the lower; anything else is refused."""
        if not isinstance(value, str):
            return value
        ends = re.split(r"\.\.|,", value)
        if len(ends) != 2 or not all(_NUMBER.fullmatch(end.strip()) for end in ends):
            self.fail(
                f"{value!r:.60} is not a range; give BLACK..WHITE such as 0..1, -1..1 or 0..255", param, ctx
            )
        low, high = (float(end) for end in ends)
        if not (math.isfinite(high - low) and low < high):
            self.fail(f"{value!r:.60} must be finite, the lower first; give such as 0..1", param, ctx)
        return low, high
