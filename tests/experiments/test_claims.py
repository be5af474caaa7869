"""The paper's claims on the clip and on q, as numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from datalens.data.shapes import draw_shapes
from datalens.errors import ConfigError, NotPrivateError
from datalens.experiments.claims import clip_effect, q_growth
from datalens.experiments.gradients import Scene, teacher_gradients
from datalens.teachers.families import TeacherKind

IMAGES = draw_shapes(200, image_size=8)
SCENE = Scene(num_teachers=10, shard_size=12, num_images=4)


def test_a_smaller_clip_saturates_more_and_only_makes_signs_certain():
    rows = clip_effect(IMAGES, scene=SCENE)
    assert len(rows) == 3 * 9
    for kind in TeacherKind:
        mine = [row for row in rows if row.teachers == kind]
        assert all(a.saturated >= b.saturated for a, b in pairwise(mine))
        assert all(a.certainty >= b.certainty - 1e-12 for a, b in pairwise(mine))
        assert (mine[0].saturated, mine[0].certainty) == (1.0, 1.0)
        assert mine[-1].clip_bound == math.inf and mine[-1].saturated == 0.0
        assert mine[0].agreement > mine[-1].agreement_by_chance > 0


def test_the_papers_clip_is_a_plain_sign_already_and_smaller_ones_change_nothing():
    rows = clip_effect(IMAGES, kinds=[TeacherKind.KERNEL], clips=(1e-7, 1e-5), scene=SCENE)
    assert rows[0].agreement == rows[1].agreement
    grad_TBD = teacher_gradients(IMAGES, TeacherKind.KERNEL, SCENE)
    top_k = round(64 * 200 / 784)
    tally_BD = np.zeros(grad_TBD.shape[1:])
    for grad_BD in grad_TBD:
        for image, grad in enumerate(grad_BD):
            kept = np.argsort(-abs(grad.astype(np.float32)), kind="stable")[:top_k]
            tally_BD[image, kept] += np.sign(grad[kept])
    assert rows[0].agreement == pytest.approx(np.sqrt(np.square(tally_BD / 10).mean()), rel=1e-6)


def test_no_clip_leaves_votes_to_chance():
    clipped, free = clip_effect(IMAGES, kinds=[TeacherKind.KERNEL], clips=(1e-5, math.inf), scene=SCENE)
    assert free.certainty < 0.95 < clipped.certainty
    assert free.agreement < clipped.agreement


def test_clip_effect_refuses_private_images_and_clips_of_zero():
    with pytest.raises(NotPrivateError):
        clip_effect(replace(IMAGES, public=False))
    with pytest.raises(ConfigError, match="above 0"):
        clip_effect(IMAGES, clips=(0.0,))


def test_q_grows_with_the_dimension_in_proportion():
    """The paper's claim holds: each coordinate multiplies the chance of the likeliest outcome."""
    for case in ("silent", "unanimous on all"):
        rows = [row for row in q_growth(noise_shares=(1.25,)) if row.case == case]
        assert all(a.log_hit > b.log_hit and a.q <= b.q for a, b in pairwise(rows))
        assert [row.log_hit / row.dim for row in rows] == pytest.approx([rows[0].log_hit] * len(rows))


def test_at_the_papers_noise_one_coordinate_is_enough_to_gain_nothing():
    """So it is the noise, not the dimension, that takes the gain away."""
    rows = q_growth(noise_shares=(1.25,))
    assert not any(row.gains for row in rows)
    single = next(row for row in rows if row.dim == 1 and row.case == "unanimous on k")
    assert single.q == pytest.approx(0.4052, abs=1e-4)


def test_with_a_twenty_fifth_of_the_noise_even_many_coordinates_gain():
    rows = q_growth((784, 12288), noise_shares=(0.05,))
    assert all(row.gains and row.q < 1e-4 for row in rows)
    assert all(row.dependent_epsilon < row.independent_epsilon for row in rows)
