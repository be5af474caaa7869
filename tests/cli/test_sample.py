"""``datalens sample`` on a small trained run."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from datalens.cli.sample import class_numbers, cycled
from datalens.data import load
from datalens.errors import ConfigError


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
        (["--num-samples", 3, "--out", "s.png"], "give FILE.npz or a folder"),
        (["--num-samples", 3, "--out", "no/such/s.npz"], "make it first"),
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


def test_class_numbers() -> None:
    assert class_numbers("b,0, c", ["a", "b", "c"]) == [1, 0, 2]
    assert class_numbers("7,5", ["5", "7"]) == [1, 0]
    assert class_numbers("a,b", ["a,b", "c"]) == [0]
    with pytest.raises(ConfigError, match="'1' is not a class"):
        class_numbers("1", ["5", "7"])
    assert cycled([3, 1], 5).tolist() == [3, 1, 3, 1, 3]
    assert cycled([3, 1, 2], 2).tolist() == [3, 1]
