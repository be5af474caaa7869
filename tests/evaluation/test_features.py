"""The feature classifier: trained on real images, cached by content, the same for every form of image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from datalens.data import load
from datalens.errors import DataError
from datalens.evaluation import features as module
from datalens.evaluation.features import FeatureExtractor, FeatureRecipe, feature_extractor
from datalens.evaluation.fid import feature_statistics, frechet_distance

RECIPE = FeatureRecipe(epochs=4, batch_size=16, least_steps=1)


def _bars(num: int, seed: int, channels: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(num) % 3
    images = rng.integers(0, 90, (num, channels, 8, 8), dtype=np.uint8)
    images[np.arange(num), :, 2 * labels + 1] = 230
    return images, labels


@pytest.fixture(scope="module")
def extractor() -> FeatureExtractor:
    return feature_extractor(*_bars(200, 0), num_classes=3, cache=None, recipe=RECIPE)


def test_it_knows_the_real_images(extractor: FeatureExtractor) -> None:
    images, labels = _bars(90, 1)
    assert extractor.accuracy(images, labels) > 0.95
    found = extractor.extract(images)
    assert found.features.shape == (90, 128)
    assert found.num_images == 90
    assert found.extractor == extractor.digest
    np.testing.assert_allclose(np.exp(found.log_probabilities).sum(axis=1), 1.0)
    assert np.mean(found.log_probabilities.argmax(axis=1) == labels) > 0.95


def test_case_r55_and_r57_every_form_gives_the_same_features(extractor: FeatureExtractor) -> None:
    images, _ = _bars(70, 2)
    expected = extractor.extract(images).features
    unit = images.astype(np.float64) / 255
    for form, declared in (
        (images[:, 0], None),
        (images[:, 0, :, :, None], None),
        (unit, "unit"),
        (unit * 2 - 1, "signed"),
        (images.astype(np.float32), "byte"),
    ):
        assert np.array_equal(extractor.extract(form, declared).features, expected)
    with pytest.raises(DataError, match="undeclared"):
        extractor.extract(unit)


def test_case_r55_grey_is_repeated_for_a_colour_extractor_and_said() -> None:
    colour = feature_extractor(*_bars(60, 0, channels=3), num_classes=3, cache=None, recipe=RECIPE)
    grey, _ = _bars(10, 1)
    found = colour.extract(grey)
    assert found.channel_repeat == 3
    assert np.array_equal(found.features, colour.extract(np.repeat(grey, 3, axis=1)).features)


def test_distance_to_real_images_tells_like_from_unlike(extractor: FeatureExtractor) -> None:
    real = feature_statistics(extractor.extract(_bars(200, 0)[0]).features)
    like = feature_statistics(extractor.extract(_bars(200, 5)[0]).features)
    noise = np.random.default_rng(0).integers(0, 256, (200, 1, 8, 8), dtype=np.uint8)
    unlike = feature_statistics(extractor.extract(noise).features)
    assert frechet_distance(real, like).value < 0.2 * frechet_distance(real, unlike).value


def test_the_cache_is_used_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = _bars(60, 0)
    trained: list[int] = []
    fit = module.fit_classifier

    def counting(*args: object, **kwargs: object) -> object:
        trained.append(1)
        return fit(*args, **kwargs)  # pyright: ignore

    monkeypatch.setattr(module, "fit_classifier", counting)

    def get(**changes: object) -> FeatureExtractor:
        arguments = {"num_classes": 3, "cache": tmp_path / "deep" / "cache", "recipe": RECIPE} | changes
        return feature_extractor(*data, **arguments)

    first, again = get(), get()
    assert len(trained) == 1
    assert first.digest == again.digest
    assert np.array_equal(first.extract(data[0]).features, again.extract(data[0]).features)
    get(recipe=FeatureRecipe(epochs=1, batch_size=16, least_steps=1))
    assert len(trained) == 2
    data = (data[0], data[1][::-1].copy())
    assert get().digest != first.digest
    assert len(trained) == 3


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
def test_a_damaged_cache_file_is_trained_anew(tmp_path: Path, damage: str) -> None:
    data = _bars(30, 0)
    recipe = FeatureRecipe(epochs=1, batch_size=16, least_steps=1)
    first = feature_extractor(*data, num_classes=3, cache=tmp_path, recipe=recipe)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[-10] ^= 0x41
    path.write_bytes({"flip": bytes(content), "truncate": bytes(content[:500]), "empty": b""}[damage])
    assert feature_extractor(*data, num_classes=3, cache=tmp_path, recipe=recipe).digest == first.digest
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_another_shape_is_refused(extractor: FeatureExtractor) -> None:
    with pytest.raises(DataError, match="takes"):
        extractor.extract(np.zeros((2, 1, 9, 9), np.uint8))


def test_the_cache_file_is_for_its_owner_and_whole_or_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            feature_extractor(*_bars(60, 0), num_classes=3, cache=tmp_path, recipe=RECIPE)
    assert list(tmp_path.iterdir()) == []
    feature_extractor(*_bars(60, 0), num_classes=3, cache=tmp_path, recipe=RECIPE)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


def test_few_images_get_enough_steps_to_be_learnt() -> None:
    few = feature_extractor(*_bars(90, 0), num_classes=3, cache=None)
    assert few.accuracy(*_bars(90, 1)) > 0.95


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("name", "wanted"), [("mnist", 0.99), ("fashion-mnist", 0.93)])
def test_the_feature_classifier_knows_the_published_sets(
    name: str, wanted: float, request: pytest.FixtureRequest
) -> None:
    root = request.getfixturevalue(f"{name.replace('-', '_')}_root")
    train, test = (load(name, split=split, root=root) for split in ("train", "test"))
    found = feature_extractor(train.images, train.labels, num_classes=10, cache=None)
    assert found.accuracy(test.images, test.labels) >= wanted
