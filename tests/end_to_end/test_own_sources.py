"""From a source of one's own to a release: places that stay empty, trainings that would learn nothing, refusals."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from own_sources import KINDS, make, pictures, png, write_csv, write_files
from PIL import Image
from small_runs import small_config, stop_after, weights

from datalens import DataLens
from datalens.cli.main import main
from datalens.data import LabelledImages, from_dataset, load
from datalens.data.arrays import labelled_images
from datalens.errors import ConfigError, DataLensError
from datalens.methods.sampled import lot_of
from datalens.teachers.partition import Partition
from datalens.training.assembly import draw_run

TINY = ("--num-teachers", "2", "--top-k", "1", "--num-steps", "1", "--batch-size", "2", "--epsilon", "90")
TRAIN_WORDS = (*TINY, "--num-records", "20", "--labels-are-public")


def tiny(**changes: Any) -> Any:
    return small_config(
        privacy__num_records=20, voting__num_teachers=2, voting__num_steps=1, voting__top_k=1, **changes
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source_trains_from_the_command_line(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = make(kind, tmp_path)
    assert main(["data", "check", str(source), "--json", "-"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert (checked["splits"][0]["records"], checked["splits"][0]["repeated"]) == (6, 0)
    assert main(["train", str(source), "--out", str(tmp_path / "run"), *TRAIN_WORDS]) == 0
    assert (tmp_path / "run" / "release" / "certificate.json").is_file()


def truncated(tmp_path: Path) -> Path:
    """R61: ten images, one shorter by a byte, one of no bytes, one a text with an image's name."""
    arrays_ = pictures(10)
    for number, array in enumerate(arrays_):
        folder = tmp_path / "people" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        kind = "jpg" if number % 3 == 0 else "png"
        Image.fromarray(array).save(folder / f"{number}.{kind}")
    cut = tmp_path / "people/a/2.png"
    cut.write_bytes(cut.read_bytes()[:-1])
    (tmp_path / "people/b/3.jpg").write_text("this is a text")
    (tmp_path / "people/b/7.png").write_bytes(b"")
    return tmp_path / "people"


def test_r61_cut_off_images_are_found_before_anything_is_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, run = truncated(tmp_path), tmp_path / "run"
    assert main(["train", str(source), "--out", str(run), *TRAIN_WORDS]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "3 of 10 files can't be used" in line
    for name in ("a/2.png (cut off at byte", "b/3.jpg (not an image", "b/7.png (empty)", "--skip-damaged"):
        assert name in line
    assert not run.exists()
    assert main(["data", "check", str(source), "--json", str(tmp_path / "j")]) == 2
    found = json.loads((tmp_path / "j").read_text())["files"]
    assert sorted(file["file"] for file in found if file["status"] == "damaged") == [
        "a/2.png",
        "b/3.jpg",
        "b/7.png",
    ]
    capsys.readouterr()
    assert main(["train", str(source), "--out", str(run), *TRAIN_WORDS, "--skip-damaged"]) == 0
    assert "3 damaged files left out, their places stay empty" in capsys.readouterr().err


def test_all_damaged_files_are_named_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = write_files(tmp_path, pictures(9))
    for name in names:
        (tmp_path / name).write_bytes(b"")
    assert main(["data", "check", str(tmp_path / "scans"), "--json", str(tmp_path / "j")]) == 2
    assert len([file for file in json.loads((tmp_path / "j").read_text())["files"] if file["found"]]) == 9
    capsys.readouterr()
    assert main(["train", str(tmp_path / "scans"), "--out", str(tmp_path / "run"), *TRAIN_WORDS]) == 2
    error = capsys.readouterr().err
    assert "9 of 9 files can't be used" in error
    assert "and 4 more" in error
    assert "scans --json -` names all" in error


def test_r61_a_place_that_stays_empty_moves_no_other_record_and_re_counts_nothing(tmp_path: Path) -> None:
    source = truncated(tmp_path)
    fewer = load(source, skip_damaged=True)
    for number, array in enumerate(pictures(10)):  # mended: the same folder without damage
        kind = "jpg" if number % 3 == 0 else "png"
        Image.fromarray(array).save(source / "ab"[number % 2] / f"{number}.{kind}")
    whole = load(source)
    assert (fewer.num_records, fewer.num_listed, whole.num_listed) == (7, 10, 10)
    counted = tiny(privacy__insecure_seed=0).replace(
        privacy__num_records=None, privacy__record_count_is_public=True
    )
    facts_whole, _, slots_whole, *_ = draw_run(counted, whole, signal_matters=False)
    facts_fewer, _, slots_fewer, *_ = draw_run(counted, fewer, signal_matters=False)
    assert facts_whole.num_records == facts_fewer.num_records == slots_fewer.num_records == 10
    there_whole, there_fewer = (
        held(slots, data) for slots, data in ((slots_whole, whole), (slots_fewer, fewer))
    )
    gone = [place for place in range(10) if there_whole[place] != there_fewer[place]]
    assert len(gone) == 3
    assert all(there_fewer[place] is None for place in gone)


def held(slots: Partition, data: Any) -> list[bytes | None]:
    """What lies in each slot."""
    found: list[bytes | None] = [None] * slots.num_records
    for record, slot in enumerate(slots.slot_of_record.tolist()):
        found[slot] = data.images[record].tobytes() + bytes([data.labels[record]])
    return found


def test_more_listed_than_declared_is_refused(tmp_path: Path) -> None:
    data = load(truncated(tmp_path), skip_damaged=True, classes=["a", "b"])
    with pytest.raises(DataLensError, match=r"--num-records 9 .*: the data hold 10"):
        DataLens(tiny().replace(privacy__num_records=9)).fit(data)
    assert DataLens(tiny().replace(privacy__num_records=10)).fit(data).classes == ("a", "b")


def test_lots_of_sampled_records_do_not_shift_where_a_place_is_empty(tmp_path: Path) -> None:
    """A drawn slot holds the same record or, where that was left out, none: coins belong to slots."""
    source = truncated(tmp_path)
    data = load(source, skip_damaged=True)
    assert data.positions is not None
    slots = Partition.draw(
        num_records=10, num_teachers=1, num_present=7, positions=data.positions, rng=np.random.default_rng(0)
    )
    lot = lot_of(slots, np.arange(10), data, torch.device("cpu"))
    everywhere = np.random.default_rng(0).permutation(10)
    for place, slot in enumerate(everywhere):
        assert bool(lot.present_R[slot]) == (place in data.positions)
        if place in data.positions:
            record = data.positions.tolist().index(place)
            wanted = torch.from_numpy(data.images[record]).float() / 255
            torch.testing.assert_close(lot.images_RCHW[slot], wanted, rtol=0, atol=0)


def short_of_a_batch() -> LabelledImages:
    """Three records for each of ten teachers."""
    return labelled_images(np.stack(pictures(30)), np.arange(30) % 2, classes=2)


def test_r39_shards_smaller_than_a_batch_still_move_the_generator() -> None:
    """Batches of thirty: nothing is dropped for being short."""
    settings_ = {"privacy__num_records": 30, "privacy__epsilon": 90.0, "privacy__insecure_seed": 0}
    config = small_config(**settings_, voting__batch_size=30, voting__num_steps=2, voting__top_k=3)
    after = [weights(DataLens(config).fit(short_of_a_batch(), stop=stop_after(steps))) for steps in (1, 2)]
    names = [name for name in after[0] if name.endswith("weight")]
    assert any(not np.array_equal(after[0][name], after[1][name]) for name in names)
    model = DataLens(config).fit(short_of_a_batch())
    assert model.notes == ()
    assert sum(event.count for event in model.ledger.events()) == 2


@pytest.mark.parametrize("threshold", [50.0, 1e9])
def test_r39_a_threshold_that_nothing_can_pass_is_refused(threshold: float) -> None:
    config = small_config(privacy__epsilon=20.0, privacy__num_records=30, voting__vote_threshold=threshold)
    with pytest.raises(ConfigError, match=r"leaves no signal .* use a vote_threshold below"):
        DataLens(config).fit(short_of_a_batch())


def test_r39_a_training_whose_releases_are_all_zero_says_so() -> None:
    """A threshold that a vote could pass, and none did: charged, and no success."""
    zero = {
        "voting__vote_threshold": 1.3,
        "voting__noise_stddev": 2.0,
        "voting__num_steps": 1,
        "voting__top_k": 1,
    }
    config = small_config(privacy__epsilon=20.0, privacy__num_records=30, privacy__insecure_seed=1, **zero)
    notes = DataLens(config).fit(short_of_a_batch()).notes
    assert [note for note in notes if note.startswith("no update was applied: all 1 directions")]


@pytest.mark.parametrize(("name", "value"), [("voting__num_steps", 0), ("voting__batch_size", 0)])
def test_r39_a_training_of_no_steps_is_refused(name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=name.partition("__")[2]):
        small_config(**{name: value})


IMAGE_DTYPES = st.sampled_from([np.uint8, np.bool_, np.float32, np.float64, np.int16, np.uint16])
SIDES = st.sampled_from([1, 7, 8, 12, 16, 20])
LABEL_KINDS = st.sampled_from(
    ["numbers", "gaps", "from one", "negative", "float", "half", "words", "one-hot", "one class", "many"]
)


def labels_of(kind: str, count: int) -> Any:
    """Labels of every kind that people have."""
    numbers = np.arange(count)
    return {
        "numbers": numbers % 3,
        "gaps": np.array([0, 5, 9])[numbers % 3],
        "from one": numbers % 3 + 1,
        "negative": numbers % 3 - 1,
        "float": (numbers % 3).astype(float),
        "half": numbers / 2,
        "words": np.array(["ill", "well", "Größe"])[numbers % 3],
        "one-hot": np.eye(3)[numbers % 3],
        "one class": np.zeros(count, int),
        "many": numbers,
    }[kind]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["npz", "folder", "csv", "dataset"]),
    IMAGE_DTYPES,
    SIDES,
    SIDES,
    st.sampled_from([(), (1,), (3,), (4,)]),
    LABEL_KINDS,
    st.sampled_from([None, (0, 1), (0, 255), (0, 65535)]),
    st.sampled_from([None, 8, 12, 16]),
    st.data(),
)
def test_every_input_trains_or_is_refused_in_one_clear_line(
    kind: str,
    dtype: Any,
    height: int,
    width: int,
    last: tuple[int, ...],
    label_kind: str,
    value_range: Any,
    image_size: int | None,
    data: st.DataObject,
) -> None:
    count = data.draw(st.integers(1, 6))
    elements = st.integers(0, 1) if dtype != np.uint8 else None
    images = data.draw(arrays.arrays(dtype, (count, height, width, *last), elements=elements))
    labels = labels_of(label_kind, count)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            read = _read(Path(scratch), kind, images, labels, value_range, image_size)
            model = DataLens(tiny().replace(privacy__labels_are_public=True)).fit(read)
        except DataLensError as error:
            said = str(error)
            assert said.isprintable(), said
            assert 10 < len(said) < 1000
            return
    drawn, _ = model.sample(2)
    assert drawn.shape[1:] == read.image_shape
    assert model.classes == read.classes


def _read(
    place: Path, kind: str, images: np.ndarray, labels: Any, value_range: Any, image_size: int | None
) -> Any:
    if kind == "npz":
        np.savez(place / "own.npz", x=images, y=labels)
        return load(place / "own.npz", value_range=value_range, image_size=image_size)
    if kind == "dataset":
        pairs = list(zip(images, labels, strict=True))
        return from_dataset(pairs, value_range=value_range, image_size=image_size)
    plain = labels.argmax(1) if np.ndim(labels) == 2 else labels
    files = []
    for number, image in enumerate(images):
        file = place / "people" / (str(plain[number]) if kind == "folder" else "") / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_png(image))
        files.append([str(file.relative_to(place)), plain[number]])
    if kind == "folder":
        return load(place / "people", image_size=image_size)
    return load(write_csv(place / "t.csv", ["path", "label"], files), image_size=image_size)


def _png(image: np.ndarray) -> bytes:
    """Grey, deep grey, colour or see-through, as Pillow can write it."""
    if image.dtype == np.uint16 and image.ndim == 2:
        return png(image)
    byte = image if image.dtype == np.bool_ and image.ndim == 2 else image.astype(np.uint8)
    return png(byte[..., 0] if byte.ndim == 3 and byte.shape[2] == 1 else byte)
