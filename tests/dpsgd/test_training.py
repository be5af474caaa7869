"""Training on tensors: the steps of plain Opacus where nothing is dropped, its cost, and every refusal."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from dpsgd_scene import network, records, weights
from torch import nn
from torch.nn import functional

from datalens.dpsgd.method import Rule
from datalens.dpsgd.optimizer import TopAggOptimizer
from datalens.dpsgd.steps import LotSteps
from datalens.dpsgd.training import train_classifier
from datalens.errors import ConfigError
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import NoiseKind, PoissonGaussianEvent

USUAL: dict[str, Any] = {"noise_multiplier": 1.0, "sampling_rate": 0.25, "num_steps": 6, "seed": 4}


def trained(**changes: Any) -> tuple[nn.Module, PoissonGaussianEvent]:
    settings = USUAL | changes
    module = settings.pop("module", None) or network()
    inputs_N, labels_N = settings.pop("data", records().tensors)
    optimizer = torch.optim.SGD(module.parameters(), lr=settings.pop("lr", 0.5))
    event = train_classifier(module, optimizer, inputs_N, labels_N, **settings)
    return module, event


def slow_sum(module: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, clip: float) -> torch.Tensor:
    """Clipped gradients, one record after another, without Opacus."""
    total = torch.zeros(weights(module).numel())
    for row, label in zip(inputs, labels, strict=True):
        loss = functional.cross_entropy(module(row[None]), label[None])
        grad = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(module.parameters()))])
        total += grad * min(1.0, clip / float(grad.norm()))
    return total


@pytest.mark.parametrize("rows_at_once", [3, 40, 256])
def test_a_step_without_noise_is_that_of_a_loop_over_records(rows_at_once: int) -> None:  # R37
    inputs, labels = records().tensors
    module, _ = trained(
        method="clipped-sgd", noise_multiplier=0, sampling_rate=1.0, num_steps=1, rows_at_once=rows_at_once
    )
    before = network()
    expected = weights(before) - 0.5 * slow_sum(before, inputs, labels, 1.0) / len(labels)
    torch.testing.assert_close(weights(module), expected)


@pytest.mark.parametrize("noise", ["float", "integer"])
@pytest.mark.parametrize("method", ["topagg", "topk-gm-dp", "gm-dp"])
def test_a_seed_gives_the_same_training_and_no_other(noise: str, method: str) -> None:
    first, again, other = (weights(trained(noise=noise, method=method, seed=seed)[0]) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    unseeded = [weights(trained(noise=noise, method=method, seed=None)[0]) for _ in range(2)]
    assert not torch.equal(*unseeded)


@pytest.mark.parametrize("noise", ["float", "integer"])
def test_noise_is_in_proportion_to_what_a_record_can_add(noise: str) -> None:
    """With gradients that are zero a step is noise alone: sqrt(keep) sigma C over the expected lot."""
    module = nn.Linear(400, 10, bias=False)
    start = weights(module).clone()
    data = torch.zeros(8, 400), torch.zeros(8, dtype=torch.int64)
    settings = {"noise_multiplier": 3.0, "max_grad_norm": 0.5, "keep": 0.64, "num_steps": 1}
    trained(module=module, data=data, lr=1.0, noise=noise, sampling_rate=0.5, **settings)
    moved = weights(module) - start
    assert float(moved.std()) == pytest.approx(0.8 * 3.0 * 0.5 / 4, rel=0.06)  # of 4,000 draws


def test_both_forms_take_the_same_step_but_for_noise_and_rounding() -> None:
    """At a noise multiplier that the learning rate makes small, both forms move alike on the same lots."""
    moved = []
    for noise in ("float", "integer"):
        module, _ = trained(noise=noise, noise_multiplier=1e-3, num_steps=3)
        moved.append(weights(module) - weights(network()))
    torch.testing.assert_close(moved[0], moved[1], atol=2e-2, rtol=0)
    assert float(moved[0].norm()) > 0.1


@pytest.mark.parametrize("noise", ["float", "integer"])
def test_cost_is_that_of_all_steps_whether_lots_were_empty_or_not(noise: str) -> None:  # R13
    """40 records at 1 in 1,000: nearly every lot is empty; each adds noise, moves weights and is charged."""
    seen: list[torch.Tensor] = []
    module = network()
    changes = {"module": module, "noise": noise, "sampling_rate": 1e-3, "num_steps": 5, "lr": 1e-3}
    _, event = trained(**changes, tell=lambda _: seen.append(weights(module)))
    assert len(seen) == 5 and not any(torch.equal(*pair) for pair in pairwise(seen))
    assert (event.count, event.sampling_probability, event.noise_multiplier) == (5, 1e-3, 1.0)
    assert event.coordinates == weights(module).numel()


def test_cost_of_known_settings() -> None:
    """R01's numbers: q = 0.01, sigma = 1: 1.214 after 100 steps, 1.340 after 200, by RDP."""
    event = trained(sampling_rate=0.01, num_steps=100, noise_multiplier=1.0)[1]
    twice = trained(sampling_rate=0.01, num_steps=200, noise_multiplier=1.0)[1]
    costs = [Accountant(AccountantKind.RDP).epsilon([one], 1e-5) for one in (event, twice)]
    assert costs == pytest.approx([1.214, 1.340], abs=2e-3)
    assert Accountant(AccountantKind.RDP).epsilon([event, event], 1e-5) == pytest.approx(costs[1], abs=1e-9)


@pytest.mark.parametrize("method", ["topk-sgd", "clipped-sgd"])
@pytest.mark.parametrize("noise", ["float", "integer"])
def test_without_noise_the_cost_is_infinite(method: str, noise: str) -> None:
    event = trained(method=method, noise_multiplier=0, noise=noise)[1]
    assert event.noise is NoiseKind.NONE
    assert Accountant().epsilon([event], 1e-5) == math.inf


@pytest.mark.parametrize("noise", ["float", "integer"])
@pytest.mark.parametrize("keep", [0.8, 1.0])
def test_a_record_whose_gradient_overflows_adds_nothing(noise: str, keep: float) -> None:  # R16
    inputs, labels = records().tensors
    wild = inputs.clone()
    wild[7] = 1e38
    inputs = inputs.clone()
    runs = []
    for data in ((wild, labels), (inputs, labels)):
        module, _ = trained(data=data, noise=noise, keep=keep, sampling_rate=1.0, num_steps=1)
        assert bool(torch.isfinite(weights(module)).all())
        runs.append(weights(module))
    assert not torch.equal(*runs)  # the record does add something as it was


def test_a_row_whose_record_is_not_there_adds_nothing() -> None:
    inputs, labels = records(10).tensors
    learned = []
    for with_absent in (False, True):
        module = network()
        optimizer = TopAggOptimizer(
            torch.optim.SGD(module.parameters(), lr=1.0),
            noise_multiplier=0.0, max_grad_norm=1.0, expected_batch_size=10, rule=Rule("clipped-sgd"),
        )  # fmt: skip
        steps = LotSteps(module, optimizer, rows_at_once=4)
        if with_absent:
            present = torch.tensor([True] * 10 + [False] * 3)
            steps.step(torch.cat([inputs, 99 * inputs[:3]]), torch.cat([labels, labels[:3]]), present)
        else:
            steps.step(inputs, labels)
        steps.finish()
        learned.append(weights(module))
    torch.testing.assert_close(learned[0], learned[1])


def test_the_module_is_given_back_as_it_was() -> None:
    """R47: names of weights carry no wrapper, and an ordinary training goes on."""
    module, _ = trained()
    network().load_state_dict(module.state_dict(), strict=True)
    inputs, labels = records().tensors
    functional.cross_entropy(module(inputs), labels).backward()
    assert not any(hasattr(p, "grad_sample") for p in module.parameters())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sampling_rate": 0.0}, "sampling_rate is 0"),
        ({"sampling_rate": 1.5}, "sampling_rate is 1.5"),
        ({"sampling_rate": math.nan}, "sampling_rate is nan"),
        ({"num_steps": 0}, "num_steps is 0"),
        ({"num_steps": 2.0}, "num_steps is 2.0"),
        ({"max_grad_norm": math.inf}, "max_grad_norm is inf"),
        ({"max_grad_norm": 0}, "max_grad_norm is 0"),
        ({"max_grad_norm": -1}, "max_grad_norm is -1"),
        ({"keep": 0.0}, "keep is 0"),
        ({"method": "sgd"}, "method is 'sgd'"),
        ({"select_by": "size"}, "select_by is 'size'"),
        ({"noise": "none"}, "noise is 'none'"),
        ({"noise_multiplier": 0}, "noise_multiplier is 0"),
        ({"method": "topk-sgd"}, "adds no noise"),
        ({"noise": "integer", "noise_multiplier": 1e-9}, "whole noise"),
        ({"data": (torch.zeros(3, 6), torch.zeros(2, dtype=torch.int64))}, "3 inputs and 2 labels"),
        ({"data": (torch.zeros(0, 6), torch.zeros(0, dtype=torch.int64))}, "0 inputs"),
        ({"module": nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))}, r"1 \(BatchNorm1d\)"),
    ],
)
def test_refusals(changes: dict[str, Any], words: str) -> None:
    module = changes.get("module", network())
    before = weights(module).clone()
    with pytest.raises(ConfigError, match=words):
        trained(**{**changes, "module": module})
    assert torch.equal(weights(module), before)
