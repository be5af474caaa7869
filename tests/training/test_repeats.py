"""Several records of one person: exact repeats are pointed out to the owner, declared groups kept together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_runs import small_config, small_data

from datalens import DataLens
from datalens.data.images import LabelledImages
from datalens.errors import ConfigError
from datalens.training.repeats import note_of_repeats


def _repeated() -> LabelledImages:
    """Sixty records, of which one stands there five times and another twice."""
    data = small_data()
    images = data.images.copy()
    images[[10, 20, 30, 40]] = images[0]
    images[50] = images[1]
    return replace(data, images=images)


def test_r51_repeated_records_are_pointed_out_to_the_owner_with_counts_and_remedy(tmp_path: Path) -> None:
    """Records repeated before training (to balance classes, say) reach several teachers."""
    model = DataLens(small_config()).fit(_repeated(), out=tmp_path / "run")
    [note] = [note for note in model.notes if "repeat another" in note]
    assert "5 of 60 images" in note
    assert "2 different ones, the most frequent 5 times" in note
    assert "--group-size 5" in note
    assert "teachers" not in note  # the same line is said by methods that have none
    assert "\n" not in note
    shared = b"".join(path.read_bytes() for path in (tmp_path / "run" / "release").iterdir())
    assert b"repeat another" not in shared  # it counts records, so it is nobody else's business


def test_r51_no_word_where_nothing_repeats_or_the_group_size_covers_it() -> None:
    assert DataLens(small_config()).fit(small_data()).notes == ()
    covered = small_config(privacy__group_size=5, privacy__epsilon=20.0)
    assert DataLens(covered).fit(_repeated()).notes == ()


def test_r51_copies_in_two_teachers_cost_what_two_records_cost() -> None:
    alone = DataLens(small_config(voting__noise_stddev=40.0, privacy__epsilon=50.0)).fit(small_data())
    twice = small_config(voting__noise_stddev=40.0, privacy__epsilon=50.0, privacy__group_size=2)
    [one, two] = [model.ledger.events()[0] for model in (alone, DataLens(twice).fit(small_data()))]
    assert two.mu**2 == pytest.approx(4 * one.mu**2)  # four times the cost in Renyi's terms


def test_r51_declared_groups_are_kept_together_and_need_no_group_size(tmp_path: Path) -> None:
    grouped = replace(_repeated(), group_ids=np.arange(60, dtype=np.int64) // 2)
    with pytest.raises(ConfigError, match=r"--group-size 2.*leave it out") as caught:
        DataLens(small_config(privacy__group_size=2)).fit(grouped, out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_r51_copies_within_a_group_are_no_danger_and_copies_in_several_are_named() -> None:
    alone = replace(_repeated(), group_ids=np.zeros(60, np.int64))
    assert note_of_repeats(alone, 1) is None
    apart = note_of_repeats(replace(_repeated(), group_ids=np.arange(60, dtype=np.int64)), 1)
    assert apart is not None
    assert "several groups" in apart
