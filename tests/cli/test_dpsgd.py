"""``datalens dpsgd``: a classifier from the command line, through the same verbs as a generator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from datalens.privacy.ledger import Ledger

SOURCES = Path(__file__).resolve().parents[2] / "src"
SMALL = ["--model", "linear", "--num-steps", "4", "--batch-size", "400", "--delta", "1e-4", "--epsilon", "2"]


@pytest.fixture(scope="module")
def run(call: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished, publishable run: to be read, not changed."""
    root = tmp_path_factory.mktemp("dpsgd") / "run"
    answer = call("dpsgd", "shapes", *SMALL, "--out", root, "--json", root.parent / "said.json")
    assert answer.status == 0, answer.err
    assert "topagg keeping 0.8 by norm: epsilon 2" in answer.out and "to share: " in answer.out
    return root


def test_the_answer_names_training_cost_and_steps(run: Path) -> None:
    said = json.loads((run.parent / "said.json").read_text())
    assert (said["method"], said["training"], said["keep"], said["status"]) == (
        "dp-sgd",
        "topagg",
        0.8,
        "finished",
    )
    assert said["steps"] == said["num_steps"] == 4 and said["sampling_rate"] == 0.1
    assert 1.9 < said["epsilon_spent"] <= said["epsilon_authorised"] <= 2 and said["publishable"]


def test_it_is_verified_and_scored_on_published_images(call: Any, run: Path) -> None:
    verified = call("verify", run)
    assert verified.status == 0 and verified.last.startswith("verified: epsilon 1.999 at delta 0.0001")
    scored = call("evaluate", run, "--data", "shapes", "--json", "-")
    said = json.loads(scored.out)
    assert 0 <= said["accuracy"] <= 1 and said["num_test"] == 1000 and said["measured_on_public_data"]
    assert said["privacy"]["training"] == "topagg"
    assert {path.name for path in (run / "release").iterdir()} == {
        "config.json", "ledger.jsonl", "certificate.json", "README.md", "classifier.safetensors", "report.html"
    }  # fmt: skip


def test_nothing_is_left_to_do_in_a_finished_run(call: Any, run: Path) -> None:
    before = (run / "release" / "ledger.jsonl").read_bytes()
    assert call("dpsgd", "shapes", "--resume", run, "-q").status == 0
    assert (run / "release" / "ledger.jsonl").read_bytes() == before


def test_without_noise_every_verb_says_that_there_is_no_guarantee(call: Any, tmp_path: Path) -> None:
    root = tmp_path / "run"
    answer = call("dpsgd", "shapes", *SMALL, "--method", "topk-sgd", "--out", root)
    assert answer.status == 0 and "no guarantee" in answer.out
    for words in (["evaluate", root, "--data", "shapes"], ["verify", root]):
        answer = call(*words)
        assert answer.status == 0 and "NO" in answer.last
    assert answer.last.startswith("verified, NOT FIT FOR PUBLICATION: NO GUARANTEE")


def test_settings_come_from_a_file_and_options_win(call: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        '[privacy]\nepsilon = 2.0\ndelta = 1e-4\nnoise = "none"\n'
        '[settings]\nmodel = "linear"\nepochs = 0.2\ntraining = "clipped-sgd"\nkeep = 0.5\n'
    )
    answer = call(
        "dpsgd", "shapes", "--config", file, "--keep", "0.7", "--out", tmp_path / "run", "--json", "-"
    )
    said = json.loads(answer.out)
    assert (said["keep"], said["training"], said["num_steps"]) == (0.7, "clipped-sgd", 2)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["dpsgd"], "the argument SOURCE is missing"),
        (["dpsgd", "shapes"], "--out is missing"),
        (["dpsgd", "shapes", "--out", "OUT", "--keep", "1.5"], "--keep: 1.5 is out of range"),
        (["dpsgd", "shapes", "--out", "OUT", "--method", "sgd"], "known: topagg, topk-gm-dp, gm-dp"),
        (["dpsgd", "shapes", "--out", "OUT", "--max-grad-norm", "inf"], "--max-grad-norm: 'inf'"),  # R16
        (["dpsgd", "shapes", "--out", "OUT", "--max-grad-norm", "0"], "--max-grad-norm: 0"),
        (["dpsgd", "shapes", "--out", "OUT", "--noise", "none"], "private by its noise alone"),
        (["dpsgd", "shapes", "--out", "OUT", "--batch-size", "5000"], "use at most 4000"),  # R26
        (["dpsgd", "shapes", "--out", "OUT", "--epsilon", "nan"], "epsilon = nan"),
        (
            ["dpsgd", "shapes", "--out", "OUT", "--epochs", "2", "--num-steps", "2"],
            "leave out one of the two",
        ),
        (["dpsgd", "shapes", "--out", "OUT", "--image-size", "8", "--model", "cnn"], "at least 14x14"),
        (["dpsgd", "shapes", "--out", "OUT", "--learning-rate", "1e308"], "settings.learning_rate = 1e+308"),
        (["dpsgd", "shapes", "--out", "OUT", "--epochs", "1e308"], "epochs = 1e+308: makes inf steps"),
        (["dpsgd", "nowhere", "--out", "OUT"], "nowhere"),
        (["dpsgd", "shapes", "--out", "OUT", "--budget-file", "gone.jsonl"], "gone.jsonl"),
        (["dpsgd", "shapes", "--out", "OUT", "--config", "gone.toml"], "gone.toml"),
        (["dpsgd", "shapes", "--out", "RUN"], "exists"),
        (["dpsgd", "shapes", "--resume", "RUN", "--keep", "0.5"], "a resumed run keeps it"),
        (["dpsgd", "shapes", "--resume", "OUT"], "holds no run"),
        (["evaluate", "RUN", "--data", "shapes", "--epochs", "2"], "--epochs: is for generators"),
        (["evaluate", "RUN", "--data", "shapes", "--charge"], "--charge: is for generators"),
        (["sample", "RUN", "-n", "3", "--out", "OUT"], "a classifier, and this is for generators"),
        (["audit", "RUN"], "a classifier, and this is for generators"),
        (["train", "shapes", "--resume", "RUN"], "a classifier, and this is for generators"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    call: Any, run: Path, tmp_path: Path, words: list[str], line: str
) -> None:
    places = {"RUN": str(run), "OUT": str(tmp_path / "out")}
    small = (
        SMALL
        if words[0] == "dpsgd"
        and "--out" in words
        and not {"--num-steps", "--epsilon", "--epochs"} & {*words}
        else []
    )
    given = {*words}
    small = [
        word for pair in zip(small[::2], small[1::2], strict=True) if pair[0] not in given for word in pair
    ]
    answer = call(*[places.get(word, word) for word in words], *small)
    assert line in answer.complaint
    assert not (tmp_path / "out").exists()


def test_a_run_of_a_generator_is_not_gone_on_with(call: Any, trained: Path) -> None:
    answer = call("dpsgd", "shapes", "--resume", trained)
    assert "is a run of datalens, and this is for runs of dp-sgd" in answer.complaint


def test_a_budget_that_cannot_pay_the_plan_refuses_it(call: Any, tmp_path: Path) -> None:
    budget = tmp_path / "b.jsonl"
    made = call("budget", "create", budget, "--data-name", "shapes", "--epsilon", "1", "--delta", "1e-4")
    assert made.status == 0, made.err
    answer = call("dpsgd", "shapes", *SMALL, "--out", tmp_path / "run", "--budget-file", budget)
    assert "room" in answer.complaint and not (tmp_path / "run").exists()


def test_killed_in_the_middle_it_goes_on_and_keeps_what_was_charged(call: Any, tmp_path: Path) -> None:
    root = tmp_path / "run"
    words = [
        "dpsgd",
        "shapes",
        "--model",
        "linear",
        "--num-steps",
        "80",
        "--batch-size",
        "400",
        "--delta",
        "1e-4",
    ]
    words += ["--epsilon", "2", "--checkpoint-every", "2", "--out", str(root)]
    process = subprocess.Popen(
        [sys.executable, "-m", "datalens", *words],
        env={**os.environ, "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ledger, since = root / "release" / "ledger.jsonl", time.monotonic()
    while process.poll() is None and (not ledger.is_file() or len(ledger.read_bytes().splitlines()) < 12):
        assert time.monotonic() - since < 200
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    charged = len(Ledger.read(ledger).events())
    assert 0 < charged < 80
    answer = call("dpsgd", "shapes", "--resume", root)
    assert answer.status == 0, answer.err
    lines = [line for line in Ledger.read(ledger).lines if line.kind == "release"]
    steps = [line.body["note"]["step"] for line in lines]
    assert steps == sorted(set(steps)) and len(Ledger.read(ledger).events()) <= 80
    assert call("verify", root).last.startswith("verified: epsilon ")


def test_a_pipe_or_device_is_not_replaced_by_the_answer(call: Any, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    answer = call("dpsgd", "shapes", *SMALL, "--out", tmp_path / "out", "--json", pipe)
    assert f"--json {pipe}: is a device or a pipe" in answer.complaint
    assert pipe.is_fifo() and not (tmp_path / "out").exists()


def test_help_needs_no_torch() -> None:
    program = "import sys; from datalens.cli.main import main; status = main(['dpsgd', '--help']); "
    program += "sys.exit(status or any(name in sys.modules for name in ('torch', 'opacus')))"
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    assert "NO GUARANTEE" in answer.stdout and "--select-by" in answer.stdout
