"""A tuning from candidates to a verified release: what it is charged, what it shows, what a crash leaves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from datalens import DataLens
from datalens.audit.verify import verify_run
from datalens.cli.main import main
from datalens.data.images import LabelledImages
from datalens.errors import BudgetError, ConfigError, RunError
from datalens.privacy.accountant import Accountant
from datalens.privacy.dataset_budget import (
    create_dataset_budget,
    describe_dataset_budget,
    open_dataset_budget,
)
from datalens.privacy.events import TuningEvent
from datalens.privacy.ledger import Ledger
from datalens.training import tuning
from datalens.training.charged_score import charge_score, publish_score, require_score
from datalens.training.tuning_plan import TuningPlan, TuningSettings, plan_tuning
from tests.small_runs import copy, resume, small_config, small_data, train

SETTINGS = TuningSettings(expected_tries=2.0, held_out=0.2, num_samples=40, epochs=1)
SHAPE = (1, 8, 8)


def small_plan(**changes) -> TuningPlan:
    config = small_config(privacy__epsilon=10.0, **changes)
    candidates = [config, config.replace(voting__top_k=3)]
    return plan_tuning(candidates, SETTINGS, config.privacy, 60, SHAPE)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory) -> tuple[Path, TuningPlan, tuning.Try]:
    root = tmp_path_factory.mktemp("tuned") / "run"
    plan = small_plan()
    return root, plan, tuning.tune(plan, small_data(), root, draw_tries=lambda *_: 3)


def test_every_candidate_and_the_score_keep_to_one_trys_share():
    plan = small_plan()
    mu = plan.event.mu
    for config in plan.candidates:
        steps = tuning.draw_run(config, small_data())[1]
        assert steps.event.mu * steps.num_steps**0.5 <= mu
        assert config.voting.num_teachers * (config.voting.shard_size or 60) + plan.held_slots <= 60
    assert 0.9 * mu < plan.score.event(1).mu <= mu
    assert 9 < plan.authorisation.guarantee() <= 10


def test_release_is_verified_and_certifies_the_cost_of_the_tuning(tuned):
    root, plan, best = tuned
    found = verify_run(root, replay=True)
    assert found.differences == []
    assert found.replay is not None
    assert found.replay["bit_for_bit"]
    certificate = json.loads((root / "release" / "certificate.json").read_bytes())
    whole = Accountant().epsilon(plan.event, 1e-5)
    assert certificate["guarantee"]["epsilon"] == pytest.approx(whole)
    assert certificate["spent"]["epsilon"] == pytest.approx(whole)
    assert certificate["guarantee"]["accountant_used"] == "rdp"
    assert certificate["noise"]["stddevs"] == sorted({best.plan.noise_stddev, plan.score.noise_stddev})
    model = DataLens.load(root)
    assert model.config.privacy.epsilon == 10.0  # not one try's share
    assert model.epsilon(1e-5) == pytest.approx(whole)
    assert model.sample(3)[0].shape == (3, 1, 8, 8)


def test_best_noisy_score_wins(tuned):
    root, _, best = tuned
    tries = [
        json.loads(path.read_bytes()) for path in sorted((root / "private" / "tries").glob("*/try.json"))
    ]
    assert len(tries) == 3
    assert best.noisy_right == max(made["noisy_right"] for made in tries)
    [winner] = [
        path.parent
        for path in (root / "private" / "tries").glob("*/generator.safetensors")
        if path.read_bytes() == (root / "release" / "generator.safetensors").read_bytes()
    ]
    assert json.loads((winner / "try.json").read_bytes())["noisy_right"] == best.noisy_right


def test_release_says_nothing_of_other_tries(tuned, tmp_path):
    """However many tries, the same files with the same names in their tables, and no times."""
    root, plan, _ = tuned
    one = tmp_path / "one"
    tuning.tune(plan, small_data(), one, draw_tries=lambda *_: 1)

    def shape_of(value):
        if isinstance(value, dict):
            return {name: shape_of(part) for name, part in value.items()}
        return type(value).__name__

    def seen(run: Path):
        release = run / "release"
        lines = [shape_of(json.loads(line)) for line in (release / "ledger.jsonl").read_text().splitlines()]
        certificate = shape_of(json.loads((release / "certificate.json").read_bytes()))
        return sorted(path.name for path in release.iterdir()), lines, certificate

    assert seen(root) == seen(one)
    assert {path.stat().st_mtime for path in (root / "release").iterdir()} == {0.0}
    assert (root / "release").stat().st_mtime == 0.0
    assert (root / "private").stat().st_mode & 0o777 == 0o700
    generators = [path.read_bytes() for path in (root / "private" / "tries").glob("*/generator.safetensors")]
    assert len(set(generators)) == 3  # every try has noise of its own


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("ledger.jsonl", '"noisy_right":', '"noisy_right":1'),
        ("certificate.json", '"mu": ', '"mu": 1'),
        ("config.json", '"epsilon": 10.0', '"epsilon": 1.0'),
    ],
)
def test_verify_finds_a_changed_tuned_release(tuned, tmp_path, name, old, new):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(tuned[0] / "release", copy / "release")
    path = copy / "release" / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    assert not verify_run(copy).agrees


def test_a_crash_leaves_the_charge_and_no_release(tmp_path, monkeypatch):
    plan, root, shared = small_plan(), tmp_path / "run", tmp_path / "budget.jsonl"
    create_dataset_budget(shared, "ours", 100.0, 1e-5)

    def fail(*_, **__):
        raise RuntimeError("power cut")

    monkeypatch.setattr(tuning, "_one_try", fail)
    budget = open_dataset_budget(shared)
    with pytest.raises(RuntimeError, match="power cut"):
        tuning.tune(plan, small_data(), root, budget_file=budget)
    budget.close()
    with Ledger.open(root / "private" / "tuning.jsonl") as ledger:
        assert ledger.events() == (plan.event,) or list(ledger.events()) == [plan.event]
    assert describe_dataset_budget(shared)["spent"] == pytest.approx(plan.authorisation.guarantee())
    assert list((root / "release").iterdir()) == []
    with pytest.raises(RunError, match="holds no run"):
        verify_run(root)
    with pytest.raises(RunError, match="exists already"):
        tuning.tune(plan, small_data(), root)


def test_dataset_budget_that_is_too_small_refuses_before_anything(tmp_path):
    shared, root = tmp_path / "budget.jsonl", tmp_path / "run"
    create_dataset_budget(shared, "ours", 1.0, 1e-5)
    budget = open_dataset_budget(shared)
    with pytest.raises(BudgetError, match="room for 0 of 1"):
        tuning.tune(small_plan(), small_data(), root, budget_file=budget)
    budget.close()
    assert not root.exists()


def test_held_out_records_teach_nobody_and_are_the_only_ones_scored(monkeypatch):
    plan, seen = small_plan(), {}
    data = small_data()

    def watch(images, labels, test_images, test_labels, **_):
        seen["images"] = test_images
        return type("Result", (), {"last_accuracy": 1.0})()

    monkeypatch.setattr(tuning, "evaluate_utility", watch)
    made = tuning._one_try(plan, data, lambda: None)
    taught = {int(r) for r in made.partition.record_of_slot.ravel() if r >= 0}
    scored = {int(np.flatnonzero((data.images == image).all(axis=(1, 2, 3)))[0]) for image in seen["images"]}
    assert scored
    assert not taught & scored
    assert len(scored) == plan.held_slots == 12


def test_count_moves_by_at_most_one_with_one_record(monkeypatch):
    """The score's sensitivity, through the real function: one record gone, the count less by one or the same."""
    plan, data = small_plan(), small_data()
    config = plan.candidates[0]
    facts, _, partition, *_ = tuning.draw_run(config, data)
    right = np.arange(60) % 12 != 0  # five are wrong, so some of the twelve held out are right
    generator = facts.student_plan.generator()

    def judge(images, labels, test_images, test_labels, **_):
        named = [
            right[int(np.flatnonzero((data.images == image).all(axis=(1, 2, 3)))[0])] for image in test_images
        ]
        return type("Result", (), {"last_accuracy": float(np.mean(named))})()

    monkeypatch.setattr(tuning, "evaluate_utility", judge)
    monkeypatch.setattr(tuning, "sample_images", lambda *_: (None, None))
    whole = tuning._count_right(plan, data, partition, facts, generator)
    moves = set()
    for gone in range(60):
        keep = np.arange(60) != gone
        less = LabelledImages(data.images[keep], data.labels[keep], data.classes, data.name, public=False)
        moves.add(whole - tuning._count_right(plan, less, partition.without(gone), facts, generator))
    assert moves == {0, 1}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"privacy__insecure_seed": 1}, "insecure seed"),
        ({"privacy__noise": "continuous-gaussian"}, "insecure seed"),
        ({"voting__noise_stddev": 1.0}, "candidate 1"),
        ({"voting__shard_size": 6}, "not held out"),
        ({"voting__num_teachers": 50}, "not held out"),
    ],
)
def test_what_cannot_be_tuned_is_refused_in_one_line(changes, words):
    with pytest.raises((ConfigError, BudgetError), match=words) as caught:
        small_plan(**changes)
    assert "\n" not in str(caught.value)


def test_group_size_multiplies_both_halves():
    plan = small_plan(privacy__group_size=2)
    assert plan.score.sensitivity == 2.0
    assert plan.score.event(1).mu <= plan.event.mu
    assert isinstance(plan.event, TuningEvent)


def test_command_line_from_candidates_to_release(tmp_path, capsys):
    file, root = tmp_path / "candidates.toml", tmp_path / "run"
    file.write_text("[[candidate]]\nvoting = {top_k = 5}\n[[candidate]]\nvoting = {top_k = 9}\n")
    small = tmp_path / "small.toml"
    small.write_text(
        "[voting]\nnum_teachers = 100\nbatch_size = 4\nnum_steps = 3\n[student]\nhidden_units = 16\nchannels = 4\n"
    )
    words = ["tune", "shapes", "--out", str(root), "--candidates", str(file), "--config", str(small)]
    words += ["--epsilon", "10", "--expected-tries", "1.5", "-n", "60", "--epochs", "1"]
    assert main(words) == 0
    capsys.readouterr()
    assert main(["verify", str(root)]) == 0
    ledger = (root / "release" / "ledger.jsonl").read_bytes()
    assert main(["sample", str(root), "-n", "3", "--out", str(tmp_path / "s.npz")]) == 0
    capsys.readouterr()
    assert main(["train", "shapes", "--resume", str(root)]) == 2
    assert "spent all of its epsilon at once, so it cannot go on" in capsys.readouterr().err
    judge = [
        "evaluate",
        str(root),
        "--data",
        "shapes",
        "-n",
        "60",
        "--epochs",
        "1",
        "--classifier",
        "logistic",
    ]
    assert main(judge) == 0
    assert main([*judge, "--charge"]) == 0  # drawn shapes are public, so nothing is asked of people's records
    assert main(["verify", str(root)]) == 0
    assert (root / "release" / "ledger.jsonl").read_bytes() == ledger
    capsys.readouterr()
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_class_list_that_nobody_declared_is_refused_before_anything_is_charged(tmp_path, capsys):
    from dataclasses import replace

    found = replace(small_data(), classes_from_data=True)
    with pytest.raises(ConfigError, match="--labels-are-public"):
        tuning.tune(small_plan(), found, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    tuning.tune(small_plan(privacy__labels_are_public=True), found, tmp_path / "run", draw_tries=lambda *_: 1)
    assert verify_run(tmp_path / "run").agrees

    candidates, own = tmp_path / "candidates.toml", tmp_path / "own.npz"
    candidates.write_text("[[candidate]]\nvoting = {top_k = 5}\n[[candidate]]\nvoting = {top_k = 9}\n")
    np.savez(own, x=small_data().images, y=small_data().labels)
    words = ["tune", str(own), "--out", str(tmp_path / "other"), "--candidates", str(candidates)]
    assert main([*words, "--epsilon", "10", "--num-records", "60"]) == 2
    complaint = capsys.readouterr().err
    assert "--classes" in complaint
    assert "--labels-are-public" in complaint
    assert len(complaint.splitlines()) == 1
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "two or more"),
        ("[[candidate]]\nvoting = {top_k = 5}\n", "two or more"),
        ("[[candidate]]\nprivacy = {epsilon = 5.0}\n[[candidate]]\n", "may have tables"),
        ("[[candidate]]\nvoting = {top = 5}\n[[candidate]]\n", "candidate 1"),
        ("[[candidate]\n", "TOML"),
    ],
)
def test_bad_candidates_are_one_line(tmp_path, capsys, text, words):
    file = tmp_path / "candidates.toml"
    file.write_text(text)
    status = main(
        ["tune", "shapes", "--out", str(tmp_path / "run"), "--candidates", str(file), "--epsilon", "1"]
    )
    complaint = capsys.readouterr().err
    assert status == 2
    assert words in complaint
    assert len(complaint.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_tuned_run_neither_goes_on_nor_pays_for_a_score(tuned):
    root, _, _ = tuned
    before = {path: path.read_bytes() for path in (root / "release").iterdir()}
    for ask in (
        lambda: resume(root, epsilon=20.0),
        lambda: charge_score(root, 3, 10, {}),
        lambda: require_score(root),
    ):
        with pytest.raises(RunError, match=r"was made by `datalens tune`.*so it cannot"):
            ask()
    assert {path: path.read_bytes() for path in (root / "release").iterdir()} == before


def test_the_data_card_says_that_settings_were_tuned_and_that_epsilon_covers_it(tuned, tmp_path):
    root, _, best = tuned
    card = (root / "release" / "README.md").read_text()
    assert "The settings were tuned on the records: of 2 candidates" in card
    assert "The epsilon above covers all tries" in card
    steps = best.facts.num_steps
    made = card[card.index("## How it was made") : card.index("## What was taken")]
    assert (
        f"was used, {steps} times with random noise of {best.plan.noise_stddev:g} votes on every pixel ("
        in made
    )
    assert "The settings were tuned" in made
    assert (
        made.count(f"{tuned[1].score.noise_stddev:g}") == 1
    )  # the score's noise, where the score is spoken of
    assert f"count had noise of {tuned[1].score.noise_stddev:g} (" in made
    assert "Apart from the training" not in made  # its one count is told with the tuning
    train(tmp_path / "plain", steps=1)
    assert "tuned" not in (tmp_path / "plain" / "release" / "README.md").read_text()


def test_a_score_on_people_beside_a_tuned_run_is_found(tuned, tmp_path):
    root = copy(tuned[0], tmp_path / "run")
    publish_score(root, 3, 10, {})
    assert verify_run(root).differences == []
    path = root / "release" / "scores.json"
    path.write_text(path.read_text().replace("true", "false").replace('"right"', '"line_hash": "0", "right"'))
    assert any("pays for score 0" in text for text in verify_run(root).differences)
