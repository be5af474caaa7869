"""A baseline's run: folder, ledger, certificate, resume and verification, as a run of DataLens has them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from baseline_scene import shapes, size_of
from forged import chained
from small_baselines import SMALL

from datalens import DataLens, load_run
from datalens.audit.verify import verify_run
from datalens.baselines.model import Baseline
from datalens.baselines.registry import METHODS, BaselineConfig, baseline, parse_baseline
from datalens.baselines.run import BaselineRun
from datalens.cli.fitness import unfit_line
from datalens.errors import BudgetError, ConfigError, RunError
from datalens.noise.table import build_table
from datalens.privacy import promises
from datalens.privacy.dataset_budget import create_dataset_budget
from datalens.privacy.ledger import Ledger
from datalens.privacy.wording import rounded_up
from datalens.training.heads import heads_file

DP_GAN_UNITS = 512
PRIVATE = [name for name in METHODS if name != "dc-gan"]


def small(method: str, **privacy: Any) -> BaselineConfig:
    given = {"epsilon": 2.0, "delta": 1e-3, "insecure_seed": 0} | privacy
    if method == "dc-gan":
        given |= {"noise": "none"}
    return baseline(method, SMALL[method], **given)


def trained(method: str, out: Path | None = None, **privacy: Any) -> Baseline:
    return Baseline(small(method, **privacy)).fit(shapes(), out=out)


def release_of(root: Path) -> Path:
    (found,) = root.glob("release*")
    return found


@pytest.mark.parametrize("method", METHODS)
def test_a_run_is_trained_shared_loaded_and_verified(tmp_path: Path, method: str) -> None:
    model = trained(method, tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert isinstance(loaded, Baseline) and loaded.config == model.config
    [in_chunks] = loaded.iter_samples(6, seed=1)
    for one, other in zip(model.sample(6, seed=1), in_chunks, strict=True):
        assert np.array_equal(one, other)
    assert verify_run(tmp_path / "run").differences == []
    certificate = json.loads((release_of(tmp_path / "run") / "certificate.json").read_text())
    assert certificate["fit_for_publication"] is False, "an insecure seed"
    if method == "dc-gan":
        assert certificate["guarantee"]["epsilon"] is None
        assert model.epsilon(1e-3) == float("inf")
    else:
        assert model.spent_epsilon(1e-3) <= model.epsilon(1e-3) <= 2.0
        assert certificate["guarantee"]["replace_one"]["epsilon"] >= certificate["guarantee"]["epsilon"]


@pytest.mark.parametrize("method", PRIVATE)
def test_with_noise_of_the_operating_system_it_may_be_published(tmp_path: Path, method: str) -> None:
    trained(method, tmp_path / "run", insecure_seed=None)
    certificate = json.loads((tmp_path / "run" / "release" / "certificate.json").read_text())
    assert certificate["fit_for_publication"] is True
    assert verify_run(tmp_path / "run").differences == []


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_was_stopped_goes_on_to_the_same_generator(tmp_path: Path, method: str) -> None:
    whole = trained(method)
    half = whole.config.settings.num_steps // 2
    steps: list[int] = []
    stopped = Baseline(small(method)).fit(
        shapes(), out=tmp_path / "run", tell=lambda p: steps.append(p.step), stop=lambda: len(steps) == half
    )
    assert stopped.was_stopped and steps == [1, 2][:half]
    resumed = Baseline.resume(tmp_path / "run", shapes())
    assert np.array_equal(resumed.sample(6, seed=0)[0], whole.sample(6, seed=0)[0])
    assert resumed.spent_epsilon(1e-3) == whole.spent_epsilon(1e-3)
    assert verify_run(tmp_path / "run").differences == []


def test_steps_that_were_charged_after_the_last_checkpoint_are_lost_and_not_taken_again(
    tmp_path: Path,
) -> None:
    config = small("pate-gan").model_copy(
        update={"settings": METHODS["pate-gan"].model_validate(SMALL["pate-gan"] | {"num_steps": 40})}
    )
    run = BaselineRun.begin(config, shapes(), tmp_path / "run")
    run.run(stop=lambda: run.steps_done == 2)
    for step in (2, 3):
        run.learner.step(step)  # and then the process dies
    run.close()
    again = BaselineRun.resume(tmp_path / "run", shapes())
    assert any("2 steps were charged and lost" in note for note in again.notes)
    again.run()
    again.close()
    charged = [
        line.body["note"]["step"] for line in Ledger.read(again.folder.ledger).lines if line.kind == "release"
    ]
    assert charged == sorted(charged) and max(map(charged.count, charged)) == 2, (
        "two votes a step, each step once"
    )
    assert len(charged) == 80


@pytest.mark.parametrize("method", ["dp-merf", "pate-gan"])
def test_going_on_with_a_finished_run_does_not_touch_its_checkpoints(tmp_path: Path, method: str) -> None:
    """While a checkpoint is exchanged for itself there is none: a death just then would lose what was released."""
    trained(method, tmp_path / "run")
    before = _checkpoints(tmp_path / "run")
    Baseline.resume(tmp_path / "run", shapes())
    assert _checkpoints(tmp_path / "run") == before != {}


def _checkpoints(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_ino for path in (root / "private" / "checkpoints").rglob("*")}


def test_a_release_that_was_lost_before_its_checkpoint_is_never_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = BaselineRun.begin(small("dp-merf"), shapes(), tmp_path / "run")
    monkeypatch.setattr(run, "checkpoint", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run.run()
    run.close()
    with pytest.raises(RunError, match="what it had released is lost, though charged; begin another run"):
        Baseline.resume(tmp_path / "run", shapes())


@pytest.mark.parametrize("method", PRIVATE)
def test_nothing_that_depends_on_the_records_lies_beside_the_release(tmp_path: Path, method: str) -> None:
    trained(method, tmp_path / "run")
    names = {path.name for path in release_of(tmp_path / "run").iterdir()}
    assert names == {
        "config.json",
        "ledger.jsonl",
        "certificate.json",
        "README.md",
        "generator.safetensors",
        "load_generator.py",
    }
    assert (tmp_path / "run" / "private").stat().st_mode & 0o077 == 0


def test_other_data_and_a_purged_run_are_refused(tmp_path: Path) -> None:
    trained("dp-merf", tmp_path / "run")
    with pytest.raises(RunError, match="not the data of this run"):
        Baseline.resume(tmp_path / "run", shapes(200))
    (tmp_path / "run" / "private" / "secrets.json").unlink()
    with pytest.raises(RunError, match="its private side is gone"):
        Baseline.resume(tmp_path / "run", shapes())


def test_a_run_stays_charged_to_the_data_sets_budget(tmp_path: Path) -> None:
    """A run whose secrets forget the budget file would go on without charging it."""
    budget, root = tmp_path / "budget.jsonl", tmp_path / "run"
    create_dataset_budget(budget, "shapes", epsilon=5.0, delta=1e-3)
    steps: list[int] = []
    model = Baseline(small("pate-gan"))
    model.fit(
        shapes(),
        out=root,
        budget_file=budget,
        tell=lambda p: steps.append(p.step),
        stop=lambda: len(steps) == 2,
    )
    secrets = root / "private" / "secrets.json"
    whole = secrets.read_text()
    secrets.write_text(json.dumps(json.loads(whole) | {"budget_file": None}))
    with pytest.raises(RunError, match="does not name the data set's budget"):
        Baseline.resume(root, shapes())
    secrets.write_text(whole)
    run = Baseline.resume(root, shapes())
    assert len(Ledger.read(budget).events()) == len(run.ledger.events()) == 8


@pytest.mark.parametrize(
    ("method", "epsilon", "words"),
    [
        ("dc-gan", 5.0, "cannot pay for dc-gan without noise"),
        ("g-pate", 1.9, "has room for"),
        ("dp-merf", 1.0, "room"),
    ],
)
def test_a_plan_that_the_data_sets_budget_cannot_pay_as_a_whole_is_refused(
    tmp_path: Path, method: str, epsilon: float, words: str
) -> None:
    """G-PATE's checks and answers each fit 1.9 alone; DC-GAN plans no release, and would charge nothing."""
    budget = tmp_path / "budget.jsonl"
    create_dataset_budget(budget, "shapes", epsilon=epsilon, delta=1e-3)
    with pytest.raises(BudgetError, match=words):
        Baseline(small(method)).fit(shapes(), out=tmp_path / "run", budget_file=budget)
    assert not (tmp_path / "run").exists()
    assert Ledger.read(budget).events() == ()


def test_a_run_of_another_method_is_named(tmp_path: Path) -> None:
    trained("dp-merf", tmp_path / "run")
    with pytest.raises(RunError, match="is a run of dp-merf, and this is for runs of datalens"):
        DataLens.load(tmp_path / "run")
    with pytest.raises(RunError, match="--replay is for runs of DataLens"):
        verify_run(tmp_path / "run", replay=True)


def test_unknown_methods_and_settings_are_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match="method 'gan' is unknown; known: dc-gan, dp-merf"):
        baseline("gan")
    with pytest.raises(ConfigError, match="setting 'num_feature' is unknown; known: "):
        baseline("dp-merf", {"num_feature": 3})
    with pytest.raises(ConfigError, match="epsilon = -1"):
        baseline("dp-merf", epsilon=-1.0)


@pytest.mark.parametrize("method", METHODS)
def test_settings_survive_json(method: str) -> None:
    config = small(method)
    assert parse_baseline(json.loads(json.dumps(config.to_json()))) == config


def test_a_plan_that_does_not_fit_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    config = small("pate-gan")
    settings = config.settings.model_copy(update={"noise_stddev": 0.5})
    with pytest.raises((ConfigError, BudgetError), match="these releases cost"):
        Baseline(config.model_copy(update={"settings": settings})).fit(shapes(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("method", PRIVATE)
@pytest.mark.parametrize("part", ["sensitivity", "count", "replace", "steps"])
def test_a_forged_first_line_is_found(tmp_path: Path, method: str, part: str) -> None:
    """The ledger is written anew with all its hashes right, and claims less than the settings give."""
    trained(method, tmp_path / "run")
    path = release_of(tmp_path / "run") / "ledger.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    header = lines[0]["body"]
    release = header["mechanism"]["releases"][0]
    if part == "sensitivity":
        release["event"][moved_by(release["event"])] /= 2
    elif part == "count":
        release["count"] += 1
    elif part == "replace" and method == "dp-gan":
        header["replace_one_events"] = [{**release["event"], "count": release["count"]}]
    elif part == "replace":
        header["replace_one_events"][0]["sensitivity"] /= 2
    else:
        header["mechanism"]["num_steps"] += 1
    path.write_text(chained(lines))
    heads_file().unlink()
    assert verify_run(tmp_path / "run").differences[0].startswith("ledger.jsonl")


@pytest.mark.parametrize("method", PRIVATE)
@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("charge", "is charged"),
        ("step", "once too often in step 0"),
        ("noise", "a plan of epsilon"),
        ("much noise", "where the noise follows from 2"),
    ],
)
def test_forged_releases_are_found(tmp_path: Path, method: str, part: str, words: str) -> None:
    """Lines that charge less than a release costs, a step twice, and noise that is too small or large."""
    trained(method, tmp_path / "run")
    path = release_of(tmp_path / "run") / "ledger.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    releases = [line for line in lines if line["kind"] == "release"]
    if part == "charge":
        event = releases[-1]["body"]["event"]
        event[moved_by(event)] /= 2
    elif part == "step":
        releases[-1]["body"]["note"] |= {"step": 0}
        once = len({line["body"]["note"]["what"] for line in releases}) == len(releases)
        lines += [json.loads(json.dumps(releases[-1])) | {"index": len(lines)}] * once
        for line in releases:
            line["body"]["note"]["step"] = 0
    else:
        header = lines[0]["body"]
        events = [release["event"] for release in header["mechanism"]["releases"]]
        events += [*header["planned_events"], *header["replace_one_events"]]
        for event in [*events, *(line["body"]["event"] for line in lines[1:])]:
            change_noise(event, 0.25 if part == "noise" else 4.0)
    path.write_text(chained(lines))
    heads_file().unlink()
    assert any(words in difference for difference in verify_run(tmp_path / "run").differences)


@pytest.mark.parametrize("name", ["sampling_probability", "noise_multiplier", "count"])
@pytest.mark.parametrize("place", ["certificate.json", "ledger.jsonl"])
def test_changed_terms_of_sampled_steps_are_found(tmp_path: Path, place: str, name: str) -> None:
    """A little more of either, everywhere in the ledger or in the certificate alone."""
    trained("dp-gan", tmp_path / "run")
    path = release_of(tmp_path / "run") / place
    if place == "certificate.json":
        certificate = json.loads(path.read_text())
        (release,) = certificate["noise"]["releases"]
        assert set(release) == {"what", "sampling_probability", "noise_multiplier", "count"}
        release[name] = release[name] * 1.01 if name != "count" else release[name] + 1
        path.write_text(json.dumps(certificate))
        assert any(name in line for line in verify_run(tmp_path / "run").differences)
        return
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    header = lines[0]["body"]
    events = [release["event"] for release in header["mechanism"]["releases"]] + header["planned_events"]
    for event in [*events, *(line["body"]["event"] for line in lines[1:])]:
        event[name] = event[name] * 0.99 if name != "count" else event[name] + 1
    path.write_text(chained(lines))
    heads_file().unlink()
    assert verify_run(tmp_path / "run").differences[0].startswith("ledger.jsonl")


def test_an_epsilon_of_sampled_steps_that_is_said_too_small_is_found(tmp_path: Path) -> None:
    """An account may find a little more than the least; nothing below the least passes, and nothing far above."""
    trained("dp-gan", tmp_path / "run")
    path = release_of(tmp_path / "run") / "certificate.json"
    whole = json.loads(path.read_text())
    for factor in (0.99, 1.5):
        for where in (("spent",), ("guarantee", "replace_one")):
            certificate = json.loads(json.dumps(whole))
            part = certificate
            for key in where:
                part = part[key]
            part["epsilon"] *= factor
            path.write_text(json.dumps(certificate))
            assert any("epsilon is" in line for line in verify_run(tmp_path / "run").differences)


@pytest.mark.parametrize(("method", "steps"), [("dp-gan", [0, 0, 1, 1, 2]), ("gs-wgan", [0, 1, 3])])
def test_steps_of_critics_that_a_crash_cut_off_are_charged_and_not_taken_again(
    tmp_path: Path, method: str, steps: list[int]
) -> None:
    """The process dies in the midst of a ledger line, which stands for a step; what was charged since is lost."""
    root = tmp_path / "run"
    run = BaselineRun.begin(small(method), shapes(), root)
    run.run(stop=lambda: run.steps_done == 2)
    run.learner.step(2)
    run.close()
    path = release_of(root) / "ledger.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    again = Baseline.resume(root, shapes())
    lines = again.ledger.lines
    (recovered,) = (line for line in lines if line.kind == "recovered")
    charged = [line.body["note"]["step"] for line in lines if line.kind == "release"]
    assert recovered.body["events"] and charged == steps
    assert len(again.ledger.events()) <= sum(p.count for p in planned_of(method))
    assert verify_run(root).differences == []
    forged = [json.loads(line.encode()) for line in lines]
    for line in forged:
        if line["kind"] == "recovered":
            event = line["body"]["events"][0]
            event[moved_by(event)] /= 2
    content = path.read_bytes().splitlines(keepends=True)
    (cut,) = (line for line in content if line.endswith(b"#cut-off\n"))
    text = chained(forged).encode().splitlines(keepends=True)
    text.insert(content.index(cut), cut)
    path.write_bytes(b"".join(text))
    heads_file().unlink()
    assert any("less than the costliest" in line for line in verify_run(root).differences)


def planned_of(method: str) -> tuple[Any, ...]:
    config = small(method)
    return config.settings.plan(config.privacy, size_of(shapes())).planned()


@pytest.mark.parametrize("method", ["dp-gan", "gs-wgan"])
def test_without_noise_the_certificate_promises_nothing(tmp_path: Path, method: str) -> None:
    model = trained(method, tmp_path / "run", noise="none")
    certificate = json.loads((release_of(tmp_path / "run") / "certificate.json").read_text())
    assert certificate["guarantee"]["epsilon"] is None and model.epsilon(1e-3) == float("inf")
    assert certificate["guarantee"]["replace_one"]["epsilon"] is None
    assert verify_run(tmp_path / "run").differences == []


def test_lots_of_records_of_one_person_are_verified_too(tmp_path: Path) -> None:
    trained("dp-gan", tmp_path / "run", group_size=3, epsilon=9.0, accountant="rdp-classic")
    certificate = json.loads((release_of(tmp_path / "run") / "certificate.json").read_text())
    (release,) = certificate["noise"]["releases"]
    assert release["sampling_probability"] == pytest.approx(1 - 0.9**3)
    assert verify_run(tmp_path / "run").differences == []


def test_what_charges_nothing_and_promises_nothing_has_spent_no_finite_epsilon(tmp_path: Path) -> None:
    model = trained("dc-gan", tmp_path / "run")
    release = release_of(tmp_path / "run")
    certificate = json.loads((release / "certificate.json").read_text())
    _names_no_finite_cost(certificate)
    assert model.spent_epsilon(1e-3) == float("inf")
    assert verify_run(tmp_path / "run").differences == []
    certificate["spent"]["epsilon"] = 0.0
    (release / "certificate.json").write_text(json.dumps(certificate))
    assert any("spent: epsilon" in line for line in verify_run(tmp_path / "run").differences)


def _names_no_finite_cost(certificate: dict[str, Any]) -> None:
    spent, guarantee = certificate["spent"], certificate["guarantee"]
    costs = [spent["epsilon"], spent["mu"], guarantee["epsilon"], guarantee["replace_one"]["epsilon"]]
    costs += spent["under_other_accountants"].values()
    costs += guarantee["under_other_accountants"].values()
    assert costs == [None] * 10


def test_gs_wgan_as_published_says_everywhere_that_there_is_no_guarantee(tmp_path: Path) -> None:
    root = tmp_path / "run"
    model = trained("gs-wgan", root, as_published=True, insecure_seed=None)
    release = release_of(root)
    certificate = json.loads((release / "certificate.json").read_text())
    assert release.name == promises.UNFIT_RELEASE_FOLDER
    assert certificate["not_fit_because"] == [promises.AS_PUBLISHED]
    assert certificate["guarantee"]["epsilon"] is None and model.epsilon(1e-3) == float("inf")
    _names_no_finite_cost(certificate)
    assert model.spent_epsilon(1e-3) == float("inf")
    assert (release / "README.md").read_text().count("no guarantee") >= 2
    assert (unfit_line(model.config) or "").startswith("NO GUARANTEE: gs-wgan as published")
    assert verify_run(root).differences == []
    with pytest.raises(BudgetError, match="cannot pay for gs-wgan as published, which has no guarantee"):
        create_dataset_budget(tmp_path / "b.jsonl", "shapes", epsilon=1.0, delta=1e-3)
        Baseline(model.config).fit(shapes(), out=tmp_path / "other", budget_file=tmp_path / "b.jsonl")
    config = json.loads((release / "config.json").read_text())
    config["config"]["privacy"]["as_published"] = False
    (release / "config.json").write_text(json.dumps(config))
    assert len(verify_run(root).differences) > 2


@pytest.mark.parametrize(
    ("method", "setting"),
    [
        ("dc-gan", "batch_size"),
        ("dp-merf", "images_per_class"),
        ("pate-gan", "batch_size"),
        ("g-pate", "batch_size"),
        ("dp-gan", "generated_batch"),
        ("dp-gan", "images_per_class"),
        ("gs-wgan", "batch_size"),
    ],
)
@pytest.mark.parametrize("value", [1, 10**18])
def test_a_batch_that_batch_norm_or_memory_cannot_take_is_refused(
    method: str, setting: str, value: int
) -> None:
    with pytest.raises(ConfigError, match=f"^{setting} = {value}: input should be"):
        baseline(method, {setting: value})


@pytest.mark.parametrize("method", SMALL)
def test_a_setting_that_would_do_nothing_is_refused(method: str) -> None:
    with pytest.raises(ConfigError, match=f"score_noise = 50 with method {method}: only runs of datalens"):
        baseline(method, score_noise=50.0)


def test_as_published_is_for_methods_that_have_such_a_form(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="with method dp-gan: is for gs-wgan, whose published form"):
        baseline("dp-gan", as_published=True)
    config = small("pate-gan")
    config = config.model_copy(update={"privacy": config.privacy.model_copy(update={"as_published": True})})
    with pytest.raises(ConfigError, match="with method pate-gan: is for gs-wgan"):
        Baseline(config).fit(shapes(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_page_says_how_likely_a_person_is_in_a_lot(tmp_path: Path) -> None:
    trained("dp-gan", tmp_path / "run")
    page = (release_of(tmp_path / "run") / "README.md").read_text()
    assert "critic gradient: 8 times with random noise" in page
    assert "each from a lot that a person is in with probability 0.1" in page
    assert promises.REPLACE_ONE_BY_TWO_TEXT in page


def test_the_page_for_people_says_what_replacing_a_record_costs(tmp_path: Path) -> None:
    trained("dp-merf", tmp_path / "run")
    certificate = json.loads((release_of(tmp_path / "run") / "certificate.json").read_text())
    epsilon = certificate["guarantee"]["replace_one"]["epsilon"]
    page = " ".join((release_of(tmp_path / "run") / "README.md").read_text().split())
    assert f"If a record is exchanged for another instead: epsilon {rounded_up(epsilon)} (counted" in page


def test_settings_of_one_method_under_the_name_of_another_are_refused(tmp_path: Path) -> None:
    trained("dp-merf", tmp_path / "run")
    path = release_of(tmp_path / "run") / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"method": "g-pate"}))
    with pytest.raises(RunError, match="is not a run's settings"):
        load_run(tmp_path / "run")


def moved_by(event: dict[str, Any]) -> str:
    """The name of what says how much one person moves."""
    return "sampling_probability" if "sampling_probability" in event else "sensitivity"


def change_noise(event: dict[str, Any], factor: float) -> None:
    """More or less noise, with the slack that belongs to it."""
    name = "noise_multiplier" if "noise_multiplier" in event else "noise_stddev"
    event[name] *= factor
    units = DP_GAN_UNITS if name == "noise_multiplier" else 1
    slack = build_table(units * event[name]).slack
    event["slack"] = {"eta": slack.eta, "tau": slack.tau}


@pytest.mark.parametrize("method", METHODS)
def test_records_that_lie_backwards_train_as_any(method: str) -> None:
    """PyTorch takes no arrays with negative strides."""
    records = shapes()
    backwards = dataclasses.replace(
        records, images=records.images[::-1].copy()[::-1], labels=records.labels[::-1].copy()[::-1]
    )
    runs = (Baseline(small(method)).fit(given) for given in (records, backwards))
    one, other = (run.sample(4, seed=0)[0] for run in runs)
    assert np.array_equal(one, other)


def test_the_owner_is_told_where_noise_drowns_the_classes() -> None:
    assert any(note.startswith("moments: with") for note in trained("moments", epsilon=0.05).notes)
    assert not any(note.startswith("moments: with") for note in trained("moments", epsilon=50.0).notes)


def test_a_run_whose_ledger_was_cut_off_among_unlike_releases_is_verified(tmp_path: Path) -> None:
    """What is charged for the rest of a line has the least noise of any release and the largest slack of any."""
    run = BaselineRun.begin(small("moments"), shapes(), tmp_path / "run")
    run.run(stop=lambda: run.steps_done == 1)
    run.learner.step(1)
    run.close()
    ledger = release_of(tmp_path / "run") / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-20])
    again = Baseline.resume(tmp_path / "run", shapes())
    assert [line.kind for line in again.ledger.lines].count("recovered") == 1
    found = verify_run(tmp_path / "run")
    assert found.agrees, found.differences
