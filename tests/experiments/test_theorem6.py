"""The experiment on Theorem 6: complete rows, and the answers that its documents state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from datalens.data.shapes import draw_shapes
from datalens.errors import ConfigError, NotPrivateError
from datalens.experiments.gradients import Scene
from datalens.experiments.theorem6 import CLIPS, theorem6
from datalens.theory.quantiser import Quantiser
from datalens.theory.theorem6 import Reading

IMAGES = draw_shapes(200, image_size=8)
SCENE = Scene(num_teachers=10, shard_size=12, num_images=4)


def favoured(result, source, clip, quantiser=Quantiser.BERNOULLI):
    return {
        row.reading: row.favoured_k
        for row in result.rows
        if (row.source, row.clip_bound, row.quantiser) == (source, clip, quantiser)
    }


def test_synthetic_gradients_alone_need_no_files():
    result = theorem6()
    assert len(result.rows) == 3 * len(CLIPS) * len(Reading) * len(Quantiser)
    assert {row.dim for row in result.rows} == {784}
    assert result.tails == ()


def test_at_the_papers_clip_every_reading_favours_one_and_none_says_anything():
    rows = [row for row in theorem6().rows if row.clip_bound == 1e-5]
    assert {row.favoured_k for row in rows} == {1}
    assert {row.says_something for row in rows} == {False}
    assert all(row.left_factor == pytest.approx(1e-5 / 786) for row in rows)


def test_with_a_clip_of_one_the_readings_part():
    found = favoured(theorem6(), "Weibull, shape 0.5, scale 0.1", 1.0)
    assert found[Reading.PRINTED] == found[Reading.INDEPENDENT] == 1
    assert 500 < found[Reading.CORRECTED] < 784


def test_gradients_of_published_images_join_the_table():
    result = theorem6(IMAGES, scene=SCENE)
    measured = {row.source for row in result.rows if "shapes" in row.source}
    assert len(measured) == 8 and len(result.tails) == 4
    assert sum("fitted tail" in source for source in measured) == 4
    assert {row.dim for row in result.rows} == {64}
    assert all(shape > 0 and scale > 0 for _, shape, scale in result.tails)


def test_curves_show_each_reading_with_and_without_quantisation_at_its_favoured_k():
    result = theorem6(IMAGES, scene=SCENE)
    assert len(result.curves) == 2 * len(Reading)
    source = result.curves_title.rsplit(", clip", 1)[0]
    for curve in result.curves:
        reading, quantised = curve.label.rsplit(", ", 1)
        kind = Quantiser.BERNOULLI if quantised == "quantised" else Quantiser.NONE
        lowest = curve.x[curve.y.index(min(curve.y))]
        assert lowest == favoured(result, source, 1.0, kind)[reading]


def test_impossible_requests_are_refused():
    with pytest.raises(ConfigError, match="at least one clip"):
        theorem6(clips=())
    with pytest.raises(ConfigError, match="no probability"):
        theorem6(clips=(2.0,))
    with pytest.raises(NotPrivateError):
        theorem6(replace(IMAGES, public=False))
