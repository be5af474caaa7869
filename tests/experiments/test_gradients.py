"""What experiments may look at: votes and gradients of published images, and of no others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_runs import small_config, small_data

from datalens.data.shapes import draw_shapes
from datalens.errors import ConfigError, NotPrivateError
from datalens.experiments.gradients import Scene, recorded_tallies, teacher_gradients
from datalens.teachers.families import TeacherKind
from datalens.training.session import Session

IMAGES = draw_shapes(120, image_size=8)
SCENE = Scene(num_teachers=8, shard_size=12, num_images=4)


@pytest.mark.parametrize("kind", list(TeacherKind))
def test_gradients_of_every_kind_repeat(kind):
    first, again = (teacher_gradients(IMAGES, kind, SCENE) for _ in range(2))
    assert first.shape == (8, 4, 64) and first.dtype == np.float64
    assert (first == again).all() and np.abs(first).max() > 0


def test_teachers_have_shards_of_their_own_and_the_seed_decides_which():
    grad_TBD = teacher_gradients(IMAGES, TeacherKind.KERNEL, SCENE)
    assert not np.allclose(grad_TBD[0], grad_TBD[1])
    other = teacher_gradients(IMAGES, TeacherKind.KERNEL, replace(SCENE, seed=1))
    assert not np.allclose(other, grad_TBD)


def test_gradients_shrink_as_the_images_come_closer():
    early, late = (
        teacher_gradients(IMAGES, TeacherKind.KERNEL, replace(SCENE, progress=progress))
        for progress in (0.0, 1.0)
    )
    assert np.square(late).sum() < 0.5 * np.square(early).sum()


def test_recording_changes_nothing_about_the_run():
    config = small_config(privacy__insecure_seed=3)
    images = replace(small_data(), public=True)
    tallies = recorded_tallies(config, images)
    session = Session.begin(config, images, None)
    session.run()
    session.close()
    assert len(tallies) == len(session.records) == len(session.diagnostics)
    for tally_BD, diagnostics in zip(tallies, session.diagnostics, strict=True):
        assert tally_BD.shape == (3, 64)
        assert np.sqrt(np.square(tally_BD / 10).mean()) == pytest.approx(diagnostics.rms_agreement)


def test_peoples_own_images_are_refused():
    private = small_data()
    for call in (
        lambda: recorded_tallies(small_config(), private),
        lambda: teacher_gradients(private, TeacherKind.KERNEL, Scene(2, 3, 2)),
    ):
        with pytest.raises(NotPrivateError, match="published images"):
            call()


def test_what_has_no_meaning_is_refused():
    for call in (
        lambda: Scene(num_teachers=0),
        lambda: Scene(progress=1.5),
        lambda: teacher_gradients(IMAGES, TeacherKind.KERNEL, Scene(num_teachers=100)),
    ):
        with pytest.raises(ConfigError):
            call()
