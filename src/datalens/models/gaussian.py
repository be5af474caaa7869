"""A generator that is one Gaussian a class: a mean image, directions in which images of the class vary, and grain."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from datalens.models.frequencies import Frequencies

_LEAST_TONE = 1e-3


class GaussianImages(nn.Module):
    """Images from a normal law a class, its low frequencies correlated and the rest independent, cut to [0, 1].

    Independent frequencies make a grain, which is laid where the image is neither black nor white: there a cut image
    cannot vary.

    Parameters are zeros until :meth:`set_law`.

    Args:
        frequencies: the basis.
        num_classes: Y.
        rank: K, directions a class.
    """

    mean_YD: Tensor
    factor_YKL: Tensor
    grain_YG: Tensor

    def __init__(self, frequencies: Frequencies, num_classes: int, rank: int) -> None:
        super().__init__()
        self.frequencies = frequencies
        self.num_classes = num_classes
        self.rank = rank
        self.image_shape: tuple[int, int, int] = frequencies.image_shape
        shapes = {
            "mean_YD": (num_classes, frequencies.dim),
            "factor_YKL": (num_classes, rank, frequencies.num_low_coordinates),
            "grain_YG": (num_classes, frequencies.num_bins),
        }
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))

    @property
    def latent_dim(self) -> int:
        """Normal numbers that an image is made of: K of its class's directions, D of its grain."""
        return self.rank + self.frequencies.dim

    @torch.no_grad()
    def set_law(self, mean_YD: Tensor, factor_YKL: Tensor, grain_YG: Tensor) -> None:
        """Mean, directions (each as long as the standard deviation along it), and standard deviation a bin."""
        self.mean_YD.copy_(mean_YD)
        self.factor_YKL.copy_(factor_YKL)
        self.grain_YG.copy_(grain_YG)

    def forward(self, latents_BZ: Tensor, labels_B: Tensor) -> Tensor:
        """``images_BCHW`` in [0, 1] from normal latents ``[B, K + D]`` and labels in 0..Y-1."""
        basis = self.frequencies
        along_BK, grain_BD = latents_BZ[:, : self.rank], latents_BZ[:, self.rank :]
        low_BL = torch.einsum("bk,bkl->bl", along_BK, self.factor_YKL[labels_B])
        plain_BD = self.mean_YD[labels_B].index_add(1, basis.low_L.to(low_BL.device), low_BL)
        plain = basis.to_images(plain_BD).clamp(0, 1)
        stddev_BD = self.grain_YG[labels_B][:, basis.bin_D.to(low_BL.device)]
        grain = basis.to_images(grain_BD * stddev_BD)
        tone = (plain * (1 - plain)).sqrt()
        usual = tone.square().mean((1, 2, 3), keepdim=True).sqrt() + _LEAST_TONE
        return (plain + grain * (tone / usual).clamp(max=3)).clamp(0, 1)
