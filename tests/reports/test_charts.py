"""Charts: well-formed, in place, escaped."""

from __future__ import annotations

import re

import pytest
from html_pages import Page
from hypothesis import given, settings
from hypothesis import strategies as st

from datalens.reports.charts import HEIGHT, WIDTH, Line, belief_chart, line_chart

NUMBERS = st.floats(1e-6, 1e6)


@settings(deadline=None)  # a busy machine is no error
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=9), NUMBERS, st.booleans())
def test_everything_is_drawn_inside(points: list[tuple[float, float]], ceiling: float, stepped: bool) -> None:
    line = Line(tuple(sorted(points)), stepped=stepped, label="so")
    chart = str(line_chart([line], title="t", x_label="x", y_label="y", ceiling=ceiling))
    assert Page(chart).problems == []
    for path in re.findall(r' d="([^"]+)"', chart):
        for word, first, second in re.findall(r"([MLHV])([\d.e+-]+)(?: ([\d.e+-]+))?", path):
            across = None if word == "V" else float(first)
            down = float(first) if word == "V" else float(second) if second else None
            assert across is None or 0 <= across <= WIDTH
            assert down is None or 0 <= down <= HEIGHT


def test_a_larger_value_stands_higher() -> None:
    chart = str(line_chart([Line(((0, 0), (1, 1), (2, 2)))], title="t", x_label="x", y_label="y"))
    (path,) = re.findall(r'class="line main" d="([^"]+)"', chart)
    heights = [float(down) for _, down in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]
    assert heights == sorted(heights, reverse=True) and len(set(heights)) == 3


def test_words_are_escaped() -> None:
    chart = str(line_chart([Line(((0, 1),), label="<b>")], title='"<i>', x_label="<x>", y_label="&"))
    page = Page(chart)
    assert {tag for tag, _ in page.tags} == {"svg", "path", "text", "circle"}
    assert page.of("svg")[0]["aria-label"] == '"<i>'
    assert "<b>" in page.text and "<x>" in page.text


@pytest.mark.parametrize(("percent", "width"), [(50.0, 18.0), (75.0, 319.0), (100.0, 638.0)])
def test_belief_fills_the_bar_as_far_as_it_goes(percent: float, width: float) -> None:
    _, fill = Page(str(belief_chart(percent, title="t"))).of("rect")
    assert float(fill["width"] or 0) == width
