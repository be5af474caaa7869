"""Cells of DP-SGD: what names them, how many steps they have, what they train and cost."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from tiny_dpsgd import CIFAR, MNIST, records_like

from datalens.experiments import dpsgd_training
from datalens.experiments.dpsgd_cells import ACCURACY, DpsgdCell
from datalens.experiments.dpsgd_costs import DELTA, TIGHTEST, cost_of, tightest_epsilon
from datalens.experiments.dpsgd_paper import KEEPS, TABLE_8, TABLE_11, Settings, settings_for
from datalens.experiments.dpsgd_tables import cell_of
from datalens.experiments.dpsgd_training import measure_dpsgd, train_and_score
from datalens.experiments.store import ResultsStore
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import GaussianEvent, PoissonGaussianEvent


def test_equal_trainings_are_one_cell() -> None:
    whole = replace(MNIST, keep=1.0)
    assert whole.method == "gm-dp"
    assert whole == replace(MNIST, method="gm-dp") == replace(MNIST, keep=1.0, select_by="dimension")
    assert replace(MNIST, keep=1.0, method="topk-sgd") == replace(MNIST, method="clipped-sgd")
    assert whole.key == replace(MNIST, method="gm-dp", keep=0.7).key


@pytest.mark.parametrize(
    "change",
    [
        {"data_set": "cifar10"},
        {"epsilon": 0.5},
        {"keep": 0.7},
        {"method": "topk-sgd"},
        {"select_by": "dimension"},
        {"features": "resnet18"},
        {"accountant": "pld"},
        {"seed": 1},
        *({"settings": replace(MNIST.settings, **{name: 3})} for name in asdict(MNIST.settings)),
    ],
    ids=str,
)
def test_whatever_decides_a_training_is_in_its_key(change: dict) -> None:
    assert replace(MNIST, **change).key != MNIST.key


def test_a_cell_has_the_most_steps_that_fit_the_papers_accountant() -> None:
    cell = cell_of("mnist", 0.2, 0.8)
    rate, sigma = 512 / 60_000, 3.6
    paper = Accountant(AccountantKind.CLASSIC)
    steps = cell.num_steps()
    assert steps == 271
    assert paper.epsilon(PoissonGaussianEvent(rate, sigma, steps), DELTA) <= 0.2
    assert paper.epsilon(PoissonGaussianEvent(rate, sigma, steps + 1), DELTA) > 0.2


def test_the_tightest_accountant_allows_more_steps_and_no_more_than_epsilon() -> None:
    cell = replace(cell_of("mnist", 0.2, 0.8), accountant=TIGHTEST)
    steps = cell.num_steps()
    assert steps > 500, "rdp with the tight conversion allows 508, the paper's 271"
    assert tightest_epsilon(PoissonGaussianEvent(512 / 60_000, 3.6, steps)) <= 0.2
    assert tightest_epsilon(PoissonGaussianEvent(512 / 60_000, 3.6, steps + steps // 500)) > 0.2


def test_every_epsilon_of_table_8_allows_more_than_a_few_steps() -> None:
    for name, by_epsilon in TABLE_8.items():
        for epsilon in by_epsilon:
            for keep in KEEPS:
                assert cell_of(name, epsilon, keep).num_steps() > 200, (name, epsilon, keep)


def test_settings_are_table_11s_and_between_its_epsilons_theirs_too() -> None:
    assert settings_for("mnist", 0.05, 1.0) == Settings(3, 8.2, 128, 0.01)
    assert settings_for("cifar10", math.inf, 0.8) == TABLE_11["cifar10"][8.0][0.8]
    assert settings_for("cifar10", 2.0, 1.0) == Settings(2.5, 2.7, 2048, 0.04), "8 is nearer than 0.4"
    for name, by_epsilon in TABLE_11.items():
        sigmas = [settings_for(name, epsilon, 0.8).noise_multiplier for epsilon in sorted(TABLE_8[name])]
        assert min(sigmas) >= min(by_epsilon[e][0.8].noise_multiplier for e in by_epsilon)


def test_a_plan_that_fits_no_step_is_refused() -> None:
    dear = replace(MNIST, settings=replace(MNIST.settings, noise_multiplier=0.1))
    reason = dear.refusal()
    assert reason is not None and "too small for one step" in reason
    assert MNIST.refusal() is None


@pytest.mark.parametrize("cell", [MNIST, CIFAR], ids=["mnist", "cifar10"])
def test_a_seed_is_a_training_and_another_is_another(
    cell: DpsgdCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DpsgdCell, "num_steps", lambda cell: 3)
    records = records_like(cell)
    monkeypatch.setattr(dpsgd_training, "network_of", kept := Kept())
    first, again = (train_and_score(cell, records) for _ in range(2))
    train_and_score(cell.with_seed(1), records)
    assert first == again
    weights = [torch.cat([p.flatten() for p in network.parameters()]) for network in kept.networks]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


class Kept:
    """``network_of``, remembering what it made."""

    def __init__(self) -> None:
        self.networks: list[torch.nn.Module] = []
        self._make = dpsgd_training.network_of

    def __call__(self, cell: DpsgdCell) -> torch.nn.Module:
        self.networks.append(self._make(cell))
        return self.networks[-1]


def test_without_noise_it_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the noise of epsilon 0.4 on sixty records nothing is learnt; without it all classes are told apart."""
    monkeypatch.setattr(DpsgdCell, "num_steps", lambda cell: 40)
    records = records_like(CIFAR)
    accuracy, event = train_and_score(replace(CIFAR, method="topk-sgd"), records)
    assert accuracy > 0.9 and event.noise == "none" and event.count == 40
    noisy, event = train_and_score(CIFAR, records)
    assert noisy < 0.9 and event.noise_multiplier == 20.0


def test_the_store_gets_accuracy_steps_and_every_epsilon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DpsgdCell, "num_steps", lambda cell: 2)
    store = ResultsStore(tmp_path / "results.jsonl")
    told: list[str] = []
    measure_dpsgd(MNIST, records_like(MNIST), store, told.append)
    measure_dpsgd(replace(MNIST, method="topk-sgd"), records_like(MNIST), store)
    store = ResultsStore(store.path)
    score, run = store.score(MNIST, ACCURACY), store.run(MNIST)
    assert score is not None and run is not None
    assert 0 <= score["last_accuracy"] <= 1 and run["steps"] == 2 and told == ["training, 2 steps"]
    spent = run["privacy"]["spent_epsilon"]
    assert spent["pld"] <= spent["rdp"] <= spent["rdp-classic"]
    assert run["privacy"]["replace_one_epsilon"] > spent["rdp"]
    free = store.run(replace(MNIST, method="topk-sgd"))
    assert free is not None and free["privacy"] is None


def test_the_tightest_accountant_lies_between_the_gaussian_and_rdp() -> None:
    """Sampled with probability 1 it is the exact Gaussian curve; with less it costs less, and never more than rdp."""
    whole = PoissonGaussianEvent(1.0, 10.0, 4)
    assert tightest_epsilon(whole) == pytest.approx(
        Accountant().epsilon(GaussianEvent(1.0, 10.0, 1, count=4), DELTA), rel=1e-3
    )
    sampled = PoissonGaussianEvent(0.01, 1.0, 200)
    assert 0 < tightest_epsilon(sampled) < cost_of(sampled)["spent_epsilon"]["rdp"]
