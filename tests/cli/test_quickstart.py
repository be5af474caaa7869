"""``datalens quickstart``: by moments unless asked otherwise, by DataLens on request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datalens.audit.verify import verify_run
from datalens.cli.baselines import baseline_config
from datalens.cli.main import main


@pytest.mark.parametrize(("words", "recipe"), [([], "moments"), (["--method", "datalens"], "shapes-quick")])
def test_it_trains_samples_and_scores_within_its_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], recipe: str
) -> None:
    run = tmp_path / "run"
    assert main(["quickstart", "shapes", "-n", "400", "--out", str(run), "--json", "-", *words]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["recipe"] == recipe and 9 < answer["epsilon_spent"] <= 10
    assert (
        answer["classifier_num_train"] == 400 and answer["classifier_last_accuracy"] > 0.5
    )  # a quarter by chance
    assert Path(answer["samples"]).is_file() and not verify_run(run).differences


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["emoji"], "SOURCE is 'emoji': quickstart knows mnist, fashion-mnist, shapes"),
        (["shapes", "-n", "1000001"], "--num-samples 1000001: quickstart draws at most 1000000"),
        (["shapes", "--method", "dp-merf"], "--method dp-merf: quickstart knows moments and datalens"),
    ],
)
def test_what_it_does_not_know_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], line: str
) -> None:
    assert main(["quickstart", *words, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert line in said and said.strip().count("\n") == 0 and not (tmp_path / "run").exists()


@pytest.mark.parametrize("out", [".", "/", ".."])
def test_a_folder_without_a_name_to_number_is_refused(capsys: pytest.CaptureFixture[str], out: str) -> None:
    assert main(["quickstart", "shapes", "--out", out]) == 2
    assert f"--out {out}: is a folder that is there" in capsys.readouterr().err


def test_a_prior_goes_with_its_data_set_and_gives_way_to_a_file(tmp_path: Path) -> None:
    def jitter(source: str, file: str | None = None) -> float:
        settings = baseline_config("moments", {"config_file": file}, source).settings.model_dump()
        return settings["finish"]["jitter"]

    chosen = tmp_path / "own.toml"
    chosen.write_text("[settings.finish]\njitter = 0.5\n")
    assert (jitter("mnist"), jitter("scans/")) == (1.0, 0.25)
    assert jitter("mnist", str(chosen)) == 0.5
