"""``--method``: a baseline from the command line, through the same verbs as DataLens."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from small_baselines import MERF_TOML

from datalens.baselines.registry import METHODS
from datalens.cli.main import main
from datalens.training.sections import Section

TRAIN = [
    "train",
    "shapes",
    "--method",
    "dp-merf",
    "--epsilon",
    "2",
    "--delta",
    "1e-4",
    "--insecure-seed",
    "0",
]


@pytest.fixture
def trained(tmp_path: Path) -> list[str]:
    (tmp_path / "small.toml").write_text(MERF_TOML)
    return [*TRAIN, "--config", str(tmp_path / "small.toml"), "--out", str(tmp_path / "run")]


def test_a_baseline_is_trained_sampled_scored_and_verified(
    tmp_path: Path, trained: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run")
    assert main([*trained, "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["method"] == "dp-merf" and said["status"] == "finished" and said["epsilon_spent"] <= 2
    assert main(["sample", run, "-n", "12", "--out", str(tmp_path / "s.npz"), "--seed", "1"]) == 0
    assert np.load(tmp_path / "s-NOT-FOR-PUBLICATION.npz")["x"].shape == (12, 1, 16, 16)
    assert main(["evaluate", run, "--data", "shapes", "-n", "40", "--classifier", "logistic"]) == 0
    assert main(["verify", run]) == 0
    assert main(["train", "shapes", "--resume", run]) == 0, "nothing is left to do"
    assert "NOT FIT FOR PUBLICATION" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--method", "gan"], "method 'gan' is unknown; known: dc-gan, dp-merf"),
        (["--method", "dp-merf", "--top-k", "5"], "--top-k 5: is for the method datalens; dp-merf takes"),
        (["--method", "dp-merf", "--recipe", "quick"], "--recipe quick: is for the method datalens"),
        (["--method", "dc-gan"], "'dc-gan' has no privacy: say so with --noise none"),
        (["--method", "dp-merf", "--epsilon", "0"], "epsilon = 0"),
        (["--method", "dp-merf", "--as-published"], "with method dp-merf: is for gs-wgan"),
        (["--method", "dp-gan", "--noise", "discrete"], "no proved cost in Poisson-sampled steps"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], line: str
) -> None:
    assert main(["train", "shapes", "--out", str(tmp_path / "run"), *words]) == 2
    said = capsys.readouterr().err
    assert line in said and said.strip().count("\n") == 0
    assert not (tmp_path / "run").exists()


def test_a_missing_extra_is_named_with_how_to_install_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opacus.grad_sample", None)
    assert main(["train", "shapes", "--method", "dp-gan", "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "run: pip install 'datalens-dp[dpsgd]'" in said and said.strip().count("\n") == 0
    assert not (tmp_path / "run").exists()


def test_the_help_names_every_method(capsys: pytest.CaptureFixture[str]) -> None:
    """It is written by hand, since help needs no torch."""
    assert main(["train", "--help"]) == 0
    said = "".join(capsys.readouterr().out.split())  # lines may end within a name, at its hyphen
    assert ",".join(METHODS) in said


@pytest.mark.parametrize(
    ("words", "text", "line"),
    [
        (
            ["--method", "dp-merf"],
            "[settings]\nfeatures = 2",
            "settings.toml: setting 'features' is unknown; known: num",
        ),
        (
            ["--method", "dp-merf"],
            '[settings]\nnum_features = "x"',
            "settings.toml: num_features = 'x': input should",
        ),
        (
            ["--method", "dp-merf"],
            "num_features = 2",
            "num_features stands in no table; write it below a line [settings]",
        ),
        (["--method", "dp-merf"], 'method = "dp-merf"', "a file names no method; say it with --method"),
        ([], "[settings]\nnum_features = 2", "a table [settings] is for --method; name the method"),
        (["--method", "dp-merf", "--epsilon", "0.001"], "", "use a larger epsilon, 0.00"),
    ],
)
def test_a_mistake_in_the_file_names_the_file_or_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], text: str, line: str
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    assert main(["train", "shapes", "--out", str(tmp_path / "run"), "--config", str(path), *words]) == 2
    said = capsys.readouterr().err
    assert line in said and said.strip().count("\n") == 0
    assert not (tmp_path / "run").exists()


def test_the_page_lists_every_setting_with_its_default() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "baselines.md").read_text().splitlines()
    for method, settings in METHODS.items():
        row = next(line for line in page if line.startswith(f"| `{method}` | `num_steps`"))
        shown = row.split("|")[2].strip().split(", ")
        assert shown == [entry(name, field.default) for name, field in settings.model_fields.items()]


def entry(name: str, default: object) -> str:
    """A setting as the page lists it; a section of its own has no default there."""
    if isinstance(default, Section):
        return f"`{name}`"
    return f"`{name}` {'-' if default is None else default}"


GENERATOR = "latent_dim = 4\nhidden_units = 16\nchannels = 4\ncritic_channels = 2\n"
CRITICS = {
    "dp-gan": "num_steps = 3\ncritic_steps = 2\nbatch_size = 100\ngenerated_batch = 8\nimages_per_class = 2\n",
    "gs-wgan": "num_steps = 2\nbatch_size = 4\nnum_critics = 5\ncritic_steps = 1\nrecords_per_step = 4\n",
}


@pytest.mark.parametrize(
    ("method", "flags", "last"),
    [
        ("dp-gan", [], "next: datalens sample"),
        ("gs-wgan", [], "next: datalens sample"),
        ("gs-wgan", ["--as-published"], "NO GUARANTEE: gs-wgan as published"),
    ],
)
def test_methods_with_critics_are_trained_sampled_and_verified(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], method: str, flags: list[str], last: str
) -> None:
    (tmp_path / "small.toml").write_text("[settings]\n" + CRITICS[method] + GENERATOR)
    run, settings = str(tmp_path / "run"), str(tmp_path / "small.toml")
    words = ["--method", method, "--epsilon", "2", "--delta", "1e-4", *flags]
    assert main(["train", "shapes", *words, "--config", settings, "--out", run]) == 0
    said = capfd.readouterr()
    assert last in (said.out + said.err).strip().splitlines()[-1]
    assert "warning" not in said.err.lower()
    assert main(["verify", run]) == 0
    assert ("NO GUARANTEE" in capfd.readouterr().out) == bool(flags)
    assert main(["sample", run, "-n", "4", "--out", str(tmp_path / "s.npz")]) == 0
    assert (tmp_path / ("s-NOT-FOR-PUBLICATION.npz" if flags else "s.npz")).is_file()


def test_a_settings_file_of_another_method_is_refused(
    tmp_path: Path, trained: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.toml").write_text("[voting]\ntop_k = 3\n")
    assert main(trained) == 2
    assert "'voting' is unknown; known: recipe, privacy, settings, performance" in capsys.readouterr().err


def test_a_run_keeps_its_method_and_its_settings(
    tmp_path: Path, trained: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run")
    assert main([*trained, "--quiet"]) == 0
    for words, line in (
        (["--method", "g-pate"], "--method g-pate: the run in"),
        (["--epsilon", "3"], "--epsilon 3.0: a resumed run keeps it"),
    ):
        assert main(["train", "shapes", "--resume", run, *words]) == 2
        assert line in capsys.readouterr().err
    for verb in (["audit", run, "--twin", "--data", "shapes"], ["verify", run, "--replay"]):
        assert main(verb) == 2
        assert "for runs of " in capsys.readouterr().err
