"""``datalens sample`` on a small trained run."""

from __future__ import annotations

import json
import shutil
import signal
import sys

import numpy as np
import pytest
from sample_readers import READERS

from datalens.cli.sample import class_numbers, cycled
from datalens.data import load
from datalens.errors import ConfigError
from datalens.training.trained import Trained
from datalens.writing import SampleFormat


def read(path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return archive["x"], archive["y"]


def test_npz(call, trained, tmp_path) -> None:
    answer = call(
        "sample", trained, "--num-samples", 30, "--out", tmp_path / "s.npz", "--json", tmp_path / "s.json"
    )
    assert (answer.status, answer.err) == (0, "")
    images, labels = read(tmp_path / "s.npz")
    assert (images.shape, images.dtype, labels.dtype) == ((30, 1, 16, 16), np.uint8, np.int64)
    facts = json.loads((tmp_path / "s.json").read_text())
    assert sum(facts["per_class"].values()) == 30
    assert facts["privacy"]["publishable"] is True
    assert facts["note"] is None


def test_seed_and_labels(call, trained, tmp_path) -> None:
    for name in ("a", "b"):
        out = tmp_path / f"{name}.npz"
        assert call("sample", trained, "-n", 5, "--labels", "cross,0", "--seed", 4, "--out", out).status == 0
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert read(tmp_path / "a.npz")[1].tolist() == [2, 0, 2, 0, 2]
    assert call("sample", trained, "-n", 5, "--out", tmp_path / "c.npz").status == 0
    assert call("sample", trained, "-n", 5, "--out", tmp_path / "d.npz").status == 0
    assert (read(tmp_path / "c.npz")[0] != read(tmp_path / "d.npz")[0]).any()


def test_folder_is_read_back_and_replaced_on_request(call, trained, tmp_path) -> None:
    out = tmp_path / "shapes"
    assert call("sample", trained, "-n", 8, "--out", out, "--seed", 1).status == 0
    assert load(out).num_records == 8
    assert set(load(out).classes) == {"disc", "square", "cross", "triangle"}
    assert "exists already" in call("sample", trained, "-n", 3, "--out", out).complaint
    assert load(out).num_records == 8
    assert call("sample", trained, "-n", 3, "--out", out, "--overwrite").status == 0
    assert load(out).num_records == 3
    assert [path.name for path in tmp_path.iterdir()] == ["shapes"]


def test_only_the_classes_that_were_asked_for_get_a_folder(call, trained, tmp_path) -> None:
    answer = call("sample", trained, "-n", 3, "--labels", "cross", "--out", tmp_path / "s")
    assert "3 images of 1 class in" in answer.out
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["cross"]
    assert (
        "3 images of 2 classes in"
        in call("sample", trained, "-n", 3, "--labels", "cross,disc", "--out", tmp_path / "two").out
    )


@pytest.mark.parametrize(
    ("form", "out"), [("parquet", "s.parquet"), ("idx", "s"), ("datasets", "s"), ("folder", "s")]
)
def test_every_form_holds_the_images_of_the_npz(call, trained, tmp_path, form, out) -> None:
    if form in ("parquet", "datasets"):
        pytest.importorskip("pyarrow", reason="pyarrow (extra parquet) is not installed")
    facts = tmp_path / "facts.json"
    for name, words in (("s.npz", ()), (out, ("--format", form, "--json", facts))):
        assert call("sample", trained, "-n", 1100, "--out", tmp_path / name, "--seed", 4, *words).status == 0
    told = json.loads(facts.read_text())
    images, labels = read(tmp_path / "s.npz")
    classes = tuple(told["per_class"])
    assert (told["format"], [*told["per_class"].values()]) == (form, np.bincount(labels).tolist())
    found_images, found_labels = READERS[SampleFormat(form)](tmp_path / out, classes)
    assert (found_images == images).all()
    assert (found_labels == labels).all()


@pytest.mark.parametrize(
    ("form", "out", "extra"), [("parquet", "s.parquet", "parquet"), ("datasets", "s", "huggingface")]
)
def test_a_missing_extra_is_named(call, trained, tmp_path, monkeypatch, form, out, extra) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = call("sample", trained, "-n", 3, "--out", tmp_path / out, "--format", form)
    assert f"pip install 'datalens-dp[{extra}]'" in answer.complaint
    assert list(tmp_path.iterdir()) == []


def test_colour_is_not_written_as_idx(call, tmp_path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "c.npz", x=rng.integers(0, 256, (40, 3, 8, 8), dtype=np.uint8), y=np.arange(40) % 2)
    how = ("--classes", 2, "--num-records", 40, "--num-teachers", 10, "--num-steps", 1, "--noise", "none")
    made = call("train", tmp_path / "c.npz", "--out", tmp_path / "run", *how, "--batch-size", 4, "--top-k", 5)
    assert made.status == 0, made.err
    answer = call("sample", tmp_path / "run", "-n", 3, "--out", tmp_path / "s", "--format", "idx")
    assert "idx holds grey images only, and these have 3 channels" in answer.complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.npz", "run"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("out", ["s.npz", "s"])
def test_a_signal_half_way_leaves_nothing(call, trained, tmp_path, monkeypatch, number, out) -> None:
    drawing = Trained.iter_samples

    def interrupted(self, *words, **options):
        yield next(drawing(self, *words, **options))
        assert len(list(tmp_path.iterdir())) == 1, "the temporary one"
        signal.raise_signal(number)
        yield from ()

    monkeypatch.setattr(Trained, "iter_samples", interrupted)
    before = signal.getsignal(signal.SIGTERM)
    answer = call("sample", trained, "-n", 900, "--out", tmp_path / out)
    assert (answer.status, answer.err.strip()) == (130, "error: interrupted")
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is before


def test_release_alone_is_enough(call, trained, tmp_path) -> None:
    shutil.copytree(trained / "release", tmp_path / "run" / "release")
    assert call("sample", tmp_path / "run", "-n", 2, "--out", tmp_path / "s.npz").status == 0
    assert not (tmp_path / "run" / "private").exists()


def test_json_alone_on_standard_output(call, trained, tmp_path) -> None:
    answer = call("sample", trained, "-n", 2, "--out", tmp_path / "s.npz", "--json", "-")
    assert json.loads(answer.out)["num_samples"] == 2
    assert "2 images" in answer.err
    quiet = call("sample", trained, "-n", 2, "--out", tmp_path / "t.npz", "--quiet")
    assert (quiet.out, quiet.err) == ("", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--num-samples", 0, "--out", "s.npz"], "--num-samples: 0 is too small"),
        (["--num-samples", "1e3", "--out", "s.npz"], "not a whole number"),
        (["--num-samples", 10**17, "--out", "s.npz"], "ask for fewer"),
        (["--num-samples", 3, "--out", ""], "--out: is empty"),
        (["--num-samples", 3, "--out", "s.png"], "give FILE.npz, FILE.parquet or a folder"),
        (["--num-samples", 3, "--out", "no/such/s.npz"], "make it first"),
        (["--num-samples", 3, "--out", "s", "--format", "npz"], "end its name in .npz"),
        (["--num-samples", 3, "--out", "s.npz", "--format", "idx"], "take .npz off its name"),
        (
            ["--num-samples", 3, "--out", "s", "--format", "tfrecord"],
            "known: npz, folder, parquet, idx, datasets",
        ),
        (["--num-samples", 3, "--out", "s.npz", "--labels", "circle"], "the classes are disc, square"),
        (["--num-samples", 3, "--out", "s.npz", "--labels", "4"], "'4' is not a class"),
        (["--num-samples", 3, "--out", "s.npz", "--labels", "-1"], "'-1' is not a class"),
        (["--num-samples", 3, "--out", "s.npz", "--labels", "0,,1"], "'' is not a class"),
        (["--num-samples", 3, "--out", "s.npz", "--seed", "-2"], "--seed: -2 is too small"),
        (["--num-samples", 3, "--out", "s.npz", "--json", "s.npz"], "is the file of --out too"),
        (["--num-samples", 3, "--out", "s.npz", "--json", "no/such.json"], "make it first"),
        (["--num-samples", 3, "--out", "s.npz", "--json", "."], "is a folder"),
    ],
)
def test_mistakes_leave_nothing(call, trained, tmp_path, monkeypatch, words, said) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in call("sample", trained, *words).complaint
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_run_is_refused(call, trained, tmp_path) -> None:
    out = tmp_path / "s.npz"
    for run, said in ((tmp_path / "none", "holds no run"), (tmp_path, "holds no run")):
        assert said in call("sample", run, "-n", 1, "--out", out).complaint
    broken = tmp_path / "broken"
    shutil.copytree(trained / "release", broken / "release")
    weights = broken / "release" / "generator.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    assert "generator.safetensors" in call("sample", broken, "-n", 1, "--out", out).complaint
    weights.unlink()
    assert "no generator yet" in call("sample", broken, "-n", 1, "--out", out).complaint
    (broken / "release" / "config.json").write_text("{")
    assert "config.json" in call("sample", broken, "-n", 1, "--out", out).complaint
    assert not out.exists()


def test_samples_do_not_go_into_private(call, trained) -> None:
    assert (
        "never shared" in call("sample", trained, "-n", 1, "--out", trained / "private" / "s.npz").complaint
    )


@pytest.fixture(
    scope="module", params=[("--insecure-seed", 0), ("--noise", "none"), ("--noise", "continuous")]
)
def unfit(request, call, quick, tmp_path_factory):
    """A run that may not be published, and how its commands end."""
    run = tmp_path_factory.mktemp("unfit") / "run"
    answer = call("train", "shapes", "--out", run, *quick, *request.param)
    assert answer.status == 0, answer.err
    return run, answer.last


def test_samples_that_may_not_be_published_say_so_in_their_own_name_and_last(call, unfit, tmp_path) -> None:
    """The file is what travels: it says so itself, wherever it is copied."""
    run, said = unfit
    for asked, made in (("s.npz", "s-NOT-FOR-PUBLICATION.npz"), ("d.1", "d.1-NOT-FOR-PUBLICATION")):
        answer = call("sample", run, "-n", 3, "--out", tmp_path / asked, "--json", tmp_path / "answer.json")
        assert answer.status == 0, answer.err
        assert answer.last == f"{said}; it is in {tmp_path / made}"
        facts = json.loads((tmp_path / "answer.json").read_text())
        assert (facts["out"], facts["note"]) == (str(tmp_path / made), answer.last)
        assert load(tmp_path / made).num_records == 3
        assert "exists already" in call("sample", run, "-n", 3, "--out", tmp_path / asked).complaint
        assert "exists already" in call("sample", run, "-n", 3, "--out", tmp_path / made).complaint
        assert (
            call("sample", run, "-n", 2, "--out", tmp_path / asked, "--overwrite", "-q").last == answer.last
        )
        assert load(tmp_path / made).num_records == 2
    (tmp_path / "answer.json").unlink()
    assert all("NOT-FOR-PUBLICATION" in path.name for path in tmp_path.iterdir())
    same = ("--json", tmp_path / "s-NOT-FOR-PUBLICATION.npz")
    assert "of --out too" in call("sample", run, "-n", 3, "--out", tmp_path / "s.npz", *same).complaint


@pytest.mark.parametrize("out", [".", "..", "/"])
def test_a_target_without_a_name_is_refused_also_where_it_would_be_marked(
    call, unfit, tmp_path, monkeypatch, out
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    answer = call("sample", unfit[0], "-n", 1, "--out", out)
    made = [path.name for path in (tmp_path, tmp_path / "a") for path in path.iterdir()]
    if out == "/":
        assert "exists already" in answer.complaint
    else:
        assert answer.status == 0
    assert sorted(made) == sorted(
        ["a", "b", *{".": ["b-NOT-FOR-PUBLICATION"], "..": ["a-NOT-FOR-PUBLICATION"]}.get(out, [])]
    )


def test_class_numbers() -> None:
    assert class_numbers("b,0, c", ["a", "b", "c"]) == [1, 0, 2]
    assert class_numbers("7,5", ["5", "7"]) == [1, 0]
    assert class_numbers("a,b", ["a,b", "c"]) == [0]
    with pytest.raises(ConfigError, match="'1' is not a class"):
        class_numbers("1", ["5", "7"])
    assert cycled([3, 1], 5).tolist() == [3, 1, 3, 1, 3]
    assert cycled([3, 1, 2], 2).tolist() == [3, 1]
