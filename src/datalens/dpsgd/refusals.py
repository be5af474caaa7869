"""What the engine refuses, each with the reason and the remedy."""

from __future__ import annotations

import math
import warnings
from typing import Any, cast

import torch
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from opacus.grad_sample import AbstractGradSampleModule, GradSampleHooks
from opacus.validators.module_validator import ModuleValidator
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from datalens.dpsgd.method import Rule, check_max_grad_norm
from datalens.errors import ConfigError, PrivacyWarning
from datalens.privacy.gaussian import check_delta
from datalens.privacy.wording import delta_warning


def refuse_secure_mode(secure_mode: bool) -> None:
    """Opacus's secure mode cannot be installed any more."""
    if secure_mode:
        raise ConfigError(
            "secure_mode=True rests on torchcsprng, last released in 2021, before the PyTorch that Opacus 1.6 "
            "needs; leave it out and give make_private noise='integer', whose noise comes from the operating system"
        )


def check_setup(
    module: nn.Module, loader: Any, max_grad_norm: object, clipping: str, grad_sample_mode: str
) -> float:
    """The clipping norm, where everything a step needs is there.

    Raises:
        ConfigError: ghost clipping, clipping by layers, weights in half precision, no lot to draw.
    """
    if "ghost" in grad_sample_mode:
        raise ConfigError(
            f"grad_sample_mode is {grad_sample_mode!r}, but ghost clipping never has the gradients of single "
            "records, of which TopAgg keeps the largest coordinates; use 'hooks', 'functorch' or 'ew'"
        )
    if clipping != "flat":
        raise ConfigError(
            f"clipping is {clipping!r}, but TopAgg's bound is on the whole gradient; use clipping='flat'"
        )
    half = [name for name, p in module.named_parameters() if p.dtype not in (torch.float32, torch.float64)]
    if half:
        raise ConfigError(
            f"{half[0]} is in half precision, but sums and noise need float32; convert the module with .float() and "
            "compute in half precision with torch.autocast"
        )
    check_loader(loader)
    return check_max_grad_norm(max_grad_norm)


def check_target(epsilon: float, delta: float, epochs: float, loader: Any) -> int:
    """Steps of so many epochs, where the target is one that a search for noise can meet.

    Warns:
        PrivacyWarning: a delta at which releasing a whole record would be allowed.

    Raises:
        ConfigError: epsilon not above 0 or not finite, delta outside (0, 1), or no step to take.
    """
    check_loader(loader)
    check_delta(delta)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ConfigError(f"target_epsilon is {epsilon}, but must be above 0 and finite; 1.0 is usual")
    if not (math.isfinite(epochs) and epochs > 0):
        raise ConfigError(
            f"epochs is {epochs}, but must be above 0 and finite: a training of no step is none; use 1"
        )
    if (words := delta_warning(delta, len(loader.dataset))) is not None:
        warnings.warn(PrivacyWarning(words), stacklevel=3)
    return math.ceil(epochs * len(loader))


def check_loader(loader: Any) -> None:
    """Refuse a loader that draws no lot: a training of no step would be called finished."""
    if len(loader) == 0:
        raise ConfigError(
            f"the data loader has no batch: {len(loader.dataset)} records with drop_last and a larger batch_size; "
            f"use a batch_size of at most {len(loader.dataset)}"
        )


def refuse_for_integers(module: nn.Module, rule: Rule, poisson_sampling: bool, noise_generator: Any) -> None:
    """What the form for publication does not allow."""
    if not rule.method.is_private:
        raise ConfigError(f"noise is 'integer', but {rule.method} adds no noise; use noise='float'")
    if not poisson_sampling:
        raise ConfigError(
            "noise is 'integer' with poisson_sampling=False, but its cost is proved for Poisson lots only; leave "
            "poisson_sampling at True"
        )
    if noise_generator is not None:
        raise ConfigError(
            "noise is 'integer' with a noise_generator, but its noise comes from the operating system alone; leave "
            "noise_generator out"
        )
    if isinstance(module, DifferentiallyPrivateDistributedDataParallel | DistributedDataParallel):
        raise ConfigError(
            "noise is 'integer' with several processes, but whole sums are added up in one process only; use one"
        )


def refuse_gradients_of_gradients(prepared: AbstractGradSampleModule | GradSampleHooks) -> None:
    """From here on, refuse a loss that holds a gradient, as WGAN-GP's penalty does, when it is differentiated.

    Gradients of single records are read off the first backward pass alone: the penalty would be missing from them,
    and the gradient that it is made of would be in them, without a word.
    """
    handles: list[Any] | None = getattr(prepared._module, "autograd_grad_sample_hooks", None)
    if handles is None:  # expanded weights have no hooks in their layers
        cast(nn.Module, prepared).register_full_backward_pre_hook(_refuse_second_order)
        return
    for layer in [layer for layer in prepared._module.modules() if layer._backward_hooks]:
        handles.append(layer.register_full_backward_pre_hook(_refuse_second_order))


def _refuse_second_order(_module: nn.Module, _grad: Any) -> None:
    """Only a backward pass with ``create_graph=True`` has gradients switched on."""
    if torch.is_grad_enabled():
        raise ConfigError(
            "a gradient is part of the loss (create_graph=True, as in WGAN-GP), but gradients of single records "
            "leave such a part out; use a loss without it, with weight clipping or spectral norms of your own"
        )


def refuse_second_start(num_steps: int) -> None:
    """A target that leaves out what was spent would be exceeded."""
    if num_steps:
        raise ConfigError(
            "make_private_with_epsilon was called when steps have been taken, but its target starts from nothing; "
            "use a new engine, or make_private with a noise_multiplier of your own"
        )


def refuse_mixing_layers(module: nn.Module) -> None:
    """Refuse what Opacus cannot treat, and say where in the network it is."""
    errors = ModuleValidator.validate(module, strict=False)
    if not errors:
        return
    validators = ModuleValidator.VALIDATORS
    paths = [
        f"{name or 'the module'} ({type(layer).__name__})"
        for name, layer in module.named_modules()
        if type(layer) in validators and validators[type(layer)](layer)
    ]
    where = ", ".join(paths) if paths else "the module"
    reason = str(errors[0]).split(". ")[0]
    raise ConfigError(
        f"{where}: {reason}; replace it yourself, by GroupNorm for BatchNorm, or with get_compatible_module before "
        "the optimiser is made"
    )
