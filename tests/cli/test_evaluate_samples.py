"""``datalens evaluate`` on files of samples and with every measure: the same images give the same numbers."""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from datalens.data import load
from datalens.data.names import SHAPE_CLASSES
from datalens.evaluation import features
from datalens.models.inception import InceptionKind, InceptionV3

FAST = ("--classifier", "logistic", "--epochs", 2)
SCORES = ("--metrics", "is,fid,kid")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few drawn shapes as somebody's own data, with both splits."""
    path = tmp_path_factory.mktemp("real") / "real.npz"
    train, test = load("shapes", split="train"), load("shapes", split="test")
    names = np.array(train.classes)
    np.savez(
        path,
        x_train=train.images[:160],
        y_train=names[train.labels[:160]],
        x_test=test.images[:80],
        y_test=names[test.labels[:80]],
    )
    return path


@pytest.fixture(autouse=True)
def _quick_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """A feature classifier of a second, whose numbers mean little and differ as much as others."""
    recipe = functools.partial(features.FeatureRecipe, epochs=8, batch_size=32, least_steps=40)
    monkeypatch.setattr(features, "FeatureRecipe", recipe)


@pytest.fixture(scope="module")
def samples() -> tuple[np.ndarray, np.ndarray]:
    shapes = load("shapes", split="train")
    return shapes.images[500:700], shapes.labels[500:700]


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture
def report(call, real, tmp_path):
    """``report(SAMPLES, words...)``: the JSON answer of a measurement that must succeed."""

    def measure(samples: object, *words: object, public: bool = True) -> dict:
        flags = ["--classes", ",".join(SHAPE_CLASSES), *(["--public-data"] if public else [])]
        target = tmp_path / "answer.json"
        answer = call("evaluate", samples, "--data", real, *flags, *words, "--json", target)
        assert answer.status == 0, answer.err
        text = target.read_text()
        assert "NaN" not in text
        assert "Infinity" not in text
        return json.loads(text)

    return measure


def saved(path: Path, images: np.ndarray, labels: np.ndarray) -> Path:
    np.savez(path, x=images, y=labels)
    return path


def folder_of(path: Path, images: np.ndarray, labels: np.ndarray, suffix: str) -> Path:
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        place = path / SHAPE_CLASSES[label]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[0]).save(place / f"{number}{suffix}")
    return path


def test_case_r69_a_run_in_memory_its_png_files_and_its_npz_give_the_same_numbers(
    call, run, report, tmp_path
) -> None:
    words = (*SCORES, "--num-samples", 200)
    memory = report(run, *words)
    for out in (tmp_path / "samples.npz", tmp_path / "samples"):
        assert call("sample", run, "-n", 200, "--seed", 0, "--out", out).status == 0
        found = report(out, *words)
        assert found["features"] == memory["features"]
        assert found["samples"]["resize"] == found["features"]["resize"] == "none"
        assert found["samples"]["jpeg_files"] == 0
    assert memory["features"]["synthetic"]["fid"]["num_generated"] == 200


def test_case_r69_the_order_of_the_images_changes_no_accuracy(report, samples, tmp_path) -> None:
    images, labels = samples
    one = report(saved(tmp_path / "one.npz", images, labels), *FAST)
    other = report(saved(tmp_path / "other.npz", images[::-1], labels[::-1]), *FAST)
    assert (
        one["utility"]["logistic"]["accuracy_by_epoch"] == other["utility"]["logistic"]["accuracy_by_epoch"]
    )


def test_case_r69_jpeg_samples_are_warned_of(call, real, samples, tmp_path) -> None:
    images, labels = samples
    folder = folder_of(tmp_path / "jpeg", images[:40], labels[:40], ".jpg")
    answer = call("evaluate", folder, "--data", real, *FAST, "--json", "-")
    assert answer.status == 0
    assert "40 samples are JPEG" in answer.err
    assert json.loads(answer.out)["samples"]["jpeg_files"] == 40


def test_case_r69_another_size_is_refused_or_scaled_and_recorded(
    call, real, report, samples, tmp_path
) -> None:
    images, labels = samples
    large = saved(tmp_path / "large.npz", np.repeat(np.repeat(images, 2, axis=2), 2, axis=3), labels)
    assert (
        "give samples of that size, or --resize-samples"
        in call("evaluate", large, "--data", real, *FAST).complaint
    )
    found = report(large, *FAST, "--resize-samples")
    assert found["samples"]["resize"] == "Lanczos, each sample by itself, 32x32 to 16x16"


def test_case_r55_three_layouts_of_grey_images_give_the_same_scores(report, samples, tmp_path) -> None:
    images, labels = samples[0][:100], samples[1][:100]
    found = [
        report(saved(tmp_path / "form.npz", form, labels), *SCORES)
        for form in (images, images[:, 0], images[:, 0, :, :, None])
    ]
    assert found[0] == found[1] == found[2]
    assert found[0]["features"]["channel_repeat"] == 1


def test_case_r55_grey_samples_for_colour_data_are_repeated_and_it_is_said(call, samples, tmp_path) -> None:
    images, labels = samples
    colour = np.repeat(images, 3, axis=1)
    real = tmp_path / "colour.npz"
    np.savez(real, x_train=colour[:120], y_train=labels[:120], x_test=colour[120:], y_test=labels[120:])
    found = []
    for form in (images, colour):
        file = saved(tmp_path / "form.npz", form, labels)
        answer = call("evaluate", file, "--data", real, "--public-data", *SCORES, "--json", "-")
        found.append(json.loads(answer.out)["features"])
    assert [each.pop("channel_repeat") for each in found] == [3, 1]
    assert found[0] == found[1]
    real_grey = saved(tmp_path / "grey.npz", images, labels)
    file = saved(tmp_path / "form.npz", colour, labels)
    assert (
        "make the samples grey" in call("evaluate", file, "--data", real_grey, "--metrics", "fid").complaint
    )


def test_case_r57_declared_ranges_give_the_same_scores_and_undeclared_ones_are_refused(
    call, real, report, samples, tmp_path
) -> None:
    images, labels = samples[0][:64], samples[1][:64]
    unit = images / 255.0
    expected = report(saved(tmp_path / "form.npz", images, labels), *SCORES)
    for form, declared in ((unit, "0..1"), (unit * 2 - 1, "-1..1"), (images.astype(np.float32), "0..255")):
        file = saved(tmp_path / "form.npz", form, labels)
        assert report(file, *SCORES, "--samples-range", declared) == expected
        assert "--samples-range" in call("evaluate", file, "--data", real, *SCORES).complaint
    ink = images > 127
    inked = report(saved(tmp_path / "form.npz", ink, labels), *SCORES)
    assert inked == report(saved(tmp_path / "form.npz", ink.astype(np.uint8) * 255, labels), *SCORES)
    mixed = saved(tmp_path / "mixed.npz", np.concatenate([unit, images]), np.concatenate([labels, labels]))
    words = ("--data", real, *SCORES, "--samples-range", "0..1")
    assert "outside the declared range" in call("evaluate", mixed, *words).complaint


@pytest.mark.parametrize("num", [1, 5])
def test_case_r66_few_samples_give_a_score_of_at_least_one(call, real, samples, tmp_path, num: int) -> None:
    file = saved(tmp_path / "few.npz", samples[0][:num], samples[1][:num])
    answer = call("evaluate", file, "--data", real, "--public-data", "--metrics", "is,fid", "--json", "-")
    assert f"{num} images cannot fill 10 splits" in answer.err
    assert f"FID from {num} images with 128 feature dimensions is biased" in answer.err
    scores = json.loads(answer.out)["features"]["synthetic"]
    assert scores["inception_score"]["mean"] >= 1
    assert scores["fid"]["value"] >= 0
    assert scores["fid"]["biased"] is True


def test_case_r66_constant_images_have_score_one(report, samples, tmp_path) -> None:
    file = saved(tmp_path / "flat.npz", np.full_like(samples[0], 7), samples[1])
    scores = report(file, *SCORES)["features"]["synthetic"]
    assert scores["inception_score"]["mean"] == pytest.approx(1.0)


def test_case_r71_exactly_the_samples_asked_for_are_used(call, real, run, report, samples, tmp_path) -> None:
    assert report(run, *FAST, "-n", 1234)["utility"]["logistic"]["num_train"] == 1234
    file = saved(tmp_path / "samples.npz", *samples)
    assert report(file, *FAST)["utility"]["logistic"]["num_train"] == 200
    for num in (1, 31):
        found = report(file, *FAST, "-n", num)
        assert found["utility"]["logistic"]["num_train"] == found["samples"]["num_samples"] == num
        assert found["samples"]["chosen_from"] == 200
    words = ("evaluate", file, "--data", real, *FAST, "-n")
    assert "--num-samples: 0 is too small" in call(*words, 0).complaint
    assert "holds 200 samples, fewer than --num-samples 201" in call(*words, 201).complaint


def test_case_r73_kid_of_few_samples_reduces_its_subsets_with_notice(call, real, run) -> None:
    words = ("--data", real, "--public-data", "--metrics", "kid", "-n", 876, "--json", "-")
    answer = call("evaluate", run, *words)
    assert "cannot fill a KID subset of 1000; subset_size is reduced to 160" in answer.err
    assert json.loads(answer.out)["features"]["synthetic"]["kid"]["subset_size"] == 160


def test_several_classifiers_and_measures_in_one_answer(report, samples, tmp_path) -> None:
    file = saved(tmp_path / "samples.npz", *samples)
    found = report(file, "--metrics", "utility,is", "--classifier", "cnn,mlp,logistic", "--epochs", 3)
    assert list(found["utility"]) == ["cnn", "mlp", "logistic"]
    assert {each["epochs"] for each in found["utility"].values()} == {3}
    assert set(found["features"]["synthetic"]) == {"num_images", "inception_score"}
    assert found["features"]["real_test"]["num_images"] == 80
    assert 0 < found["features"]["accuracy_on_real_test"] <= 1


def test_real_images_by_name_are_samples_too(call) -> None:
    answer = call("evaluate", "shapes", "--data", "shapes", *FAST, "-n", 300)
    assert "trained on 300 real images, tested on 1000 real ones" in answer.out


def test_scores_on_peoples_data_stay_private(call, run, real, report) -> None:
    before = sorted(str(path) for path in (run / "release").rglob("*"))
    answer = call("evaluate", run, "--data", real, "--metrics", "fid,copies", "-n", 50)
    assert answer.status == 0, answer.err
    assert "in the kept file alone" in answer.out
    assert "nearer" not in answer.out
    told = report(run, "--metrics", "fid,copies", "-n", 50, public=False)
    assert "copies" not in told
    kept = json.loads(Path(told["kept_in"]).read_text())
    assert kept["copies"]["num_samples"] == 50
    assert Path(told["kept_in"]).parent == run / "private" / "scores"
    (classifier,) = (run / "private" / "features").iterdir()
    assert classifier.stat().st_mode & 0o777 == 0o600
    assert classifier.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(str(path) for path in (run / "release").rglob("*")) == before


def test_outside_of_a_run_nothing_of_peoples_data_is_kept(
    call, real, samples, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = saved(tmp_path / "samples.npz", *samples)
    before = sorted(tmp_path.rglob("*"))
    answer = call("evaluate", file, "--data", real, "--metrics", "fid")
    assert "not to be published" in answer.out
    assert sorted(tmp_path.rglob("*")) == before
    assert (
        "kept in a run's private/" in call("evaluate", file, "--data", real, "--metrics", "copies").complaint
    )
    public = call("evaluate", file, "--data", real, "--metrics", "fid,copies", "--public-data")
    assert "samples equal a training image" in public.out
    assert len(list((tmp_path / "cache" / "datalens" / "features").iterdir())) == 1


def test_no_score_goes_into_any_runs_release(call, real, run, samples, tmp_path) -> None:
    file = saved(tmp_path / "samples.npz", *samples)
    words = ("evaluate", file, "--data", real, *FAST, "--json", run / "release" / "score.json")
    assert "not go under release/" in call(*words).complaint


def test_inception_weights_from_a_file(call, real, samples, tmp_path) -> None:
    rng = torch.Generator().manual_seed(0)
    state = InceptionV3(InceptionKind.TENSORFLOW).state_dict()
    for tensor in state.values():
        if tensor.ndim > 1:
            tensor.normal_(0, (2 / tensor[0].numel()) ** 0.5, generator=rng)
    state["fc.bias"].zero_()
    torch.save(state, tmp_path / "weights.pth")
    few = tmp_path / "few.npz"
    with np.load(real, allow_pickle=False) as whole:
        np.savez(few, x=whole["x_train"][:3], y=np.arange(3))  # its own classes: 0, 1, 2
    file = saved(tmp_path / "samples.npz", samples[0][:2], np.array([0, 1]))
    words = ("evaluate", file, "--data", few, "--metrics", "is,fid", "--json", "-")
    answer = call(*words, "--inception", tmp_path / "weights.pth", "--inception-layer", 64)
    assert answer.status == 0, answer.err
    features = json.loads(answer.out)["features"]
    assert features["network"] == "inception-v3 (tensorflow-2015, 64 features)"
    assert (features["channel_repeat"], features["synthetic"]["fid"]["dimensions"]) == (3, 64)
    assert "299x299" in features["resize"]
    assert features["real_test"] is None
    missing = call(*words, "--inception", tmp_path / "none.pth")
    assert "get torch-fidelity's weights-inception-2015-12-05-6726825d.pth" in missing.complaint


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--metrics", "fid,beauty"], "'beauty' is unknown; known: utility, is, fid, kid, copies"),
        (["--classifier", "cnn,cnn"], "names one twice"),
        (["--charge"], "--charge: is for runs"),
        (["--inception", "auto"], "--inception: is for is, fid and kid"),
        (["--metrics", "fid", "--inception-layer", "64"], "give --inception"),
        (["--metrics", "fid", "--charge"], "give --metrics utility and one --classifier"),
    ],
)
def test_options_that_do_not_fit(call, real, samples, tmp_path, words, said) -> None:
    file = saved(tmp_path / "samples.npz", *samples)
    assert said in call("evaluate", file, "--data", real, *words).complaint


def test_what_is_neither_run_nor_samples_is_said_so(call, real, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    assert "neither a run nor samples" in call("evaluate", tmp_path / "none", "--data", real).complaint
    assert "holds no run" in call("evaluate", tmp_path / "empty", "--data", real).complaint


def test_fid_needs_the_real_training_images(call, run, samples, tmp_path) -> None:
    np.savez(tmp_path / "test.npz", x_test=samples[0], y_test=samples[1])
    words = ("evaluate", run, "--data", tmp_path / "test.npz", "--metrics", "fid")
    assert "need the real training images" in call(*words).complaint


def test_every_form_that_sample_writes_is_scored_alike(call, run, report, tmp_path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra parquet)")
    forms = {"a.npz": "npz", "b.parquet": "table", "c": "saved dataset", "d": "folder", "e": "idx"}
    found = []
    for name, source in forms.items():
        form = ("--format", {"saved dataset": "datasets", "idx": "idx"}[source]) if name in "ce" else ()
        assert call("sample", run, "-n", 40, "--seed", 1, "--out", tmp_path / name, *form).status == 0
        answer = report(tmp_path / name, *FAST)
        assert answer["samples"]["source"] == source and answer["samples"]["jpeg_files"] == 0
        [result] = answer["utility"].values()
        found.append(result | {"seconds": None})
    assert all(utility == found[0] for utility in found)


def test_damaged_idx_samples_are_one_line(call, run, real, tmp_path) -> None:
    assert call("sample", run, "-n", 5, "--out", tmp_path / "e", "--format", "idx").status == 0
    names = ",".join(SHAPE_CLASSES)
    words = ("evaluate", tmp_path / "e", "--data", real, "--public-data", "--classes", names)
    labels = tmp_path / "e" / "train-labels-idx1-ubyte"
    content = labels.read_bytes()
    labels.write_bytes(content[:-1] + b"\x63")
    assert "labels-idx1-ubyte go from" in call(*words).complaint
    labels.write_bytes(content[:-1])
    assert "header promises" in call(*words).complaint
