"""A run of DP-SGD: what it releases, charges and promises, and that it goes on where it was."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from baseline_scene import context_for, shapes, size_of
from forged import chained
from torch.nn import functional

from datalens.audit.second_releases import KINDS
from datalens.audit.verify import verify_run
from datalens.dpsgd import DPSGDClassifier, parse_classifier
from datalens.dpsgd.classifier import ClassifierRun, facts_of
from datalens.dpsgd.facts import ClassifierConfig, ClassifierFacts
from datalens.dpsgd.learner import ClassifierLearner
from datalens.errors import BudgetError, ConfigError, DataError, RunError
from datalens.methods.opening import decide
from datalens.models.small_classifiers import num_weights, small_classifier
from datalens.models.small_kind import SmallKind
from datalens.privacy import promises
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.dataset_budget import create_dataset_budget
from datalens.privacy.events import PoissonGaussianEvent
from datalens.privacy.ledger import Ledger
from datalens.training.heads import heads_file
from datalens.training.run_folder import RunFolder

SMALL = {"model": "linear", "num_steps": 4, "batch_size": 40}
PRIVACY = {"epsilon": 2.0, "delta": 1e-3, "insecure_seed": 0}


def small(settings: dict[str, Any] | None = None, **privacy: Any) -> ClassifierConfig:
    return parse_classifier({"settings": SMALL | (settings or {}), "privacy": PRIVACY | privacy})


def trained(
    out: Path | None = None, settings: dict[str, Any] | None = None, **privacy: Any
) -> DPSGDClassifier:
    return DPSGDClassifier(small(settings, **privacy)).fit(shapes(), out=out)


def begun(root: Path, config: ClassifierConfig | None = None) -> Any:
    config = config or small()
    return ClassifierRun.begun(decide(ClassifierFacts, config, shapes(), None), shapes(), root, None)


def release_of(root: Path) -> Path:
    (found,) = root.glob("release*")
    return found


def certificate_of(root: Path) -> dict[str, Any]:
    return json.loads((release_of(root) / "certificate.json").read_text())


def weights(model: DPSGDClassifier) -> torch.Tensor:
    return torch.cat([p.flatten() for p in model.classifier.parameters()])


def test_a_run_is_trained_shared_loaded_and_verified(tmp_path: Path) -> None:
    model = trained(tmp_path / "run", insecure_seed=None)
    loaded = DPSGDClassifier.load(tmp_path / "run")
    assert loaded.config == model.config
    assert np.array_equal(model.predict(shapes().images), loaded.predict(shapes().images))
    assert 0 <= loaded.accuracy(shapes()) <= 1
    assert verify_run(tmp_path / "run").differences == []
    certificate = certificate_of(tmp_path / "run")
    guarantee = certificate["guarantee"]
    assert certificate["fit_for_publication"] is True and guarantee["delta"] == 1e-3
    assert guarantee["adjacency"] == promises.ADD_OR_REMOVE and guarantee["accountant_used"] == "rdp"
    assert model.spent_epsilon(1e-3) <= model.epsilon(1e-3) == guarantee["epsilon"] <= 2.0
    assert guarantee["replace_one"]["epsilon"] > guarantee["epsilon"]
    names = {path.name for path in release_of(tmp_path / "run").iterdir()}
    assert names == {"config.json", "ledger.jsonl", "certificate.json", "README.md", "classifier.safetensors"}
    page = (release_of(tmp_path / "run") / "README.md").read_text()
    front, body = page.removeprefix("---\n").split("\n---\n", 1)
    assert "pipeline_tag: image-classification" in front.split("\n")
    assert body.strip().startswith("# A classifier of images") and "DPSGDClassifier.load" in body
    assert "datalens sample" not in page and "generator" not in page


def test_floating_point_noise_is_named_as_not_covered(tmp_path: Path) -> None:
    trained(tmp_path / "run", noise="continuous-gaussian", insecure_seed=None)
    certificate = certificate_of(tmp_path / "run")
    assert promises.FLOATING_POINT in certificate["not_covered"]
    assert certificate["not_fit_because"] == [promises.CONTINUOUS]
    assert verify_run(tmp_path / "run").differences == []


@pytest.mark.parametrize("training", ["topk-sgd", "clipped-sgd"])
def test_without_noise_nothing_is_promised_anywhere(tmp_path: Path, training: str) -> None:
    root = tmp_path / "run"
    model = trained(root, {"training": training}, noise="none", insecure_seed=None)
    certificate = certificate_of(root)
    assert release_of(root).name == promises.UNFIT_RELEASE_FOLDER
    assert certificate["guarantee"]["epsilon"] is None is certificate["guarantee"]["replace_one"]["epsilon"]
    assert model.epsilon(1e-3) == model.spent_epsilon(1e-3) == math.inf
    assert "NOT FIT FOR PUBLICATION" in (release_of(root) / "README.md").read_text()
    assert verify_run(root).differences == []
    config = json.loads((release_of(root) / "config.json").read_text())
    config["config"]["settings"]["training"] = "topagg"
    (release_of(root) / "config.json").write_text(json.dumps(config))
    assert any("another noise" in line for line in verify_run(root).differences)


@pytest.mark.parametrize(
    "settings",
    [{}, {"momentum": 0.5}, {"training": "gm-dp"}, {"select_by": "dimension"}, {"select_by": "tensor-norm"}],
)
def test_a_run_that_was_stopped_goes_on_to_the_same_classifier(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    whole = trained(None, settings)
    steps: list[int] = []
    stopped = DPSGDClassifier(small(settings)).fit(
        shapes(), out=tmp_path / "run", tell=lambda p: steps.append(p.step), stop=lambda: len(steps) == 2
    )
    assert stopped.was_stopped and steps == [1, 2]
    resumed = DPSGDClassifier.resume(tmp_path / "run", shapes())
    assert torch.equal(weights(resumed), weights(whole)) and not torch.equal(weights(stopped), weights(whole))
    assert resumed.spent_epsilon(1e-3) == whole.spent_epsilon(
        1e-3
    )  # R01: nothing that was spent is forgotten
    assert verify_run(tmp_path / "run").differences == []


def test_steps_that_a_crash_lost_stay_charged_and_are_not_taken_again(tmp_path: Path) -> None:
    config = small({"num_steps": 40})
    run = begun(tmp_path / "run", config)
    run.run(stop=lambda: run.steps_done == 2)
    for step in (2, 3):
        run.learner.step(step)  # and then the process dies
    run.close()
    notes = DPSGDClassifier.resume(tmp_path / "run", shapes()).notes
    assert any("2 steps were charged and lost" in note for note in notes)
    lines = Ledger.read(release_of(tmp_path / "run") / "ledger.jsonl").lines
    assert [line.body["note"]["step"] for line in lines if line.kind == "release"] == list(range(40))
    assert verify_run(tmp_path / "run").differences == []


def test_a_checkpoint_that_is_gone_is_no_fresh_start(tmp_path: Path) -> None:
    """R01: without the state that was paid for a run does not go on as if nothing had been spent."""
    run = begun(tmp_path / "run")
    run.learner.step(0)
    run.close()
    with pytest.raises(RunError, match="what it had released is lost, though charged"):
        DPSGDClassifier.resume(tmp_path / "run", shapes())


def test_a_step_is_on_disk_before_its_noise_is_drawn(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    before = dict(run.learner.classifier().state_dict())
    sound = run.learner._context.noise_for("gradient", 0)

    class Broken:
        kind, secure = run.method.privacy.noise, False

        def slack(self, stddev: float) -> Any:
            return sound.slack(stddev)

        def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
            lines = Ledger.read(run.folder.ledger).lines
            assert [line.body["note"] for line in lines if line.kind == "release"] == [
                {"step": 0, "what": "gradient"}
            ]
            raise KeyboardInterrupt

    run.learner._context = dataclasses.replace(run.learner._context, noise_for=lambda what, number: Broken())
    with pytest.raises(KeyboardInterrupt):
        run.learner.step(0)
    run.close()
    after = run.learner.classifier().state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def learner_for(config: ClassifierConfig, epsilon: float | None = None) -> ClassifierLearner:
    """A learner whose budget allows the whole plan, or ``epsilon``."""
    method = config.settings.plan(config.privacy, size_of(shapes()))
    privacy = config.privacy if epsilon is None else config.privacy.model_copy(update={"epsilon": epsilon})
    return method.begin(context_for(shapes(), privacy, method.planned()))


def test_a_step_beyond_the_budget_is_refused_and_teaches_nothing() -> None:
    learner = learner_for(small(), epsilon=1.7)
    taken = 0
    with pytest.raises(BudgetError):
        for step in range(4):
            before = dict(learner.classifier().state_dict())
            learner.step(step)
            taken += 1
    assert 0 < taken < 4
    assert all(torch.equal(before[n], value) for n, value in learner.classifier().state_dict().items())
    assert len(learner._context.budget.ledger.events()) == taken


def test_a_ceiling_between_two_stops_stops_both_runs_at_the_same_step(tmp_path: Path) -> None:
    """R01: q = 0.01, sigma = 1: 1.214 after 100 steps, 1.340 after 200; a ceiling of 1.28, straight and resumed."""
    event = PoissonGaussianEvent(0.01, 1.0)
    ceiling = Authorisation(1.28, 1e-5, AccountantKind.RDP)

    def charge(budget: Budget, most: int) -> int:
        for number in range(most):
            try:
                budget.charge(event, {"step": number})
            except BudgetError:
                return number
        return most

    header = {"run_id": "a", "authorisation": ceiling.to_json()}
    straight = charge(Budget(Ledger.in_memory(header)), 200)
    with Ledger.create(tmp_path / "ledger.jsonl", header) as ledger:
        first = charge(Budget(ledger), 100)
    with Ledger.open(tmp_path / "ledger.jsonl") as ledger:
        again = Budget(ledger)
        assert again.spent_epsilon() == pytest.approx(1.214, abs=2e-3)
        total = first + charge(again, 100)
        assert Accountant(AccountantKind.RDP).epsilon(ledger.events(), 1e-5) <= 1.28
    assert first == 100 and 100 < total == straight < 200


def test_the_data_sets_budget_pays_every_step_and_refuses_a_plan_that_it_cannot_pay(tmp_path: Path) -> None:
    budget = tmp_path / "budget.jsonl"
    create_dataset_budget(budget, "shapes", epsilon=2.1, delta=1e-3)
    DPSGDClassifier(small()).fit(shapes(), out=tmp_path / "run", budget_file=budget)
    assert len(Ledger.read(budget).events()) == 4
    with pytest.raises(BudgetError, match="room"):
        DPSGDClassifier(small()).fit(shapes(), out=tmp_path / "other", budget_file=budget)
    with pytest.raises(BudgetError, match="cannot pay for dp-sgd without noise"):
        config = small({"training": "topk-sgd"}, noise="none")
        DPSGDClassifier(config).fit(shapes(), out=tmp_path / "other", budget_file=budget)
    assert not (tmp_path / "other").exists() and len(Ledger.read(budget).events()) == 4


def _less_sampled(lines: list[dict[str, Any]]) -> None:
    events = [release["event"] for release in lines[0]["body"]["mechanism"]["releases"]]
    for event in [
        *events,
        *lines[0]["body"]["planned_events"],
        *(line["body"]["event"] for line in lines[1:]),
    ]:
        event["sampling_probability"] /= 2


def _once_more(lines: list[dict[str, Any]]) -> None:
    lines[0]["body"]["mechanism"]["num_steps"] += 1


def _a_step_twice(lines: list[dict[str, Any]]) -> None:
    lines[-1]["body"]["note"]["step"] = lines[-2]["body"]["note"]["step"]


def _cheaper(lines: list[dict[str, Any]]) -> None:
    lines[-1]["body"]["event"]["noise_multiplier"] *= 2


def _generous(lines: list[dict[str, Any]]) -> None:
    lines[0]["body"]["authorisation"]["epsilon"] = 3.0


@pytest.mark.parametrize("forge", [_less_sampled, _once_more, _a_step_twice, _cheaper, _generous])
def test_a_forged_ledger_is_found(tmp_path: Path, forge: Callable[[list[dict[str, Any]]], None]) -> None:
    """Written anew with all hashes right, it claims less than the settings give."""
    trained(tmp_path / "run")
    path = release_of(tmp_path / "run") / "ledger.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    forge(lines)
    path.write_text(chained(lines))
    heads_file().unlink()
    assert verify_run(tmp_path / "run").differences[0].startswith("ledger.jsonl")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("ledger.jsonl", '"step":1', '"step":2'),
        ("config.json", '"keep": 0.8', '"keep": 0.7'),
        ("config.json", '"batch_size": 40', '"batch_size": 20'),
        ("config.json", '"model": "linear"', '"model": "cnn"'),
        ("README.md", "A classifier", "The classifier"),
        ("certificate.json", '"epsilon"', '"epsilom"'),
    ],
)
def test_a_changed_file_is_found(tmp_path: Path, name: str, old: str, new: str) -> None:
    trained(tmp_path / "run")
    path = release_of(tmp_path / "run") / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    assert verify_run(tmp_path / "run").differences


def test_a_classifier_that_is_missing_or_another_is_found(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    path = release_of(tmp_path / "run") / "classifier.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert any("classifier.safetensors" in line for line in verify_run(tmp_path / "run").differences)
    path.unlink()
    assert "classifier.safetensors is missing" in verify_run(tmp_path / "run").differences
    with pytest.raises(RunError, match="has no classifier yet"):
        DPSGDClassifier.load(tmp_path / "run")


@pytest.mark.parametrize("kind", SmallKind)
@pytest.mark.parametrize("shape", [(1, 28, 28), (1, 14, 15), (3, 32, 32), (1, 16, 16), (3, 64, 47)])
def test_a_networks_size_is_known_from_sizes_alone(kind: SmallKind, shape: tuple[int, int, int]) -> None:
    made = sum(p.numel() for p in small_classifier(kind, shape, 7).parameters())
    assert num_weights(kind, shape, 7) == made
    public = {"image_shape": shape, "classes": list(range(7)), "num_records": 100}
    settings = {"model": str(kind), "batch_size": 5, "num_steps": None, "epochs": 3.0, "training": "topagg"}
    config = {**public, "config": {"privacy": {"noise": "rounded-gaussian"}}}
    (found,) = KINDS["dp-sgd"](settings, config, 1).values()
    assert (found.coordinates, found.count, found.sampled) == (made, 60, 0.05)


def test_the_sum_has_one_bounded_row_a_record_and_none_for_an_empty_slot() -> None:
    """One record's gradient, clipped, kept and rounded by hand, is what taking it away takes from the sum."""
    learner = learner_for(small({"max_grad_norm": 0.5}))
    method = learner._method
    images, labels, present = learner.lot(0)
    sums = []
    learner._optimizer.release = lambda sum_D: sums.append(sum_D) or torch.zeros(method.grid.dim)
    learner._steps.step(images, labels, present)
    gone = int(present.nonzero()[0])
    fewer = present.clone()
    fewer[gone] = False
    learner._steps.step(images, labels, fewer)
    moved = sums[0] - sums[1]
    assert 0 < int(moved.square().sum()) <= method.grid.units**2
    network = learner.classifier().requires_grad_(True)
    functional.cross_entropy(network(images[gone : gone + 1]), labels[gone : gone + 1]).backward()
    row = torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])
    square = row.square()
    order = square.argsort(descending=True, stable=True)
    kept = order[square[order].cumsum(0) <= 0.8 * square.sum()]
    by_hand = torch.zeros_like(row)
    by_hand[kept] = row[kept] * min(1.0, 0.5 / float(row.norm()))
    assert int((method.grid.put(by_hand[None])[0] - moved).abs().max()) <= 1


def test_an_image_whose_gradient_overflows_adds_nothing_and_the_step_is_charged() -> None:  # R16
    learner = learner_for(small())
    images, labels, present = learner.lot(0)
    images[int(present.nonzero()[0])] = 1e38
    learner.lot = lambda step: (images, labels, present)  # type: ignore[method-assign]
    learner.step(0)
    assert all(bool(torch.isfinite(p).all()) for p in learner.classifier().parameters())
    assert len(learner._context.budget.ledger.events()) == 1


def test_the_saved_names_are_those_of_the_plain_network(tmp_path: Path) -> None:  # R47
    import safetensors.torch

    trained(tmp_path / "run", {"model": "cnn"})
    tensors = safetensors.torch.load_file(release_of(tmp_path / "run") / "classifier.safetensors")
    small_classifier(SmallKind.CNN, (1, 16, 16), 4).load_state_dict(tensors, strict=True)


def test_records_of_one_person_are_charged_together(tmp_path: Path) -> None:
    trained(tmp_path / "run", group_size=2, epsilon=4.0)
    (release,) = certificate_of(tmp_path / "run")["noise"]["releases"]
    assert release["sampling_probability"] == pytest.approx(1 - 0.9**2)
    assert verify_run(tmp_path / "run").differences == []


@pytest.mark.parametrize(
    ("settings", "privacy", "words"),
    [
        ({"keep": 0.0}, {}, "keep is 0"),
        ({"max_grad_norm": math.inf}, {}, "max_grad_norm is inf"),  # R16
        ({"max_grad_norm": -1.0}, {}, "max_grad_norm is -1"),
        ({"training": "sgd"}, {}, "known: topagg, topk-gm-dp"),
        ({"momentum": 1.0}, {}, "settings.momentum = 1.0"),
        ({"epochs": 1.0}, {}, "leave out one of the two"),
        ({"batch_size": 401}, {}, "at most 400"),
        ({"training": "clipped-sgd"}, {}, "adds none; set noise = none"),
        ({}, {"noise": "none"}, "private by its noise alone"),
        ({}, {"noise": "discrete-gaussian", "insecure_seed": None}, "no proved cost"),
        ({}, {"as_published": True}, "as_published"),
        ({}, {"score_noise": 3.0}, "score_noise"),
        ({"max_grad_norm": 1e13}, {}, "max_grad_norm"),
        ({"learning_rate": 1e7}, {}, "settings.learning_rate = 1"),
        ({"num_steps": 10**8}, {}, "at most 99999999"),
        ({"num_steps": None, "epochs": 1e308}, {}, "epochs = 1e.308: makes inf steps"),
    ],
)
def test_settings_that_make_no_run_are_refused_and_nothing_is_left(
    tmp_path: Path, settings: dict[str, Any], privacy: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        trained(tmp_path / "run", settings, **privacy)
    assert not (tmp_path / "run").exists()


def test_small_images_need_the_linear_model() -> None:
    with pytest.raises(ConfigError, match="at least 14x14"):
        small_classifier(SmallKind.CNN, (1, 13, 20), 2)


def test_images_that_do_not_fit_are_refused() -> None:
    model = trained()
    with pytest.raises(DataError, match=r"give uint8 \[N, 1, 16, 16\]"):
        model.predict(np.zeros((2, 1, 28, 28), np.uint8))
    with pytest.raises(DataError, match="classes"):
        model.accuracy(dataclasses.replace(shapes(), classes=("a", "b", "c", "d")))
    with pytest.raises(RunError, match="nothing was trained"):
        DPSGDClassifier(small()).predict(shapes().images)


def test_a_run_of_another_method_and_other_data_are_refused(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    with pytest.raises(RunError, match="not the data of this run"):
        DPSGDClassifier.resume(tmp_path / "run", shapes(200))
    config = release_of(tmp_path / "run") / "config.json"
    config.write_text(config.read_text().replace('"method": "dp-sgd"', '"method": "dp-gan"'))
    with pytest.raises(RunError, match="is a run of dp-gan, and this is for runs of dp-sgd"):
        facts_of(RunFolder.open(tmp_path / "run"))


def test_settings_survive_json() -> None:
    config = small({"training": "topk-gm-dp", "select_by": "dimension"})
    assert parse_classifier(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize("epsilon", [1e-9, 100.0])
def test_where_little_less_noise_would_cost_far_more_the_run_is_verified(
    tmp_path: Path, epsilon: float
) -> None:
    """Delta alone pays for these steps, and above some 60 the sampler's slack has no finite price."""
    model = trained(tmp_path / "run", epsilon=epsilon, delta=1e-3)
    assert model.spent_epsilon(1e-3) < 0.9 * epsilon
    assert verify_run(tmp_path / "run").differences == []
