"""A score on people's data: a noisy count that the ledger pays for, or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import resume, small_config, train

from datalens.audit.verify import verify_run
from datalens.errors import BudgetError, ConfigError, DataLensError
from datalens.evaluation.fitting import batches_of
from datalens.mechanisms.gaussian_sum import GaussianSum
from datalens.models.classifiers import build_classifier
from datalens.noise import make_noise
from datalens.privacy.accountant import Accountant
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.events import NoiseKind
from datalens.privacy.ledger import Ledger
from datalens.training.charged_score import charge_score, publish_score
from datalens.training.plan import plan_releases

HOW = {"classifier": "cnn", "epochs": 4}


def test_a_score_is_noisy_charged_and_verified(tmp_path: Path) -> None:
    root = tmp_path / "run"
    before = train(root, privacy__score_noise=50.0)
    score = charge_score(root, 700, 1000, HOW, test_count_is_public=True)
    assert abs(score["noisy_right"] - 700) < 50 * 8
    assert score["accuracy"] == pytest.approx(min(1, max(0, score["noisy_right"] / 1000)))
    ledger = Ledger.read(root / "release" / "ledger.jsonl")
    assert ledger.events()[-1].mu == pytest.approx(1 / 50)
    spent = Accountant().epsilon(ledger.events(), 1e-5)
    assert before.spent_epsilon(1e-5) < spent <= 2.0
    assert verify_run(root, replay=True).differences == []
    with pytest.raises(BudgetError, match="was released already"):
        charge_score(root, 700, 1000, HOW)
    assert len(json.loads((root / "release" / "scores.json").read_text())["scores"]) == 1
    assert len(resume(root).ledger.events()) == len(ledger.events())
    assert verify_run(root).differences == []


def test_the_page_tells_training_and_score_apart(tmp_path: Path) -> None:
    root = tmp_path / "run"
    model = train(root, privacy__score_noise=50.0, steps=2)
    page = (root / "release" / "README.md").read_text()
    votes = f"with random noise of {model.facts.noise_stddev:g} votes on every pixel"
    assert f"was used, 2 times {votes} (" in page
    assert "Apart from the training" not in page
    charge_score(root, 700, 1000, HOW)
    page = (root / "release" / "README.md").read_text()
    assert f"was used, 2 times {votes} (" in page
    assert "was released, once with random noise of 50; one person moves it by at most 1." in page
    certificate = json.loads((root / "release" / "certificate.json").read_text())
    assert [(item["what"], item["count"]) for item in certificate["noise"]["releases"]] == [
        ("votes", 2),
        ("score", 1),
    ]
    assert verify_run(root).differences == []


def test_without_a_declared_count_only_the_noisy_one_is_released(tmp_path: Path) -> None:
    train(tmp_path / "run", privacy__score_noise=50.0, steps=1)
    score = charge_score(tmp_path / "run", 712, 1931, HOW)
    assert score["accuracy"] is None
    assert score["num_test"] is None
    shared = b"".join(path.read_bytes() for path in (tmp_path / "run" / "release").iterdir())
    assert b"1931" not in shared


def test_no_room_was_left_no_score(tmp_path: Path) -> None:
    root = tmp_path / "run"
    train(root, steps=1)
    before = (root / "release" / "ledger.jsonl").read_bytes()
    with pytest.raises(BudgetError, match="no room was left for a score"):
        charge_score(root, 7, 10, HOW)
    assert (root / "release" / "ledger.jsonl").read_bytes() == before
    assert not (root / "release" / "scores.json").exists()


def test_a_score_on_public_data_costs_nothing(tmp_path: Path) -> None:
    root = tmp_path / "run"
    train(root, steps=1)
    events = Ledger.read(root / "release" / "ledger.jsonl").events()
    assert publish_score(root, 7, 10, HOW)["accuracy"] == 0.7
    assert Ledger.read(root / "release" / "ledger.jsonl").events() == events
    assert verify_run(root).differences == []


def test_a_score_that_nobody_paid_for_is_found(tmp_path: Path) -> None:
    root = tmp_path / "run"
    train(root, steps=1)
    publish_score(root, 7, 10, HOW)
    path = root / "release" / "scores.json"
    value = json.loads(path.read_text())
    value["scores"][0] |= {"data_is_public": False, "line_hash": "0" * 64}
    path.write_text(json.dumps(value))
    assert any("pays for score 0" in text for text in verify_run(root).differences)


def test_the_plan_leaves_exactly_the_room_of_one_score() -> None:
    config = small_config(privacy__score_noise=20.0, voting__num_steps=None, voting__noise_stddev=60.0)
    plan = plan_releases(config, 64)
    without = plan_releases(config.replace(privacy__score_noise=None), 64)
    assert plan.num_steps <= without.num_steps
    assert plan.authorisation.epsilon <= 2.0
    with pytest.raises(ConfigError, match="score_noise"):
        plan_releases(config.replace(privacy__score_noise=0.3), 64)


def test_the_sum_charges_before_it_draws() -> None:
    ledger = Ledger.in_memory()
    budget = Budget(ledger, Authorisation(1.0, 1e-5))
    mechanism = GaussianSum(1.0, 30.0, make_noise(NoiseKind.ROUNDED))
    budgets = [Budget(Ledger.in_memory(), Authorisation(1.0, 1e-5)) for _ in range(500)]
    draws = np.array([mechanism.release(np.array([5]), one, {}).value[0] for one in budgets])
    assert 24 < draws.std() < 36
    release = mechanism.release(np.array([5, 6]), budget, {"score": "x"})
    assert release.line_hash == ledger.lines[-1].hash
    with pytest.raises(ConfigError, match="whole numbers"):
        mechanism.release(np.array([0.5]), budget, {})
    silent = GaussianSum(100.0, 1.0, make_noise(NoiseKind.ROUNDED))
    with pytest.raises(BudgetError):
        silent.release(np.array([5]), budget, {})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("scores.json", "{"),
        ("scores.json", "[]"),
        ("scores.json", '{"scores": 3}'),
        ("certificate.json", "{"),
        ("config.json", "{}"),
    ],
)
def test_what_cannot_be_read_is_found_before_anything_is_charged(
    tmp_path: Path, name: str, content: str
) -> None:
    root = tmp_path / "run"
    train(root, steps=1, privacy__score_noise=50.0)
    good = (root / "release" / name).read_text() if name != "scores.json" else '{"scores": []}'
    (root / "release" / name).write_text(content)
    before = (root / "release" / "ledger.jsonl").read_bytes()
    with pytest.raises(DataLensError):
        charge_score(root, 7, 10, HOW)
    assert (root / "release" / "ledger.jsonl").read_bytes() == before
    (root / "release" / name).write_text(good)
    charge_score(root, 7, 10, HOW)
    assert verify_run(root).differences == []


@pytest.mark.parametrize("kind", ["cnn", "mlp", "logistic"])
def test_one_record_less_changes_what_is_counted_of_no_other(kind: str) -> None:
    """The count's sensitivity of 1, down to the last bit of a logit, also where the last batch is not whole."""
    net = build_classifier(kind, (1, 12, 12), 4, torch.Generator().manual_seed(0)).eval()
    images = np.random.default_rng(0).integers(0, 256, (607, 1, 12, 12), dtype=np.uint8)
    whole = torch.cat(list(batches_of(net, images, torch.device("cpu"))))
    assert len(whole) == len(images)
    for gone in (0, 499, 500, 606):
        left = np.arange(len(images)) != gone
        fewer = torch.cat(list(batches_of(net, images[left], torch.device("cpu"))))
        assert torch.equal(fewer, whole[torch.from_numpy(left)])
