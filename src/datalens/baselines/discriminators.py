"""Small conditional discriminators side by side: one hidden layer, a class vector each, an Adam of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from datalens.errors import CheckpointError

LEAK = 0.2


class Discriminators:
    """``count`` networks as stacked parameters; axis T is a batch of independent programs.

    A network sees an image and its label: ``logit = <leaky_relu(x W + b), v_y> + c`` (the projection
    discriminator of Miyato and Koyama 2018 with one hidden layer).

    Guarantee: no parameter, gradient or moment of one network takes part in another's; numbers that are not finite
    stay with the network that had them.

    Args:
        count: T.
        dim: coordinates of an image, D.
        num_classes: Y.
        hidden_units: width of the hidden layer.
        learning_rate: Adam's; its beta1 is 0.5.
        rng: source of the initial weights, which differ from network to network.
        device: where they compute.
    """

    def __init__(
        self,
        count: int,
        dim: int,
        num_classes: int,
        hidden_units: int,
        learning_rate: float,
        rng: torch.Generator,
        device: torch.device,
    ) -> None:
        def normal(*shape: int, stddev: float) -> Tensor:
            drawn = torch.empty(shape, device=rng.device).normal_(0.0, stddev, generator=rng)
            return drawn.to(device).requires_grad_()

        self.count = count
        self.parameters: dict[str, Tensor] = {
            "image": normal(count, dim, hidden_units, stddev=math.sqrt(2 / dim)),
            "hidden": torch.zeros(count, 1, hidden_units, device=device, requires_grad=True),
            "class": normal(count, num_classes, hidden_units, stddev=math.sqrt(1 / hidden_units)),
            "logit": torch.zeros(count, 1, device=device, requires_grad=True),
        }
        self._adam = torch.optim.Adam(list(self.parameters.values()), learning_rate, betas=(0.5, 0.999))

    def logits(self, images_TRD: Tensor, labels_TR: Tensor) -> Tensor:
        """``logit_TR``, positive where a network takes an image for real.

        Args:
            images_TRD: the images of each network, or [1, R, D] for the same ones for all.
            labels_TR: their classes, or [1, R].
        """
        own = self.parameters
        hidden_TRH = functional.leaky_relu(torch.matmul(images_TRD, own["image"]) + own["hidden"], LEAK)
        labels_TR = labels_TR.expand(self.count, -1)
        class_TRH = own["class"].gather(1, labels_TR[:, :, None].expand(-1, -1, hidden_TRH.shape[2]))
        return (hidden_TRH * class_TRH).sum(2) + own["logit"]

    def learn(self, loss_T: Tensor) -> None:
        """One Adam step of every network down its own loss."""
        self._adam.zero_grad(set_to_none=True)
        loss_T.sum().backward()
        self._adam.step()

    def state_dict(self) -> dict[str, Tensor]:
        """Weights and Adam's state, as flat tensors."""
        state = {f"weights/{name}": value for name, value in self.parameters.items()}
        for name, value in self.parameters.items():
            state |= {f"adam/{name}/{key}": part for key, part in self._adam.state[value].items()}
        return {name: value.detach().clone() for name, value in state.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Put back what :meth:`state_dict` gave.

        Raises:
            CheckpointError: a state of other networks.
        """
        moments: dict[int, dict[str, Tensor]] = {}
        try:
            with torch.no_grad():
                for index, (name, value) in enumerate(self.parameters.items()):
                    saved = state[f"weights/{name}"]
                    if saved.shape != value.shape:
                        raise ValueError(f"{name} is {tuple(saved.shape)}, not {tuple(value.shape)}")
                    value.copy_(saved)
                    prefix = f"adam/{name}/"
                    found = {
                        key.removeprefix(prefix): part
                        for key, part in state.items()
                        if key.startswith(prefix)
                    }
                    if found:
                        moments[index] = found
        except (KeyError, ValueError) as error:
            raise CheckpointError(
                f"the discriminators' state does not fit this run ({error}): use the settings it was made with"
            ) from None
        groups = self._adam.state_dict()["param_groups"]
        self._adam.load_state_dict({"state": moments, "param_groups": groups})
