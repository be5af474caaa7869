"""``datalens train``: what it writes and says, how it stops and goes on, and every mistake."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from datalens.privacy.ledger import Ledger
from datalens.privacy.signal import GOOD_MARGIN
from datalens.training.run_folder import RunFolder

TINY = ("--num-teachers", "60", "--top-k", "10", "--num-steps", "2", "--batch-size", "4", "--epsilon", "20")


@pytest.fixture
def own_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An .npz of one's own: 120 images of 8x8, three classes."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("own") / "own.npz"
    np.savez(path, x=rng.integers(0, 256, (120, 8, 8), dtype=np.uint8), y=np.arange(120) % 3)
    return path


def test_the_folder_and_the_answer(call, tmp_path) -> None:
    run, answer_file = tmp_path / "deep" / "run", tmp_path / "answer.json"
    answer = call("train", "shapes", "--out", run, *TINY, "--json", answer_file)
    assert answer.status == 0
    assert (run / "private").stat().st_mode & 0o777 == 0o700
    assert {"config.json", "generator.safetensors", "ledger.jsonl"} <= {
        p.name for p in (run / "release").iterdir()
    }
    facts = json.loads(answer_file.read_text())
    assert (facts["status"], facts["steps"], facts["num_steps"]) == ("finished", 2, 2)
    assert 0 < facts["epsilon_spent"] <= facts["epsilon_authorised"] <= 20
    assert facts["publishable"] is True
    assert facts["note"] is None
    assert "epsilon " in answer.out
    assert answer.err == ""  # not on a terminal


def test_json_alone_on_standard_output(call, tmp_path) -> None:
    answer = call("train", "shapes", "--out", tmp_path / "r", *TINY, "--json", "-")
    assert json.loads(answer.out)["status"] == "finished"
    [said] = re.findall(
        r"^(.*): where all teachers agree .* right with chance (\S+), wrong with (\S+);", answer.err, re.M
    )
    margin = float(said[1]) - float(said[2])
    assert said[0] == ("some signal" if margin < GOOD_MARGIN else "signal")


def test_quiet_says_nothing(call, tmp_path) -> None:
    answer = call("train", "shapes", "--out", tmp_path / "r", *TINY, "--quiet")
    assert (answer.status, answer.out, answer.err) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "last"),
    [
        (["--insecure-seed", "0"], "NOT FIT FOR PUBLICATION: its noise comes from an insecure seed"),
        (["--noise", "continuous"], "NOT FIT FOR PUBLICATION: its noise is floating point"),
        (["--noise", "none"], "NO GUARANTEE"),
    ],
)
def test_what_is_not_fit_for_publication_says_so_last(call, tmp_path, words, last) -> None:
    run, epsilon_words = tmp_path / "r", list(TINY)
    answer = call("train", "shapes", "--out", run, *epsilon_words, *words, "--json", tmp_path / "j")
    assert answer.status == 0, answer.err
    assert answer.last.startswith(last)
    assert "not fit for publication" in answer.last.lower()
    facts = json.loads((tmp_path / "j").read_text())
    assert (facts["publishable"], facts["note"]) == (False, answer.last)
    quiet = call("sample", run, "-n", 1, "--out", tmp_path / "s.npz", "--quiet")
    assert quiet.last.startswith(last)


def test_ones_own_data(call, own_data, tmp_path) -> None:
    small = ("--num-teachers", 20, "--top-k", 5, "--num-steps", 2, "--batch-size", 4, "--epsilon", 30)
    mistake = call("train", own_data, "--out", tmp_path / "a", *small)
    assert "--num-records" in mistake.complaint
    assert not (tmp_path / "a").exists()
    answer = call(
        "train", own_data, "--out", tmp_path / "a", *small, "--num-records", 130, "--classes", "a,b,c"
    )
    assert answer.status == 0, answer.err
    config = json.loads((tmp_path / "a" / "release" / "config.json").read_text())
    assert (config["classes"], config["num_records"]) == (["a", "b", "c"], 130)
    counted = ("--public-record-count", "--classes", 3)
    assert call("train", own_data, "--out", tmp_path / "b", *small, *counted).status == 0


def test_a_class_list_that_nobody_declared_is_refused_before_training(call, own_data, tmp_path) -> None:
    small = ("--num-teachers", 20, "--top-k", 5, "--num-steps", 2, "--batch-size", 4, "--epsilon", 30)
    run = ("train", own_data, "--out", tmp_path / "run", *small, "--num-records", 130)
    mistake = call(*run)
    assert all(option in mistake.complaint for option in ("--classes", "--labels-are-public"))
    assert not (tmp_path / "run").exists()
    experiment = call(*run[:3], tmp_path / "experiment", *run[4:], "--insecure-seed", 1)
    assert experiment.status == 0
    assert "warning" in experiment.err
    assert "--labels-are-public" in experiment.err
    answer = call(*run, "--labels-are-public")
    assert (answer.status, answer.err) == (0, "")
    page = (tmp_path / "run" / "release" / "README.md").read_text()
    assert "read off the records, and declared public" in page
    assert "leave it out" in call(*run[:2], "--resume", tmp_path / "run", "--labels-are-public").complaint
    assert call(*run[:2], "--resume", tmp_path / "run").status == 0


def test_a_resumed_run_uses_its_own_class_list(call, own_data, tmp_path) -> None:
    run = tmp_path / "run"
    small = ("--num-teachers", 20, "--top-k", 5, "--num-steps", 2, "--batch-size", 4, "--epsilon", 30)
    made = call("train", own_data, "--out", run, *small, "--num-records", 130, "--classes", "a,b,c")
    assert made.status == 0, made.err
    more = call("train", own_data, "--resume", run, "--epsilon", 40, "--num-steps", 3)
    assert more.status == 0, more.err
    assert "class list" not in more.err
    swapped = ("--classes", "b,a,c", "--epsilon", 50, "--num-steps", 4)
    assert "in the order a,b,c, not b,a,c" in call("train", own_data, "--resume", run, *swapped).complaint


def test_a_delta_too_large_for_the_records_is_a_warning(call, tmp_path) -> None:
    answer = call("train", "shapes", "--out", tmp_path / "r", *TINY, "--delta", "1e-3", "--quiet")
    assert answer.status == 0
    assert answer.err.startswith("warning: delta=0.001 is not below 1/num_records")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epsilon", "0"], "epsilon = 0: must be above 0"),
        (["--epsilon", "-1"], "epsilon = -1: must be above 0"),
        (["--epsilon", "nan"], "epsilon = nan: must be above 0"),
        (["--epsilon", "inf"], "epsilon = inf: must be above 0"),
        (["--epsilon", "one"], "--epsilon: 'one' is not a number"),
        (
            ["--epsilon", "0", "--recipe", "mnist-paper", "--image-size", "28"],
            "the smallest that works with these settings is 0.",
        ),
        (["--epsilon", "0"], "the smallest that works with these settings is 0."),
        (["--epsilon", "1e-4"], "use epsilon 0."),
        (["--epsilon", "0.01", "--noise-stddev", "100"], "use epsilon "),
        (["--delta", "0"], "--delta: 0 is out of range"),
        (["--delta", "1"], "--delta: 1 is out of range"),
        (["--delta", "nan"], "--delta: 'nan' is not a number"),
        (["--num-teachers", "0"], "--num-teachers: 0 is too small"),
        (["--num-teachers", "5000"], "--num-teachers 5000 (voting.num_teachers): each needs one of 4000"),
        (["--num-teachers", "5000"], "use about 266, so that each has 15"),
        (["--num-teachers", "2", "--epsilon", "0.1"], "leaves no signal"),
        (["--top-k", "257"], "256 coordinates"),
        (["--batch-size", "1"], "--batch-size: 1 is too small"),
        (["--vote-threshold", "-0.5"], "--vote-threshold: -0.5 is out of range"),
        (["--noise-stddev", "-3"], "--noise-stddev: -3 is out of range"),
        (["--noise-stddev", "1", "--noise", "none"], "leave out one"),
        (["--noise-stddev", "1000", "--num-steps", "100000"], "use at most"),
        (["--noise", "discrete", "--insecure-seed", "1"], "insecure seed"),
        (["--accountant", "pld"], "known: exact, rdp, rdp-classic"),
        (["--insecure-seed", "-1"], "--insecure-seed: -1 is too small"),
        (["--recipe", "mnist"], "recipe 'mnist' is unknown; known: quick"),
        (["--config", "none.toml"], "none.toml: no such file"),
        (["--device", "abacus"], "device abacus: cannot be used here"),
        (["--device", "meta"], "device meta: cannot be used here"),
        (["--num-records", "10"], "--num-records 10 (privacy.num_records): the data hold"),
        (["--value-range", "0..1"], "has no use for it"),
        (["--image-size", "0"], "is not a size"),
        (["--json", "no/such.json"], "make it first"),
        (["--resume", "run"], "--out"),
    ],
)
def test_mistakes_leave_nothing(call, tmp_path, monkeypatch, words, said) -> None:
    monkeypatch.chdir(tmp_path)
    answer = call("train", "shapes", "--out", "run", *words)
    assert said in answer.complaint
    assert answer.out == ""  # no plan is announced that cannot be begun
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "said"),
    [("", "SOURCE: is empty"), ("cifar", "no source of that name"), ("none.npz", "no such file"),
     ("mnist", "run `datalens data fetch mnist`")],
)  # fmt: skip
def test_sources_that_are_not_there(call, tmp_path, monkeypatch, source, said) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in call("train", source, "--out", "run").complaint
    assert list(tmp_path.iterdir()) == []


def test_out_is_needed_and_never_overwritten(call, trained, tmp_path) -> None:
    assert "--out is missing" in call("train", "shapes").complaint
    before = sorted((path, path.stat().st_mtime_ns) for path in trained.rglob("*"))
    assert "exists already" in call("train", "shapes", "--out", trained).complaint
    assert sorted((path, path.stat().st_mtime_ns) for path in trained.rglob("*")) == before
    (tmp_path / "file").write_text("")
    assert "exists already" in call("train", "shapes", "--out", tmp_path / "file").complaint
    (tmp_path / "link").symlink_to("nowhere")
    assert "leads nowhere" in call("train", "shapes", "--out", tmp_path / "link").complaint
    assert "is a file and no folder" in call("train", "shapes", "--out", tmp_path / "file" / "run").complaint


def test_a_closed_folder_is_refused(call, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("datalens.cli.output.os.access", lambda *_: False)
    assert "is not writable" in call("train", "shapes", "--out", tmp_path / "run").complaint
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused_before_data_are_read(call, tmp_path, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("datalens.cli.output.tempfile.mkdtemp", full)
    complaint = call("train", tmp_path / "no-such.npz", "--out", tmp_path / "x" / "run").complaint
    assert "cannot be made (No space left on device); choose another place" in complaint


def test_resume_refuses_what_it_cannot_use(call, tmp_path, trained) -> None:
    assert "holds no run" in call("train", "shapes", "--resume", tmp_path).complaint
    assert "leave it out" in call("train", "shapes", "--resume", trained, "--num-teachers", 3).complaint
    elsewhere = call(
        "train", "no-longer-there.npz", "--resume", trained, "--epsilon", 14, "--device", "nonsense"
    )
    assert "device nonsense: cannot be used here" in elsewhere.complaint
    assert "--resume: is empty" in call("train", "shapes", "--resume", "").complaint


def test_resuming_a_finished_run_removes_what_a_kill_while_its_pages_were_drawn_left(
    call, trained, tmp_path
) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    folder = RunFolder.open(run)
    before = sorted(run.rglob("*"))
    for page in (folder.report, folder.private_report):
        page.with_name(f".{page.name}.0a1b2c3d4e5f.tmp").write_text("<html>")
    with Ledger.open(folder.ledger):  # somebody works on it
        assert call("train", "shapes", "--resume", run).status == 0
        assert sorted(run.rglob("*")) != before
    assert call("train", "shapes", "--resume", run).status == 0
    assert sorted(run.rglob("*")) == before


def test_a_finished_run_goes_on_with_more_epsilon(call, trained, tmp_path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    done = call("train", "shapes", "--resume", run, "--json", "-")
    assert json.loads(done.out)["steps"] == 3
    assert "already finished, nothing to do" in done.err
    assert call("train", "no-longer-there.npz", "--resume", run).status == 0  # no data are read
    for words, said in (
        (["--epsilon", "nan"], "--epsilon nan: must be above 0"),
        (["--epsilon", "1"], "epsilon"),
        (["--num-steps", "9"], "num_steps"),
    ):
        assert said in call("train", "shapes", "--resume", run, *words).complaint
    more = call(
        "train", "shapes", "--resume", run, "--epsilon", 14, "--num-steps", 4, "--json", tmp_path / "j"
    )
    assert more.status == 0, more.err
    facts = json.loads((tmp_path / "j").read_text())
    assert (facts["steps"], facts["num_steps"]) == (4, 4)
    assert 10 < facts["epsilon_spent"] <= 14
    assert sum("decided after looking" in warning for warning in facts["warnings"]) == 1
    assert more.err.count("decided after looking") == 1


def test_ctrl_c_saves_and_resume_finishes(call, tmp_path) -> None:
    run = tmp_path / "my run"
    options = (
        "--num-teachers",
        "60",
        "--top-k",
        "10",
        "--num-steps",
        "60",
        "--batch-size",
        "4",
        "--epsilon",
        "30",
    )
    command = [
        sys.executable,
        "-m",
        "datalens",
        "train",
        "shapes",
        "--out",
        str(run),
        *options,
        "--image-size",
        "12",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    ledger = run / "release" / "ledger.jsonl"
    while time.monotonic() < deadline and not (ledger.exists() and ledger.read_text().count("\n") > 3):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "Traceback" not in err
    assert "stopping after this step" in err
    told = next(line for line in out.splitlines() if "resume with: " in line)
    words = shlex.split(told.partition("resume with: ")[2])
    assert words == ["datalens", "train", "shapes", "--resume", str(run), "--image-size", "12"]
    early = call("sample", run, "-n", 1, "--out", tmp_path / "early.npz")
    assert re.match(r"warning: .* took \d+ of 60 steps so far", early.err)
    answer = call(*words[1:], "--json", tmp_path / "j")
    assert answer.status == 0, answer.err
    facts = json.loads((tmp_path / "j").read_text())
    assert (facts["status"], facts["steps"]) == ("finished", 60)
    assert facts["epsilon_spent"] <= 30


def test_a_run_resumed_with_other_data_is_refused(call, trained) -> None:
    assert (
        "not the data of this run"
        in call("train", "shapes", "--image-size", 20, "--resume", trained, "--epsilon", 12).complaint
    )


def test_a_purged_run_that_was_scored_since_still_cannot_go_on(call, trained, tmp_path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    assert call("purge", run, "--yes").status == 0
    scored = call("evaluate", run, "--data", "shapes", "--classifier", "logistic", "-n", 50, "--epochs", 1)
    assert scored.status == 0, scored.err
    assert (run / "private").is_dir()
    assert "its private side is gone" in call("train", "shapes", "--resume", run).complaint


def test_a_purge_without_a_terminal_needs_yes(call, trained, tmp_path, monkeypatch) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert "give --yes" in call("purge", run).complaint
    assert (run / "private").is_dir()


def test_ones_own_data_may_be_declared_public(call, own_data, tmp_path) -> None:
    small = ("--num-teachers", 20, "--top-k", 5, "--num-steps", 2, "--batch-size", 4, "--epsilon", 30)
    answer = call("train", own_data, "--out", tmp_path / "run", *small, "--public-data")
    assert answer.status == 0, answer.err
    assert json.loads((tmp_path / "run" / "release" / "config.json").read_text())["num_records"] == 120


def test_noise_of_a_score_that_no_sampler_has_is_named_as_such(call, tmp_path) -> None:
    answer = call("train", "shapes", "--out", tmp_path / "run", "--epsilon", "10", "--score-noise", "1e9")
    assert "score_noise = 1e+09: rounded Gaussian noise goes from 0.25" in answer.complaint
