"""Every kind of source of one's own gives the same records, or says in one line why not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from own_sources import KINDS, NAMES, label_of, make, pictures
from small_runs import small_config

from datalens import DataLens
from datalens.data import available_splits, check, load
from datalens.errors import ConfigError


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source_gives_the_same_records(tmp_path: Path, kind: str) -> None:
    data = load(make(kind, tmp_path))
    wanted = {picture.tobytes(): NAMES[label_of(number)] for number, picture in enumerate(pictures())}
    found = {
        image.tobytes(): data.classes[label] for image, label in zip(data.images, data.labels, strict=True)
    }
    assert found == wanted
    assert (data.classes, data.classes_from_data, data.public) == (NAMES, True, False)
    assert (data.positions, data.num_listed, data.notes) == (None, 6, ())


@pytest.mark.parametrize("kind", KINDS)
def test_declared_classes_are_matched_by_name_and_public(tmp_path: Path, kind: str) -> None:
    data = load(make(kind, tmp_path), classes=["fish", "dog", "cat"])
    assert (data.classes, data.classes_from_data) == (("fish", "dog", "cat"), False)
    assert sorted(data.labels.tolist()) == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_found_classes_are_published_only_when_declared_public(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path)
    config = small_config(
        privacy__num_records=10, voting__num_teachers=2, voting__num_steps=1, voting__top_k=1
    )
    with pytest.raises(ConfigError, match=r"class list was found in the records.*--labels-are-public"):
        DataLens(config).fit(load(source), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    declared = config.replace(privacy__labels_are_public=True)
    DataLens(declared).fit(load(source), out=tmp_path / "run")
    DataLens(config).fit(load(source, classes=NAMES), out=tmp_path / "named")
    for run in ("run", "named"):
        assert (tmp_path / run / "release" / "certificate.json").is_file()
    experiment = config.replace(privacy__insecure_seed=0)
    assert DataLens(experiment).fit(load(source)).classes == NAMES


@pytest.mark.parametrize("kind", KINDS)
def test_splits_and_checks(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path)
    assert available_splits(source) == ("train",)
    found = check(source)
    assert len(found) == (1 if kind == "npz" else 6)
    assert {str(file.status) for file in found} == {"ok"}


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_other_kinds_are_refused(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path)
    with pytest.raises(ConfigError, match="has no use for it"):
        load(source, background="red") if kind == "npz" else load(source, layout="NCHW")
    if kind == "folder":
        with pytest.raises(ConfigError, match=r"--group-column person: .* has no columns"):
            load(source, group_column="person")


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_and_kinds_are_changed_on_request(tmp_path: Path, kind: str) -> None:
    source = make(kind, tmp_path)
    assert load(source, image_size=16).image_shape == (1, 16, 16)
    if kind != "npz":
        grey, colour = load(source), load(source, channels=3)
        np.testing.assert_array_equal(colour.images, np.repeat(grey.images, 3, axis=1))
