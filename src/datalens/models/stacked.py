"""Many small discriminators as one: parameters stacked along axis T, no operation crosses it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from datalens.errors import ConfigError
from datalens.models.patches import KERNEL, fold_patches, map_sizes, take_patches

Params = dict[str, Tensor]
"""Stacked parameters by name; axis 0 is the teacher."""

LEAK = 0.2
NORM_EPS = 1e-5


class StackedDiscriminator(Protocol):
    """A discriminator that exists once for every teacher."""

    def init(self, num_teachers: int, rng: torch.Generator) -> Params:
        """Fresh parameters, each ``[T, ...]``, drawn from ``rng`` alone."""
        ...

    def logits(self, params: Params, images: Tensor, labels: Tensor) -> Tensor:
        """``logit_TB``: the belief that an image is real, before the sigmoid."""
        ...


@dataclass(frozen=True)
class DiscriminatorBatch:
    """One batch for every teacher, prepared once and used in several steps.

    Attributes:
        patches_TNK: the image patches under the first convolution, N = B * positions.
        onehot_TBY: labels.
        weight_TB: what an image weighs in the mean of its group: 1 / (present images of the group), or 0.
        groups: (start, stop) along B; batch statistics are taken within a group only.
    """

    patches_TNK: Tensor
    onehot_TBY: Tensor
    weight_TB: Tensor
    groups: tuple[tuple[int, int], ...]

    def judged_by_first(self) -> DiscriminatorBatch:
        """The same images, all normalised by the batch statistics of the first group."""
        weight_TB = self.weight_TB.clone()
        weight_TB[:, self.groups[0][1] :] = 0.0
        return replace(self, weight_TB=weight_TB, groups=((0, weight_TB.shape[1]),))


@dataclass
class _Tape:
    """What the backward pass needs of the forward pass."""

    patches: list[Tensor] = field(default_factory=list)
    activations: list[Tensor] = field(default_factory=list)
    norms: dict[str, tuple[Tensor, list[Tensor]]] = field(default_factory=dict)


@dataclass(frozen=True)
class PaperDiscriminator:
    """The paper's convolutional discriminator, conditional on labels, for square images of any size.

    5x5 stride-2 convolutions (two at 28x28; more until the map is at most 8 wide), each with the label
    planes joined to its input; then ``hidden_units`` units and one logit, each with the one-hot label
    joined. Leaky ReLU everywhere; batch norm with batch statistics after every layer but the first and
    the last. Label planes are constant, so what they add is looked up instead of convolved.
    At 28x28x1 and 10 classes it has 555,655 parameters.

    Gradients are written out by hand: the slow twin in ``tests/reference.py`` checks them.

    Attributes:
        image_shape: (C, H, W), H = W divisible by 4.
        num_classes: Y.
        channels: width of the second convolution before Y is added; doubles with each further one.
        hidden_units: width of the dense layer.
        init_stddev: standard deviation of the initial weights; biases start at 0.

    Raises:
        ConfigError: a shape or width that the network cannot have.
    """

    image_shape: tuple[int, int, int]
    num_classes: int
    channels: int = 32
    hidden_units: int = 256
    init_stddev: float = 0.02

    def __post_init__(self) -> None:
        map_sizes(self.image_shape)
        for name in ("num_classes", "channels", "hidden_units"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"{name} is {getattr(self, name)}: it must be at least 1; give a larger one"
                )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Width of the map: of the image, then after every convolution."""
        return map_sizes(self.image_shape)

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels: of the image, then after every convolution."""
        channels, classes = self.image_shape[0], self.num_classes
        later = [self.channels * 2**i + classes for i in range(len(self.sizes) - 2)]
        return (channels, channels + classes, *later)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter of one teacher, by name."""
        classes, units = self.num_classes, self.hidden_units
        shapes: dict[str, tuple[int, ...]] = {}
        for i, (fan_in, fan_out) in enumerate(zip(self.widths[:-1], self.widths[1:], strict=True)):
            shapes[f"conv{i}.image"] = (KERNEL * KERNEL * fan_in, fan_out)
            shapes[f"conv{i}.label"] = (classes, KERNEL * KERNEL, fan_out)
            shapes[f"conv{i}.bias"] = (fan_out,)
            if i > 0:
                shapes[f"conv{i}.scale"] = (fan_out,)
                shapes[f"conv{i}.shift"] = (fan_out,)
        shapes["hidden.image"] = (self.sizes[-1] ** 2 * self.widths[-1], units)
        shapes["hidden.label"] = (classes, units)
        shapes["hidden.bias"] = shapes["hidden.scale"] = shapes["hidden.shift"] = (units,)
        shapes["out.image"] = (units, 1)
        shapes["out.label"] = (classes, 1)
        shapes["out.bias"] = (1,)
        return shapes

    @property
    def num_parameters(self) -> int:
        """Parameters of one teacher.

        >>> PaperDiscriminator((1, 28, 28), 10).num_parameters
        555655
        """
        return sum(torch.Size(shape).numel() for shape in self.shapes().values())

    def init(self, num_teachers: int, rng: torch.Generator) -> Params:
        """Fresh parameters: weights normal with ``init_stddev``, biases 0, batch-norm scales 1."""
        params: Params = {}
        for name, shape in self.shapes().items():
            value = torch.zeros(num_teachers, *shape, device=rng.device)
            if name.endswith((".image", ".label")):
                value.normal_(0.0, self.init_stddev, generator=rng)
            elif name.endswith(".scale"):
                value.fill_(1.0)
            params[name] = value
        return params

    def batch(self, parts: list[tuple[Tensor, Tensor, Tensor | None]]) -> DiscriminatorBatch:
        """Join (images, labels, present) parts into one batch; each part is its own batch-norm group.

        Args:
            parts: images ``[T,B,C,H,W]``, labels ``[T,B]`` and present ``[T,B]`` (None: all are). What
                stands in slots that are not present has no influence, whatever it is.
        """
        patches, onehots, weights, groups, start = [], [], [], [], 0
        for images_TBCHW, labels_TB, present_TB in parts:
            if present_TB is None:
                present_TB = torch.ones_like(labels_TB, dtype=torch.bool)
            images_TBCHW = torch.where(present_TB[:, :, None, None, None], images_TBCHW, 0.0)
            labels_TB = torch.where(present_TB, labels_TB, 0)
            patches.append(take_patches(images_TBCHW.movedim(2, -1)))
            onehots.append(functional.one_hot(labels_TB, self.num_classes).to(images_TBCHW.dtype))
            present = present_TB.to(images_TBCHW.dtype)
            weights.append(present / present.sum(1, keepdim=True).clamp(min=1.0))
            groups.append((start, start + labels_TB.shape[1]))
            start = groups[-1][1]
        return DiscriminatorBatch(
            torch.cat(patches, 1), torch.cat(onehots, 1), torch.cat(weights, 1), tuple(groups)
        )

    def logits(self, params: Params, images: Tensor, labels: Tensor) -> Tensor:
        """``logit_TB`` of one group of images, ``[T,B,C,H,W]`` or shared ``[B,C,H,W]``."""
        if images.dim() == 4:
            num_teachers = params["out.bias"].shape[0]
            images, labels = images.expand(num_teachers, *images.shape), labels.expand(num_teachers, -1)
        return self.forward(params, self.batch([(images, labels, None)]))[0]

    def forward(self, params: Params, batch: DiscriminatorBatch) -> tuple[Tensor, _Tape]:
        """``logit_TB`` and the tape for :meth:`backward`."""
        tape = _Tape()
        onehot_TBY = batch.onehot_TBY
        num_teachers, num_images, classes = onehot_TBY.shape
        patches = batch.patches_TNK
        for i, size in enumerate(self.sizes[1:]):
            pre_TNF = torch.bmm(patches, params[f"conv{i}.image"])
            taps = label_taps(self.sizes[i]).to(pre_TNF)
            by_label = torch.matmul(taps, params[f"conv{i}.label"]) + params[f"conv{i}.bias"][:, None, None]
            pre_TNF.view(num_teachers, num_images, -1).baddbmm_(
                onehot_TBY, by_label.reshape(num_teachers, classes, -1)
            )
            pre_TNF = self._norm(params, f"conv{i}", pre_TNF, batch, size * size, tape) if i else pre_TNF
            active = functional.leaky_relu_(pre_TNF, LEAK)
            tape.patches.append(patches)
            tape.activations.append(active)
            if i + 2 < len(self.sizes):
                patches = take_patches(active.view(num_teachers, num_images, size, size, -1))
        flat_TBF = tape.activations[-1].view(num_teachers, num_images, -1)
        pre_TBH = torch.bmm(flat_TBF, params["hidden.image"]) + params["hidden.bias"][:, None]
        pre_TBH.baddbmm_(onehot_TBY, params["hidden.label"])
        active = functional.leaky_relu_(self._norm(params, "hidden", pre_TBH, batch, 1, tape), LEAK)
        tape.activations.append(active)
        logit_TB1 = torch.bmm(active, params["out.image"]) + torch.bmm(onehot_TBY, params["out.label"])
        return (logit_TB1 + params["out.bias"][:, None]).squeeze(2), tape

    def backward(self, params: Params, batch: DiscriminatorBatch, tape: _Tape, grad_TB: Tensor) -> Params:
        """Gradient of sum(grad_TB * logit_TB) by every parameter.

        Biases before a batch norm are left out: their gradient is exactly zero.
        """
        grads: Params = {}
        self._backward(params, batch, tape, grad_TB, grads)
        return grads

    def image_gradient(
        self, params: Params, batch: DiscriminatorBatch, tape: _Tape, grad_TB: Tensor
    ) -> Tensor:
        """Gradient of sum(grad_TB * logit_TB) by the images (not the label planes): ``[T,B,C,H,W]``."""
        grad_TNF = self._backward(params, batch, tape, grad_TB, None)
        size, num_images = self.sizes[0], grad_TB.shape[1]
        grad_patches = torch.bmm(grad_TNF, params["conv0.image"].mT)
        return fold_patches(grad_patches, num_images, size, self.image_shape[0]).movedim(-1, 2)

    def _backward(
        self, params: Params, batch: DiscriminatorBatch, tape: _Tape, grad_TB: Tensor, grads: Params | None
    ) -> Tensor:
        """Walk back to what enters the first activation; fill ``grads`` unless it is None."""
        onehot_TYB = batch.onehot_TBY.mT
        num_teachers, classes, num_images = onehot_TYB.shape
        grad = grad_TB[:, :, None]
        if grads is not None:
            grads["out.image"] = torch.bmm(tape.activations[-1].mT, grad)
            grads["out.label"] = torch.bmm(onehot_TYB, grad)
            grads["out.bias"] = grad.sum(1)
        grad = _leak_back(grad * params["out.image"].mT, tape.activations[-1])
        grad = self._norm_back(params, "hidden", grad, batch, 1, tape, grads)
        if grads is not None:
            flat_TBF = tape.activations[-2].view(num_teachers, num_images, -1)
            grads["hidden.image"] = torch.bmm(flat_TBF.mT, grad)
            grads["hidden.label"] = torch.bmm(onehot_TYB, grad)
        grad = torch.bmm(grad, params["hidden.image"].mT)
        for i in reversed(range(len(self.sizes) - 1)):
            positions, width = self.sizes[i + 1] ** 2, self.widths[i + 1]
            active = tape.activations[i]
            grad = _leak_back(grad.reshape(active.shape), active)
            if i > 0:
                grad = self._norm_back(params, f"conv{i}", grad, batch, positions, tape, grads)
            if grads is not None:
                grads[f"conv{i}.image"] = torch.bmm(tape.patches[i].mT, grad)
                by_label = torch.bmm(onehot_TYB, grad.view(num_teachers, num_images, -1))
                by_label = by_label.view(num_teachers, classes, positions, width)
                grads[f"conv{i}.label"] = torch.matmul(label_taps(self.sizes[i]).to(grad).mT, by_label)
                if i == 0:
                    grads["conv0.bias"] = grad.sum(1)
            if i > 0:
                grad = torch.bmm(grad, params[f"conv{i}.image"].mT)
                grad = fold_patches(grad, num_images, self.sizes[i], self.widths[i])
        return grad

    def _norm(
        self, params: Params, name: str, x_TNF: Tensor, batch: DiscriminatorBatch, positions: int, tape: _Tape
    ) -> Tensor:
        """Batch norm within each group, by the statistics of its present images."""
        unit_TNF, inverses = torch.empty_like(x_TNF), []
        for start, stop, weight_TN1 in _group_weights(batch, positions):
            part = x_TNF[:, start:stop]
            centred = torch.sub(part, torch.bmm(weight_TN1.mT, part), out=unit_TNF[:, start:stop])
            variance_T1F = torch.bmm(weight_TN1.mT, centred * centred)
            inverse_T1F = torch.rsqrt(variance_T1F + NORM_EPS)
            centred.mul_(inverse_T1F)
            inverses.append(inverse_T1F)
        tape.norms[name] = (unit_TNF, inverses)
        return torch.addcmul(params[f"{name}.shift"][:, None], unit_TNF, params[f"{name}.scale"][:, None])

    def _norm_back(
        self,
        params: Params,
        name: str,
        grad_TNF: Tensor,
        batch: DiscriminatorBatch,
        positions: int,
        tape: _Tape,
        grads: Params | None,
    ) -> Tensor:
        """Back through :meth:`_norm`; slots that are not present get exactly zero."""
        unit_TNF, inverses = tape.norms[name]
        scale_T1F = params[f"{name}.scale"][:, None]
        along_TNF = grad_TNF * unit_TNF
        shifts, scales, out_TNF = [], [], torch.empty_like(grad_TNF)
        for (start, stop, weight_TN1), inverse_T1F in zip(
            _group_weights(batch, positions), inverses, strict=True
        ):
            part, unit = grad_TNF[:, start:stop], unit_TNF[:, start:stop]
            shifts.append(part.sum(1, keepdim=True))
            scales.append(along_TNF[:, start:stop].sum(1, keepdim=True))
            common = torch.addcmul(shifts[-1], unit, scales[-1]).mul_(weight_TN1)
            torch.sub(part, common, out=out_TNF[:, start:stop])
            out_TNF[:, start:stop].mul_(inverse_T1F * scale_T1F)
        if grads is not None:
            grads[f"{name}.shift"] = torch.cat(shifts, 1).sum(1)
            grads[f"{name}.scale"] = torch.cat(scales, 1).sum(1)
        return out_TNF


def label_taps(size: int) -> Tensor:
    """``[P, 25]``: which kernel taps lie inside a map of ``size`` x ``size``, at each output position."""
    return take_patches(torch.ones(1, 1, size, size, 1))[0]


def _leak_back(grad: Tensor, active: Tensor) -> Tensor:
    """Back through the leaky ReLU; the activation has the sign of what entered it."""
    return torch.where(active > 0, grad, grad * LEAK)


def _group_weights(batch: DiscriminatorBatch, positions: int) -> list[tuple[int, int, Tensor]]:
    """(start, stop, weight_TN1) of each batch-norm group along N = B * positions."""
    weights = []
    for start, stop in batch.groups:
        weight_TB = batch.weight_TB[:, start:stop] / positions
        weights.append(
            (start * positions, stop * positions, weight_TB.repeat_interleave(positions, 1)[:, :, None])
        )
    return weights
