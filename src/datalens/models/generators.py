"""Conditional generators: latents and asked labels in, images out."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from datalens.errors import ConfigError
from datalens.models.patches import map_sizes

KERNEL = 5
INIT_STDDEV = 0.02


class ConditionalGenerator(nn.Module):
    """The paper's DCGAN generator, conditional on labels, for square images of any size.

    Latent and one-hot label -> ``hidden_units`` -> the smallest map with ``channels`` channels -> 5x5
    stride-2 transposed convolutions (two at 28x28, three at 64x64), the last one to the image. Batch norm
    and ReLU between, the label joined at every stage, sigmoid at the end. With the defaults and 28x28x1,
    10 classes, 50 latents: 7.0 million parameters; smaller widths give a compact variant.

    In training mode batch norm uses the statistics of the batch; in evaluation mode the running ones, and
    then an image depends on its own latent and label only. Running statistics that have seen few steps, or
    weights that moved far since, mislead: ``momentum`` is their rate, and :meth:`settle_statistics`
    measures them afresh for the weights as they are.

    Parameters are zeros until :meth:`init_weights`; nothing draws from PyTorch's global generator.

    Args:
        latent_dim: Z.
        num_classes: Y.
        image_shape: (C, H, W), H = W divisible by 4.
        hidden_units: width of the dense layer.
        channels: channels of the smallest map; halved with each further transposed convolution but the first.
        momentum: weight of the newest batch in the running statistics, in (0, 1].
        smoothing: passes of a 3x3 binomial filter over the image before the sigmoid; a fixed public prior that
            neighbouring pixels are alike, which also keeps released noise from being drawn.

    Raises:
        ConfigError: a shape, width or momentum that the network cannot have.

    >>> net = ConditionalGenerator(50, 10, (1, 28, 28))
    >>> net.init_weights(torch.Generator().manual_seed(0))
    >>> net(torch.zeros(2, 50), torch.tensor([3, 7])).shape
    torch.Size([2, 1, 28, 28])
    """

    def __init__(
        self,
        latent_dim: int,
        num_classes: int,
        image_shape: tuple[int, int, int],
        hidden_units: int = 1024,
        channels: int = 128,
        momentum: float = 0.1,
        smoothing: int = 0,
    ) -> None:
        super().__init__()
        for name, value in (
            ("latent_dim", latent_dim),
            ("num_classes", num_classes),
            ("hidden_units", hidden_units),
            ("channels", channels),
        ):
            if value < 1:
                raise ConfigError(f"{name} is {value}: it must be at least 1; give a larger one")
        if not 0 < momentum <= 1:
            raise ConfigError(
                f"momentum is {momentum}: it must be above 0 and at most 1; the usual one is 0.1"
            )
        sizes = map_sizes(image_shape)
        self.latent_dim = latent_dim
        self.num_classes = num_classes
        self.image_shape = image_shape
        self.smoothing = smoothing
        self._smallest = sizes[-1]
        widths = [channels] + [max(1, channels >> i) for i in range(len(sizes) - 2)] + [image_shape[0]]
        with torch.device("meta"):  # no draw: the usual initialisation would use the global generator
            self.hidden: nn.Linear = nn.Linear(latent_dim + num_classes, hidden_units)
            self.hidden_norm: nn.BatchNorm1d = nn.BatchNorm1d(hidden_units, momentum=momentum)
            self.spread: nn.Linear = nn.Linear(hidden_units + num_classes, channels * sizes[-1] ** 2)
            self.grow: nn.ModuleList = nn.ModuleList(
                nn.ConvTranspose2d(
                    fan_in + num_classes, fan_out, KERNEL, stride=2, padding=2, output_padding=1
                )
                for fan_in, fan_out in pairwise(widths)
            )
            self.grow_norms: nn.ModuleList = nn.ModuleList(
                nn.BatchNorm2d(width, momentum=momentum) for width in widths[:-1]
            )
        self.to_empty(device="cpu")
        for parameter in self.parameters():
            nn.init.zeros_(parameter)
        for norm in self._norms():
            norm.reset_running_stats()

    def init_weights(self, rng: torch.Generator) -> None:
        """Weights normal with standard deviation 0.02 from ``rng`` alone, biases 0, batch-norm scales 1."""
        with torch.no_grad():
            for module in self.modules():
                if isinstance(module, nn.Linear | nn.ConvTranspose2d):
                    drawn = torch.empty(module.weight.shape, device=rng.device)
                    module.weight.copy_(drawn.normal_(0.0, INIT_STDDEV, generator=rng))
                    nn.init.zeros_(module.bias)  # pyright: ignore[reportArgumentType]
        for norm in self._norms():
            norm.reset_running_stats()
            nn.init.ones_(norm.weight)
            nn.init.zeros_(norm.bias)

    def forward(self, latents_BZ: Tensor, labels_B: Tensor) -> Tensor:
        """``images_BCHW`` float32 in [0, 1] from latents ``[B, Z]`` and labels in 0..Y-1."""
        onehot_BY = functional.one_hot(labels_B, self.num_classes).to(latents_BZ.dtype)
        x = self.hidden(torch.cat([latents_BZ, onehot_BY], 1))
        x = functional.relu(self.hidden_norm(x))
        x = self.spread(torch.cat([x, onehot_BY], 1))
        x = x.view(len(x), -1, self._smallest, self._smallest)
        for norm, grow in zip(self.grow_norms, self.grow, strict=True):
            x = functional.relu(norm(x))
            planes = onehot_BY[:, :, None, None].expand(-1, -1, x.shape[2], x.shape[3])
            x = grow(torch.cat([x, planes], 1))
        return torch.sigmoid(smooth(x, self.smoothing))

    @torch.no_grad()
    def settle_statistics(self, latents_BZ: Tensor, labels_B: Tensor, batch_size: int = 500) -> None:
        """Measure the running statistics afresh, as plain means over these latents and labels.

        Only public latents and labels go in, so this is post-processing. The mode is left as it was.
        """
        norms, training = self._norms(), self.training
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        self.train()
        try:
            for latents, labels in zip(latents_BZ.split(batch_size), labels_B.split(batch_size), strict=True):
                self(latents, labels)
        finally:
            self.train(training)
            for norm, momentum in zip(norms, momenta, strict=True):
                norm.momentum = momentum

    def _norms(self) -> list[nn.BatchNorm1d | nn.BatchNorm2d]:
        return [m for m in self.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]


def smooth(images_BCHW: Tensor, passes: int) -> Tensor:
    """``passes`` times a 3x3 binomial filter (1 2 1), channel by channel, edges repeated.

    >>> smooth(torch.ones(1, 1, 3, 3), 2).sum().item()
    9.0
    """
    if passes == 0:
        return images_BCHW
    channels = images_BCHW.shape[1]
    row = torch.tensor([0.25, 0.5, 0.25]).to(images_BCHW, non_blocking=True)
    kernel = torch.outer(row, row).expand(channels, 1, 3, 3)
    for _ in range(passes):
        padded = functional.pad(images_BCHW, (1, 1, 1, 1), mode="replicate")
        images_BCHW = functional.conv2d(padded, kernel, groups=channels)
    return images_BCHW
