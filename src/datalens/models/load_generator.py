"""Draw images from the generator that lies beside this file; PyTorch and safetensors are all that is needed.

It reads ``generator.safetensors`` and ``config.json`` and runs nothing else. On a command line,
``python load_generator.py 100 pictures`` writes a hundred pictures into a new folder, the number of its class in each
one's name; in Python:

    from load_generator import Generator
    images, labels = Generator().sample(100)
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

AT_ONCE = 100
"""Images that are drawn together, so that memory does not limit how many there are."""
FINISH = 7
"""Latents of the last layer: rotation, two stretches, shear, two shifts, lightness."""
EXTRA = 13
"""Latents of a mixture besides its law's: kind, class of the other image, share, side and place of a cut, gain,
lightness, and six of the other image's warp."""
TRIES = 16
"""Images drawn for one of a class that was asked for, where a judge names them."""


class Generator:
    """A released generator.

    Args:
        folder: holds its two files; left out, the folder of this file.

    Attributes:
        classes: names, in the order of their numbers.
        image_shape: (C, H, W).
    """

    def __init__(self, folder: str | Path = Path(__file__).parent) -> None:
        told = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
        tensors = load_file(Path(folder) / "generator.safetensors")
        self._tensors = {
            name.removeprefix("inner.").removeprefix("law."): tensor for name, tensor in tensors.items()
        }
        self._mixes, self._judges = "inner.law.mean_YD" in tensors, bool(tensors.get("judge.length", 0) > 0)
        self.classes: list[str] = told["classes"]
        self.image_shape: tuple[int, int, int] = tuple(told["image_shape"])
        method = told["config"].get("settings", {})
        settings = told["config"].get("student") or method.get("generator") or method
        self._finish = {"jitter": 0.0, "contrast": 1.0, "lightness": 0.0, "lightness_spread": 0.0}
        self._finish |= settings.get("finish", {})
        self._smoothing, self._law = settings.get("smoothing", 0), settings.get("latent_law", "normal")

    def sample(
        self, count: int, labels: Sequence[int] | None = None, seed: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Images uint8 [count, C, H, W] and their classes' numbers int64 [count].

        Where a judge was released, it says what an image's class is. An image of a class that was asked for is drawn
        up to 16 times, until the judge agrees; the last one stays.

        Args:
            count: how many.
            labels: numbers of their classes; left out, uniform on the classes; a judge's names where there is one.
            seed: for the same images again; they are others than DataLens draws from that seed.
        """
        rng = torch.Generator()
        if seed is None:
            rng.seed()
        else:
            rng.manual_seed(seed)
        drawn = torch.randint(len(self.classes), (count,), generator=rng)
        labels_B = drawn if labels is None else torch.as_tensor(labels, dtype=torch.int64)
        parts = zip(self.latents(count, rng).split(AT_ONCE), labels_B.split(AT_ONCE), strict=True)
        with torch.no_grad():
            done = [self._named(*part, None if labels is None else rng) for part in parts]
        images, names = zip(*done, strict=True)
        return torch.cat(images), torch.cat(names)

    def _named(
        self, latents_BZ: Tensor, labels_B: Tensor, again: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Images uint8 and their classes' numbers; ``again`` draws more, where classes were asked for."""
        images = _bytes(self.draw(latents_BZ, labels_B))
        if not self._judges:
            return images, labels_B
        name_B = self._judge(images)
        if again is None:
            return images, name_B
        for _ in range(TRIES - 1):
            wrong_B = name_B != labels_B
            count = int(wrong_B.sum())
            if not count:
                break
            other = _bytes(self.draw(self.latents(count, again), labels_B[wrong_B]))
            images[wrong_B], name_B[wrong_B] = other, self._judge(other)
        return images, labels_B

    def _judge(self, images: Tensor) -> Tensor:
        """What the judge calls images uint8: two convolutional networks' features, their frame, linear logits."""
        found: list[Tensor] = []
        for network in ("judge.networks.0.trunk", "judge.networks.1.trunk"):
            x = self._convolved(f"{network}.0", images.float() / 255)
            maps = functional.relu(
                self._convolved(f"{network}.4", functional.relu(functional.max_pool2d(x, 2)))
            )
            found.append(functional.adaptive_avg_pool2d(maps, 5).flatten(1))
            found.append(functional.relu(self._dense(f"{network}.8", maps.flatten(1))))
        parts = ("centre_F", "frame_FK", "head_YK", "length")
        centre_F, frame_FK, head_YK, length = (self._tensors[f"judge.{name}"].double() for name in parts)
        along_BK = (torch.cat(found, 1).double() - centre_F) @ frame_FK
        norm_B1 = torch.linalg.vector_norm(along_BK, dim=1, keepdim=True)
        along_BK = along_BK * (length / norm_B1.clamp(min=1e-12)).clamp(max=1.0)
        rows_BK = torch.cat([along_BK, torch.ones_like(norm_B1)], 1) / torch.sqrt(length.square() + 1)
        return (rows_BK @ head_YK.T).argmax(1)

    def latents(self, count: int, rng: torch.Generator) -> Tensor:
        """float32 [count, Z + 7], from the law that the generator was trained with."""
        if "mean_YD" in self._tensors:
            rank = self._tensors["factor_YKL"].shape[1]
            dim = rank + math.prod(self.image_shape) + (rank + EXTRA if self._mixes else 0)
        else:
            dim = self._tensors["hidden.weight"].shape[1] - len(self.classes)
        if self._law == "normal":
            inner = torch.randn(count, dim, generator=rng)
        elif self._law == "codes":
            inner = 4.0 * functional.one_hot(torch.randint(dim, (count,), generator=rng), dim)
        else:
            inner = torch.rand(count, dim, generator=rng) * 2 - 1
        return torch.cat([inner, torch.rand(count, FINISH, generator=rng) * 2 - 1], 1)

    def draw(self, latents_BZ: Tensor, labels_B: Tensor) -> Tensor:
        """Images float32 [B, C, H, W] in [0, 1] from latents [B, Z + 7] and classes' numbers [B]."""
        plain = self._normal_law if "mean_YD" in self._tensors else self._network
        plain = self._mixture if self._mixes else plain
        images, finish = plain(latents_BZ[:, :-FINISH], labels_B), self._finish
        if (finish["contrast"], finish["lightness"], finish["lightness_spread"]) != (1.0, 0.0, 0.0):
            lightness_B = finish["lightness"] + finish["lightness_spread"] * latents_BZ[:, -1]
            logits = torch.logit(images.clamp(1e-3, 1 - 1e-3)) + lightness_B[:, None, None, None]
            images = torch.sigmoid(finish["contrast"] * logits)
        return self._warp(images, latents_BZ[:, -FINISH:-1]) if finish["jitter"] else images

    def _network(self, latents_BZ: Tensor, labels_B: Tensor) -> Tensor:
        """A dense layer and transposed convolutions, the class joined at every stage."""
        onehot_BY = functional.one_hot(labels_B, len(self.classes)).to(latents_BZ.dtype)
        x = self._norm("hidden_norm", self._dense("hidden", torch.cat([latents_BZ, onehot_BY], 1)))
        x = self._dense("spread", torch.cat([x, onehot_BY], 1))
        channels = len(self._tensors["grow_norms.0.weight"])
        side = math.isqrt(x.shape[1] // channels)
        x = x.view(len(x), channels, side, side)
        for stage in range(sum(name.startswith("grow.") for name in self._tensors) // 2):
            x = self._norm(f"grow_norms.{stage}", x)
            planes = onehot_BY[:, :, None, None].expand(-1, -1, x.shape[2], x.shape[3])
            weight, bias = (self._tensors[f"grow.{stage}.{name}"] for name in ("weight", "bias"))
            x = functional.conv_transpose2d(
                torch.cat([x, planes], 1), weight, bias, stride=2, padding=2, output_padding=1
            )
        row = torch.tensor([0.25, 0.5, 0.25])
        kernel = torch.outer(row, row).expand(x.shape[1], 1, 3, 3)
        for _ in range(self._smoothing):
            x = functional.conv2d(
                functional.pad(x, (1, 1, 1, 1), mode="replicate"), kernel, groups=x.shape[1]
            )
        return torch.sigmoid(x)

    def _dense(self, name: str, x: Tensor) -> Tensor:
        return functional.linear(x, self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"])

    def _convolved(self, name: str, x: Tensor) -> Tensor:
        return functional.conv2d(x, self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"])

    def _norm(self, name: str, x: Tensor) -> Tensor:
        parts = ("running_mean", "running_var", "weight", "bias")
        mean, variance, weight, bias = (self._tensors[f"{name}.{part}"] for part in parts)
        return functional.relu(functional.batch_norm(x, mean, variance, weight, bias))

    def _normal_law(self, latents_BZ: Tensor, labels_B: Tensor) -> Tensor:
        """A normal law of cosines' weights a class: low ones along its directions, a grain in all of them."""
        mean_YD, factor_YKL = self._tensors["mean_YD"], self._tensors["factor_YKL"]
        (channels, height, width), rank = self.image_shape, factor_YKL.shape[1]
        num_low = math.isqrt(factor_YKL.shape[2] // channels)
        low_HW = (torch.arange(height) < num_low)[:, None] & (torch.arange(width) < num_low)
        fine_HW = torch.arange(height)[:, None] / height + torch.arange(width)[None] / width
        num_bands = self._tensors["grain_YG"].shape[1] // 2
        bin_HW = 2 * (fine_HW * (num_bands / 2)).to(torch.int64) + low_HW
        bin_D = bin_HW.expand(channels, -1, -1).flatten()
        low_L = torch.nonzero(low_HW.expand(channels, -1, -1).flatten()).squeeze(1)
        low_BL = torch.einsum("bk,bkl->bl", latents_BZ[:, :rank], factor_YKL[labels_B])
        plain = self._of_cosines(mean_YD[labels_B].index_add(1, low_L, low_BL)).clamp(0, 1)
        grain = self._of_cosines(latents_BZ[:, rank:] * self._tensors["grain_YG"][labels_B][:, bin_D])
        tone = (plain * (1 - plain)).sqrt()
        usual = tone.square().mean((1, 2, 3), keepdim=True).sqrt() + 1e-3
        return (plain + grain * (tone / usual).clamp(max=3)).clamp(0, 1)

    def _mixture(self, latents_BZ: Tensor, labels_B: Tensor) -> Tensor:
        """An image of the law as it is, mixed with another, cut, in another tone, or mixed and so."""
        rank, (_, height, width) = self._tensors["factor_YKL"].shape[1], self.image_shape
        sizes = [rank, math.prod(self.image_shape), rank, EXTRA]
        first_BK, grain_BD, other_BK, extra_BE = latents_BZ.split(sizes, 1)
        chance_BE = torch.special.ndtr(extra_BE).clamp(max=1 - 1e-6)
        kind_B = (chance_BE[:, 0] * 5).to(torch.int64)
        mixed_B, toned_B = (kind_B == 1) | (kind_B == 4), (kind_B == 3) | (kind_B == 4)
        other_B = (chance_BE[:, 1] * len(self.classes)).to(torch.int64)
        second = self._normal_law(torch.cat([other_BK, torch.zeros_like(grain_BD)], 1), other_B)
        second = self._warp(second, 2 * chance_BE[:, 7:] - 1) if self._finish["jitter"] else second
        grain_BD = grain_BD.masked_fill((kind_B == 3)[:, None], 0.0)
        image = self._normal_law(torch.cat([first_BK, grain_BD], 1), labels_B)
        share = torch.where(mixed_B, chance_BE[:, 2], 1.0)[:, None, None, None]
        image = share * image + (1 - share) * second
        rows, columns = torch.arange(height)[:, None] / height, torch.arange(width)[None] / width
        at_BHW = torch.where((chance_BE[:, 3] < 0.5)[:, None, None], rows, columns)
        place_B = 2 / 7 + (5 / 7 - 2 / 7) * chance_BE[:, 4]
        kept_BHW = (kind_B != 2)[:, None, None] | (at_BHW < place_B[:, None, None])
        image = torch.where(kept_BHW[:, None], image, second)
        gain = (1 + 2.0 * chance_BE[:, 5])[:, None, None, None]
        lightness = (0.75 * extra_BE[:, 6])[:, None, None, None]
        toned = torch.sigmoid(gain * (torch.logit(image.clamp(1e-3, 1 - 1e-3)) + lightness))
        return torch.where(toned_B[:, None, None, None], toned, image)

    def _of_cosines(self, numbers_BD: Tensor) -> Tensor:
        """Images of the weights of an orthonormal cosine basis (DCT-II)."""
        rows, columns = (_cosines(side).to(numbers_BD) for side in self.image_shape[1:])
        return rows.T @ numbers_BD.view(-1, *self.image_shape) @ columns

    def _warp(self, images: Tensor, latents_BW: Tensor) -> Tensor:
        """Rotate, stretch, shear and shift each image a little, by its own latents."""
        angle, wide, high, lean, right, down = (self._finish["jitter"] * latents_BW).unbind(1)
        cos, sin = torch.cos(angle * 0.26), torch.sin(angle * 0.26)
        wide, high, lean = 1 + 0.12 * wide, 1 + 0.12 * high, 0.2 * lean
        first = torch.stack([cos * wide, (lean * cos - sin) * high, 0.1 * right], 1)
        second = torch.stack([sin * wide, (lean * sin + cos) * high, 0.1 * down], 1)
        places = functional.affine_grid(
            torch.stack([first, second], 1), list(images.shape), align_corners=False
        )
        padding = "zeros" if self._finish.get("outside") == "black" else "border"
        return functional.grid_sample(images, places, padding_mode=padding, align_corners=False)


def _bytes(images: Tensor) -> Tensor:
    return (images * 255).round().clamp(0, 255).to(torch.uint8)


def _cosines(side: int) -> Tensor:
    places = torch.arange(side, dtype=torch.float64)
    basis = torch.cos(math.pi / side * places[:, None] * (places + 0.5)) * math.sqrt(2 / side)
    basis[0] /= math.sqrt(2)
    return basis


def picture(image_CHW: Tensor) -> bytes:
    """A netpbm file of an image uint8, which image viewers open: grey (PGM) or colour (PPM)."""
    channels, height, width = image_CHW.shape
    header = f"P{5 if channels == 1 else 6} {width} {height} 255\n"
    return header.encode() + bytes(image_CHW.permute(1, 2, 0).flatten().tolist())


def main() -> None:
    """The command line."""
    if len(sys.argv) != 3 or not sys.argv[1].isdecimal() or int(sys.argv[1]) < 1:
        sys.exit("usage: python load_generator.py NUMBER NEW_FOLDER")
    count, folder, generator = int(sys.argv[1]), Path(sys.argv[2]), Generator()
    try:
        folder.mkdir()
        for first in range(0, count, AT_ONCE):
            images, labels = generator.sample(min(AT_ONCE, count - first))
            for number, (image, label) in enumerate(zip(images, labels, strict=True), first):
                ending = "pgm" if len(image) == 1 else "ppm"
                (folder / f"{number:06d}-class-{int(label)}.{ending}").write_bytes(picture(image))
    except OSError as error:
        sys.exit(f"{folder}: {error.strerror}; give a new folder, in a place with room")


if __name__ == "__main__":
    main()
