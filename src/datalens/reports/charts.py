"""Small charts as SVG inside a page: no library, and colours from the page's own style, dark or light.

Each has a title for whoever does not see it, and says in words what it shows; numbers stand in the page beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH, HEIGHT = 640, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 22, 38, 60
_TICKS = 4


@dataclass(frozen=True)
class Line:
    """A curve.

    Attributes:
        points: (x, y), finite, in the order of x.
        kind: ``main`` or ``second``: its colour and dashes.
        label: written above, beside a piece of the line.
        stepped: whether it jumps at each point rather than rising to it.
    """

    points: tuple[tuple[float, float], ...]
    kind: str = "main"
    label: str = ""
    stepped: bool = False


def line_chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_label: str,
    y_label: str,
    ceiling: float | None = None,
    ceiling_label: str = "",
) -> Markup:
    """Curves over a whole number, such as releases, from zero on both axes.

    Args:
        lines: at least one, with at least one point each.
        title: what is seen, for whoever does not see it.
        x_label, y_label: what the axes are.
        ceiling: a level drawn across.
        ceiling_label: what that is.

    >>> str(line_chart([Line(((0, 0), (1, 2)))], title="<b>", x_label="x", y_label="y"))[:50]
    '<svg viewBox="0 0 640 270" role="img" aria-label="'
    """
    from markupsafe import Markup, escape

    x_most = max(x for line in lines for x, _ in line.points) or 1
    y_most = _round_up(max([y for line in lines for _, y in line.points] + [ceiling or 0.0]) or 1.0)

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (WIDTH - _LEFT - _RIGHT) * x / x_most
        up = HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * y / y_most
        return across, up

    parts = [
        Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}" class="chart">').format(
            WIDTH, HEIGHT, title
        )
    ]
    for number in range(_TICKS + 1):
        value = y_most * number / _TICKS
        _, up = place(0, value)
        parts += [
            _rule("grid", _LEFT, up, WIDTH - _RIGHT, up),
            _text(_LEFT - 8, up + 5, f"{value:.4g}", "end"),
        ]
    parts_across = next((count for count in (5, 4, 3, 2) if x_most % count == 0), 1)
    for value in (x_most * number / parts_across for number in range(parts_across + 1)):
        across, down = place(value, 0)
        parts.append(_text(across, down + 24, f"{value:,.0f}", "middle"))
    if ceiling is not None:
        _, up = place(0, ceiling)
        parts += [
            _rule("ceiling", _LEFT, up, WIDTH - _RIGHT, up),
            _text(_LEFT + 8, up + 20, ceiling_label, "start"),
        ]
    for line in lines:
        parts += _curve(line, [place(*point) for point in line.points])
    parts += _legend([line for line in lines if line.label])
    parts += [
        _text((WIDTH + _LEFT - _RIGHT) / 2, HEIGHT - 8, x_label, "middle"),
        _text(_LEFT - 8, 18, y_label, "start"),
        Markup("</svg>"),
    ]
    return Markup("").join(escape(part) for part in parts)


def belief_chart(belief_percent: float, *, title: str) -> Markup:
    """A bar from even odds to certainty, filled as far as an onlooker may come.

    Args:
        belief_percent: from 50 to 100.
        title: the same in words.
    """
    from markupsafe import Markup

    filled = max(0.0, min(1.0, (belief_percent - 50) / 50))
    return Markup(
        '<svg viewBox="0 0 640 62" role="img" aria-label="{}" class="chart">'
        '<rect class="track" x="1" y="8" width="638" height="18" rx="9"/>'
        '<rect class="fill" x="1" y="8" width="{:.1f}" height="18" rx="9"/>'
        '<text x="1" y="52">50%: a coin toss</text>'
        '<text x="639" y="52" text-anchor="end">100%: certain</text></svg>'
    ).format(title, max(18.0, 638 * filled))


def _curve(line: Line, places: list[tuple[float, float]]) -> list[Markup]:
    from markupsafe import Markup

    words = [f"M{places[0][0]:.1f} {places[0][1]:.1f}"]
    for across, up in places[1:]:
        words.append(f"H{across:.1f} V{up:.1f}" if line.stepped else f"L{across:.1f} {up:.1f}")
    parts = [Markup('<path class="line {}" d="{}"/>').format(line.kind, " ".join(words))]
    across, up = places[-1]
    parts.append(
        Markup('<circle class="dot {}" cx="{:.1f}" cy="{:.1f}" r="4"/>').format(line.kind, across, up)
    )
    return parts


def _legend(lines: Sequence[Line]) -> list[Markup]:
    """From the right edge to the left, above the curves."""
    parts, right = [], float(WIDTH - _RIGHT)
    for line in reversed(lines):
        parts += [
            _text(right, 18, line.label, "end"),
            _rule(
                f"line {line.kind}",
                right - 11.5 * len(line.label) - 34,
                13,
                right - 11.5 * len(line.label) - 8,
                13,
            ),
        ]
        right -= 11.5 * len(line.label) + 48
    return parts


def _rule(kind: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    from markupsafe import Markup

    return Markup('<path class="{}" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>').format(kind, x1, y1, x2, y2)


def _text(x: float, y: float, words: str, anchor: str) -> Markup:
    from markupsafe import Markup

    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, words)


def _round_up(value: float) -> float:
    """The least round number, a few parts of a power of ten, that is not below the value."""
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * part for part in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10, 20) if unit * part >= value)
