"""DP-SGD on tensors, without a run's folder: for experiments, with the step that runs take."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn, optim

from datalens.dpsgd.integer import IntegerTopAggOptimizer
from datalens.dpsgd.method import NoiseForm, Rule, check_max_grad_norm, check_noise_multiplier, chosen
from datalens.dpsgd.optimizer import TopAggOptimizer
from datalens.dpsgd.refusals import refuse_mixing_layers
from datalens.dpsgd.steps import ROWS_AT_ONCE, LotSteps
from datalens.errors import ConfigError
from datalens.mechanisms.sampled_sum import poisson_lot
from datalens.methods.sgd_kinds import Method, SelectBy
from datalens.noise import OsEntropy, SeededEntropy, make_noise
from datalens.privacy.events import NoiseKind, PoissonGaussianEvent
from datalens.randomness import Streams


def train_classifier(
    module: nn.Module,
    optimizer: optim.Optimizer,
    inputs_N: Tensor,
    labels_N: Tensor,
    *,
    noise_multiplier: float,
    sampling_rate: float,
    num_steps: int,
    max_grad_norm: float = 1.0,
    keep: float = 0.8,
    method: str = Method.TOPAGG,
    select_by: str = SelectBy.NORM,
    noise: str = NoiseForm.FLOAT,
    seed: int | None = None,
    rows_at_once: int = ROWS_AT_ONCE,
    tell: Callable[[int], None] = lambda step: None,
) -> PoissonGaussianEvent:
    """Train a classifier by DP-SGD, in place. No ledger, no budget: what it cost is returned.

    Every step draws a lot: each record is in it with probability ``sampling_rate``, by a coin of its own. Of each
    record's gradient it takes what the method keeps, sums, adds noise, divides by ``sampling_rate * N``, and gives
    that to the optimiser. An empty lot is a step too.

    Args:
        module: class scores [R, Y] of inputs [R, ...]; begins with the weights that it has. No layer may mix records.
        optimizer: any of PyTorch, over the module's parameters, such as ``SGD(module.parameters(), lr=0.1)``.
        inputs_N: [N, ...], floating point, on the module's device.
        labels_N: int64 [N], on the module's device.
        noise_multiplier: standard deviation of the noise over what one record can add to a sum; 0 for the methods
            without noise.
        sampling_rate: q, above 0 and at most 1.
        num_steps: steps to take, 1 or more.
        max_grad_norm: C, longest gradient of one record; longer ones are clipped to it.
        keep: share of the squared norm (or of the coordinates) that stays, above 0 and at most 1.
        method: ``topagg``, ``topk-gm-dp``, ``gm-dp``, ``topk-sgd`` or ``clipped-sgd``.
        select_by: what ``keep`` is a share of: ``norm``, ``tensor-norm`` or ``dimension``.
        noise: ``float``, or ``integer``, the form that can be published.
        seed: the same lots and noise again, and **no privacy then**; None takes the operating system's entropy.
        rows_at_once: gradients in memory together; of no consequence but for speed and the last bits of sums.
        tell: called with the number of steps taken, after each; may score the module or change the learning rate.

    Returns:
        What all steps cost, add-or-remove one record: for
        :meth:`~datalens.privacy.accountant.Accountant.epsilon`, which is infinite for a method without noise.

    Raises:
        ConfigError: a value out of range, or a layer that mixes records; nothing was trained.

    Source: Wang et al. 2021, Algorithm 4.
    """
    rule = Rule(chosen(Method, method, "method"), keep, chosen(SelectBy, select_by, "select_by"))
    form = chosen(NoiseForm, noise, "noise")
    settings = {
        "noise_multiplier": check_noise_multiplier(noise_multiplier, rule.method),
        "max_grad_norm": check_max_grad_norm(max_grad_norm),
        "expected_batch_size": _check(sampling_rate, num_steps, inputs_N, labels_N) * len(labels_N),
        "rule": rule,
    }
    refuse_mixing_layers(module)
    streams = Streams.from_entropy() if seed is None else Streams.from_insecure_seed(seed, "dp-sgd")
    if form is NoiseForm.INTEGER and rule.method.is_private:
        source = make_noise(NoiseKind.ROUNDED, None if seed is None else streams.key("noise"))
        made = IntegerTopAggOptimizer(optimizer, noise=source, **settings)
        event = made.event_of(noise_multiplier, sampling_rate, made.dim, source, num_steps)
    else:
        rng = streams.torch("noise", device=labels_N.device)
        made = TopAggOptimizer(optimizer, generator=rng, **settings)
        kind = NoiseKind.CONTINUOUS if rule.method.is_private else NoiseKind.NONE
        event = PoissonGaussianEvent(sampling_rate, noise_multiplier, num_steps, kind, made.dim)
    steps = LotSteps(module, made, rows_at_once)
    coins = OsEntropy() if seed is None else SeededEntropy(streams.key("lots"))
    try:
        for step in range(num_steps):
            lot_R = torch.from_numpy(poisson_lot(len(labels_N), sampling_rate, coins)).to(labels_N.device)
            steps.step(inputs_N[lot_R], labels_N[lot_R])
            tell(step + 1)
    finally:
        steps.finish()
    return event


def _check(sampling_rate: float, num_steps: int, inputs_N: Tensor, labels_N: Tensor) -> float:
    """The sampling rate, where there is something to sample and it fits together."""
    if not 0 < sampling_rate <= 1:
        raise ConfigError(f"sampling_rate is {sampling_rate}, but must be above 0 and at most 1; correct it")
    if isinstance(num_steps, bool) or not isinstance(num_steps, int) or num_steps < 1:
        raise ConfigError(f"num_steps is {num_steps}, but must be a whole number of 1 or more; correct it")
    if len(inputs_N) != len(labels_N) or not len(labels_N):
        raise ConfigError(
            f"there are {len(inputs_N)} inputs and {len(labels_N)} labels; give one label for each input"
        )
    return float(sampling_rate)
