"""Gradients of single records, by Opacus: the only part of DP-SGD that it does here.

Clipping, noise, lots and accounting are the product's own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from datalens.errors import MissingExtraError


def per_record_gradients(network: nn.Module, images_RCHW: Tensor, labels_R: Tensor) -> Tensor:
    """The gradient of each record's output with respect to all parameters, [R, P]; P in the order of parameters.

    Args:
        network: one output a record, nothing in it that mixes the records of a batch. Its weights stay as they are.
        images_RCHW: the records' images; R may be 0.
        labels_R: their classes.

    Guarantee: row r is a function of the weights, of record r and of how many rows there are; no other record takes
    part in it.

    Raises:
        MissingExtraError: Opacus is not installed.
    """
    wrapper = load_opacus()
    parameters = list(network.parameters())
    if not len(images_RCHW):
        return torch.zeros(0, sum(parameter.numel() for parameter in parameters), device=images_RCHW.device)
    wrapped = wrapper(network, loss_reduction="sum")
    try:
        images_RCHW = (
            images_RCHW.detach().requires_grad_()
        )  # hooks of the first layer want an input with a gradient
        wrapped(images_RCHW, labels_R).sum().backward()
        return torch.cat([parameter.grad_sample.flatten(1) for parameter in parameters], 1)  # pyright: ignore
    finally:
        wrapped.to_standard_module()
        network.zero_grad(set_to_none=True)


def load_opacus() -> Any:
    """Opacus' wrapper around a network, or a refusal that names the extra.

    Raises:
        MissingExtraError: Opacus is not installed.
    """
    try:
        from opacus.grad_sample import GradSampleModule
    except ImportError:
        raise MissingExtraError(
            "gradients of single records need Opacus, which is not installed; run: pip install 'datalens-dp[dpsgd]'"
        ) from None
    return GradSampleModule
