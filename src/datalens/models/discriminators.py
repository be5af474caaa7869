"""A conditional discriminator of the DCGAN kind, without anything that mixes the images of a batch."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from datalens.models.patches import map_sizes

KERNEL = 5
LEAK = 0.2


class ConditionalDiscriminator(nn.Module):
    """5x5 stride-2 convolutions with leaky ReLU, labels joined as planes at the first, one logit at the end.

    There is no batch norm: a record's gradient then depends on that record alone, which per-sample clipping
    (DP-SGD) and gradient penalties need. Parameters are zeros until :meth:`init_weights`.

    Args:
        image_shape: (C, H, W), H = W divisible by 4.
        num_classes: Y.
        channels: of the first map; doubled with each further convolution.

    Raises:
        ConfigError: a shape that the network cannot have.

    >>> net = ConditionalDiscriminator((1, 28, 28), 10)
    >>> net.init_weights(torch.Generator().manual_seed(0))
    >>> net(torch.zeros(2, 1, 28, 28), torch.tensor([3, 7])).shape
    torch.Size([2])
    """

    def __init__(self, image_shape: tuple[int, int, int], num_classes: int, channels: int = 32) -> None:
        super().__init__()
        sizes = map_sizes(image_shape)
        self.num_classes = num_classes
        widths = [image_shape[0] + num_classes] + [channels << i for i in range(len(sizes) - 1)]
        with torch.device("meta"):  # no draw from the global generator
            self.shrink: nn.ModuleList = nn.ModuleList(
                nn.Conv2d(fan_in, fan_out, KERNEL, stride=2, padding=2)
                for fan_in, fan_out in pairwise(widths)
            )
            self.logit: nn.Linear = nn.Linear(widths[-1] * sizes[-1] ** 2, 1)
        self.to_empty(device="cpu")
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def init_weights(self, rng: torch.Generator) -> None:
        """He-normal weights from ``rng`` alone, biases 0."""
        with torch.no_grad():
            for parameter in self.parameters():
                if parameter.ndim == 1:
                    nn.init.zeros_(parameter)
                    continue
                drawn = torch.empty(parameter.shape, device=rng.device)
                fan_in = parameter[0].numel()
                parameter.copy_(drawn.normal_(0.0, (2.0 / fan_in) ** 0.5, generator=rng))

    def forward(self, images_BCHW: Tensor, labels_B: Tensor) -> Tensor:
        """``logit_B``: how real each image looks for its label; images in [0, 1], labels in 0..Y-1."""
        height, width = images_BCHW.shape[2:]
        onehot_BY = functional.one_hot(labels_B, self.num_classes).to(images_BCHW.dtype)
        planes = onehot_BY[:, :, None, None].expand(-1, -1, height, width)
        x = torch.cat([2 * images_BCHW - 1, planes], 1)
        for shrink in self.shrink:
            x = functional.leaky_relu(shrink(x), LEAK)
        return self.logit(x.flatten(1)).squeeze(1)
