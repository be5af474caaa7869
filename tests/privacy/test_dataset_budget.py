"""One budget across runs: ten runs at epsilon 1 are seen to be ten."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from small_runs import resume, small_config, small_data, stop_after

from datalens import DataLens
from datalens.audit.verify import verify_run
from datalens.errors import BudgetError, ConfigError, DataLensError, LedgerError, RunError
from datalens.privacy.accountant import Accountant
from datalens.privacy.dataset_budget import (
    create_dataset_budget,
    describe_dataset_budget,
    open_dataset_budget,
)
from datalens.privacy.events import GaussianEvent, PoissonGaussianEvent
from datalens.privacy.ledger import Ledger
from datalens.training.charged_score import charge_score
from datalens.training.heads import heads_file
from datalens.training.shared_budget import open_shared_budget


def _fit(root: Path, file: Path, epsilon: float = 1.0, **options: object) -> DataLens:
    config = small_config(privacy__epsilon=epsilon, voting__num_steps=2)
    return DataLens(config).fit(small_data(), out=root, budget_file=file, **options)  # type: ignore[arg-type]


def test_ten_runs_at_epsilon_1_are_seen_to_be_ten(tmp_path: Path) -> None:
    file = tmp_path / "clinic.budget"
    create_dataset_budget(file, "clinic", 3.3, 1e-5)
    done, refusal = 0, ""
    while done < 10 and not refusal:
        try:
            _fit(tmp_path / f"run{done}", file)
            done += 1
        except BudgetError as error:
            refusal = str(error)
    assert "'clinic' has room for" in refusal
    assert 4 < done < 10  # costs add in mu squared, so more than three fit and ten do not
    assert not (tmp_path / f"run{done}").exists()
    found = describe_dataset_budget(file)
    assert found["spent"] <= 3.3
    assert len(found["runs"]) == done
    assert {run["releases"] for run in found["runs"]} == {2}


def test_the_run_says_whose_budget_it_is_charged_to(tmp_path: Path) -> None:
    file = tmp_path / "b"
    create_dataset_budget(file, "clinic", 3.0, 1e-5)
    _fit(tmp_path / "run", file)
    assert verify_run(tmp_path / "run").agrees
    assert "'clinic'" in (tmp_path / "run" / "release" / "README.md").read_text()
    shared = b"".join(path.read_bytes() for path in (tmp_path / "run" / "release").iterdir())
    assert str(file).encode() not in shared


def test_a_resumed_run_goes_on_charging_it(tmp_path: Path) -> None:
    file = tmp_path / "b"
    create_dataset_budget(file, "clinic", 3.0, 1e-5)
    config = small_config(voting__num_steps=4)
    DataLens(config).fit(small_data(), out=tmp_path / "run", budget_file=file, stop=stop_after(1))
    assert describe_dataset_budget(file)["runs"][0]["releases"] == 1
    resume(tmp_path / "run")
    assert describe_dataset_budget(file)["runs"][0]["releases"] == 4
    file.unlink()
    with pytest.raises(RunError, match="charged to this budget file, which is not there; restore it"):
        resume(tmp_path / "run")


def test_two_writers_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "b"
    create_dataset_budget(file, "clinic", 3.0, 1e-5)
    held = open_dataset_budget(file)
    with pytest.raises(RunError, match="in use"):
        _fit(tmp_path / "run", file)
    held.close()
    assert not (tmp_path / "run").exists()
    _fit(tmp_path / "run", file)


def test_a_run_that_cannot_begin_leaves_the_budget_free(tmp_path: Path) -> None:
    file = tmp_path / "b"
    create_dataset_budget(file, "clinic", 3.0, 1e-5)
    with pytest.raises(DataLensError):
        _fit(tmp_path / "run", file, epsilon=100.0)
    open_dataset_budget(file).close()
    assert describe_dataset_budget(file)["spent"] == 0


@pytest.mark.parametrize("change", [{"noise": "none"}])
def test_a_run_without_noise_cannot_be_charged(tmp_path: Path, change: dict[str, str]) -> None:
    file = tmp_path / "b"
    create_dataset_budget(file, "clinic", 3.0, 1e-5)
    config = small_config(privacy=change, voting__num_steps=2)
    with pytest.raises(BudgetError, match="without noise"):
        DataLens(config).fit(small_data(), budget_file=file)


def test_names_and_files_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "b"
    create_dataset_budget(file, "clinic", 3.0, 1e-5)
    with pytest.raises(ConfigError, match="budget of 'clinic', not of 'school'"):
        _fit(tmp_path / "run", file, data_name="school")
    with pytest.raises(RunError, match="exists; see what it allows with `datalens budget show`"):
        create_dataset_budget(file, "clinic", 3.0, 1e-5)
    with pytest.raises(ConfigError, match="name is empty"):
        create_dataset_budget(tmp_path / "c", " ", 3.0, 1e-5)
    with pytest.raises(RunError, match=r"no such budget file.*datalens budget create"):
        _fit(tmp_path / "run", tmp_path / "none")
    Ledger.create(tmp_path / "other", {"x": 1}).close()
    with pytest.raises(LedgerError, match="is not a data set's budget"):
        open_dataset_budget(tmp_path / "other")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from datalens.cli.main import main

    file = str(tmp_path / "b")
    assert main(["budget", "create", file, "--data-name", "clinic", "--epsilon", "3"]) == 0
    _fit(tmp_path / "run", Path(file))
    assert main(["budget", "show", file]) == 0
    assert "of 3 at delta 1e-05 (exact accountant), by 1 runs" in capsys.readouterr().out
    assert main(["budget", "show", str(tmp_path / "none")]) == 2


def test_room_for_a_reserved_score_is_asked_for_too(tmp_path: Path) -> None:
    file = tmp_path / "b"
    create_dataset_budget(file, "clinic", 1.0, 1e-5)
    config = small_config(privacy__epsilon=1.0, privacy__score_noise=6.0, voting__noise_stddev=100.0)
    with pytest.raises(BudgetError, match="room for 8 releases but not for the score"):
        DataLens(config.replace(privacy__epsilon=2.0)).fit(
            small_data(), out=tmp_path / "run", budget_file=file
        )
    assert not (tmp_path / "run").exists()


def test_more_epsilon_for_a_run_is_not_more_for_its_data_set(tmp_path: Path) -> None:
    file = tmp_path / "b"
    create_dataset_budget(file, "clinic", 2.6, 1e-5)
    _fit(tmp_path / "run", file, 2.0)
    before = (tmp_path / "run" / "release" / "ledger.jsonl").read_bytes()
    with pytest.raises(ConfigError, match="num_steps = 20"):
        resume(tmp_path / "run", epsilon=9.0, num_steps=20)
    assert (tmp_path / "run" / "release" / "ledger.jsonl").read_bytes() == before
    model = resume(tmp_path / "run", epsilon=9.0)
    assert 2.0 < model.spent_epsilon(1e-5) <= 2.6
    assert describe_dataset_budget(file)["spent"] <= 2.6


@pytest.mark.parametrize(
    ("change", "words"),
    [({"insecure_seed": 3}, "insecure seed"), ({"noise": "continuous-gaussian"}, "floating point")],
)
def test_an_unfit_run_is_marked_in_the_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object], words: str
) -> None:
    from datalens.cli.main import main

    file = tmp_path / "b"
    create_dataset_budget(file, "clinic", 3.0, 1e-5)
    config = small_config(privacy=change, voting__num_steps=2)
    _fit(tmp_path / "fit", file)
    DataLens(config).fit(small_data(), out=tmp_path / "unfit", budget_file=file, stop=stop_after(1))
    resume(tmp_path / "unfit")
    fit, unfit = describe_dataset_budget(file)["runs"]
    assert fit["not_fit_because"] == []
    assert [words in reason for reason in unfit["not_fit_because"]] == [True]
    assert main(["budget", "show", str(file)]) == 0
    said = capsys.readouterr().out
    assert f"NOT FIT FOR PUBLICATION: run {unfit['run']}" in said
    assert words in said
    assert f"run {fit['run']}" not in said


def test_a_budget_restored_from_an_older_copy_is_refused_to_every_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from datalens.cli.main import main

    file, old = tmp_path / "b", tmp_path / "old"
    create_dataset_budget(file, "clinic", 3.0, 1e-5)
    score = small_config(privacy={"epsilon": 1.0, "score_noise": 50.0}, voting__num_steps=2)
    DataLens(score).fit(small_data(), out=tmp_path / "first", budget_file=file)
    shutil.copy(file, old)
    _fit(tmp_path / "second", file)
    shutil.copy(old, file)
    before = file.read_bytes()
    with pytest.raises(LedgerError, match="was seen before"):
        _fit(tmp_path / "third", file)
    assert not (tmp_path / "third").exists()
    with pytest.raises(LedgerError, match="was seen before"):  # all of its own charges are there
        charge_score(tmp_path / "first", 3, 10, {})
    with pytest.raises(LedgerError, match="was seen before"):
        open_shared_budget(file)
    assert main(["budget", "show", str(file)]) == 0
    assert "was seen before" in capsys.readouterr().err
    assert file.read_bytes() == before
    open_dataset_budget(file).close()  # no lock is left
    heads_file().unlink()
    _fit(tmp_path / "third", file)  # the cache is a guard against accidents, no more


def test_another_budget_in_its_place_is_another_budget(tmp_path: Path) -> None:
    file = tmp_path / "b"
    create_dataset_budget(file, "clinic", 3.0, 1e-5)
    _fit(tmp_path / "first", file)
    file.unlink()
    create_dataset_budget(file, "school", 3.0, 1e-5)
    _fit(tmp_path / "second", file)
    assert describe_dataset_budget(file)["data_name"] == "school"


@pytest.mark.parametrize("spent", [0.0, 0.9])
def test_a_plan_that_does_not_fit_is_told_an_epsilon_that_does(tmp_path: Path, spent: float) -> None:
    file = tmp_path / "b"
    create_dataset_budget(file, "clinic", 1.0, 1e-5)
    if spent:
        _fit(tmp_path / "first", file, epsilon=spent)
    with pytest.raises(BudgetError, match="still fits") as refused:
        _fit(tmp_path / "run", file, epsilon=2.0)
    told = re.search(r"--epsilon ([0-9.]+) ", str(refused.value))
    assert told is not None
    fits = float(told[1])
    with pytest.raises(BudgetError, match="still fits"):
        _fit(tmp_path / "run", file, epsilon=1.02 * fits)
    _fit(tmp_path / "run", file, epsilon=fits)


@pytest.mark.parametrize("rest", [0.0, 1e-9])
def test_a_spent_budget_says_that_nothing_is_left(tmp_path: Path, rest: float) -> None:
    """What fits is said in thousandths, rounded down: a rest too small to be named is nothing."""
    event = GaussianEvent(4.0, 20.0, 1)
    ceiling = Accountant().epsilon(event, 1e-5) * (1 + rest)
    create_dataset_budget(tmp_path / "b", "clinic", ceiling, 1e-5)
    with closing(open_dataset_budget(tmp_path / "b")) as opened:
        opened.budget.charge(event)
        with pytest.raises(BudgetError, match="nothing is left"):
            opened.require(event, 2)


def test_its_name_is_text_on_a_runs_page_and_of_one_line(tmp_path: Path) -> None:
    create_dataset_budget(tmp_path / "b", "<b>x</b> [y](z) www.y.z", 3.0, 1e-5)
    model = DataLens(small_config())
    model.fit(small_data(), out=tmp_path / "run", budget_file=tmp_path / "b")
    page = (tmp_path / "run" / "release" / "README.md").read_text()
    assert "<b>" not in page and "[y](z)" not in page and "www.y" not in page
    with pytest.raises(ConfigError, match="cannot be printed"):
        create_dataset_budget(tmp_path / "c", "a\n# b", 1.0, 1e-5)


def test_a_plan_of_sampled_steps_is_told_to_plan_fewer(tmp_path: Path) -> None:
    create_dataset_budget(tmp_path / "b", "clinic", 1.0, 1e-5)
    steps = PoissonGaussianEvent(0.5, 1.0)
    with (
        closing(open_dataset_budget(tmp_path / "b")) as opened,
        pytest.raises(BudgetError, match="plan fewer or noisier ones"),
    ):
        opened.require(steps, 1000)


def test_a_run_is_known_by_the_budget_and_by_all_its_charges(tmp_path: Path) -> None:
    create_dataset_budget(tmp_path / "b", "clinic", 3.0, 1e-5)
    run = Ledger.in_memory({"run_id": "r1"})
    event = GaussianEvent(4.0, 200.0, 1)
    with closing(open_dataset_budget(tmp_path / "b")) as opened:
        terms = {"budget_id": opened.budget_id, "data_name": "clinic"}
        opened.require_run(run, terms)
        run.charge(event)
        with pytest.raises(
            LedgerError, match="holds 0 of the run's 1 releases; it was restored from an older copy"
        ):
            opened.require_run(run, terms)
        opened.budget.charge(event, {"run": "another"})
        with pytest.raises(LedgerError, match="holds 0 of the run's 1"):
            opened.require_run(run, terms)
        opened.budget.charge(event, {"run": "r1"})
        opened.require_run(run, terms)
        for other in (None, {**terms, "budget_id": "x"}, {**terms, "data_name": "school"}):
            with pytest.raises(LedgerError, match="is not the budget that the run was charged to"):
                opened.require_run(run, other)
