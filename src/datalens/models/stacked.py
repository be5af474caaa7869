"""Many small discriminators as one: parameters stacked along axis T, no operation crosses it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from datalens.errors import ConfigError
from datalens.models.patches import KERNEL, fold_patches, map_sizes, take_patches
from datalens.models.scratch import Scratch

Params = dict[str, Tensor]
"""Stacked parameters by name; axis 0 is the teacher."""

LEAK = 0.2
NORM_EPS = 1e-5


@dataclass(frozen=True)
class DiscriminatorBatch:
    """One batch for every teacher, prepared once and used in several steps.

    Attributes:
        patches_TKN: the image patches under the first convolution: K = C * 25 taps, N = positions * B.
        onehot_TBY: labels.
        weight_TB: what an image weighs in the mean of its group: 1 / (present images of the group), or 0.
        groups: (start, stop) along B; batch statistics are taken within a group only.
        scratch: buffers for what is computed from it; results live until the next forward or backward pass.
    """

    patches_TKN: Tensor
    onehot_TBY: Tensor
    weight_TB: Tensor
    groups: tuple[tuple[int, int], ...]
    scratch: Scratch

    def judged_by_first(self) -> DiscriminatorBatch:
        """The same images, all normalised by the batch statistics of the first group."""
        weight_TB = self.weight_TB.clone()
        weight_TB[:, self.groups[0][1] :] = 0.0
        return replace(self, weight_TB=weight_TB, groups=((0, weight_TB.shape[1]),))

    @cached_property
    def member_GB(self) -> Tensor:
        """1 where image B belongs to group G."""
        member_GB = self.weight_TB.new_zeros(len(self.groups), self.weight_TB.shape[1])
        for group, (start, stop) in enumerate(self.groups):
            member_GB[group, start:stop] = 1.0
        return member_GB

    def group_sum(self, x_TFB: Tensor) -> Tensor:
        """The sum over each image's group, handed back to every image of it: ``[T,F,B]``."""
        return (x_TFB @ self.member_GB.mT) @ self.member_GB


@dataclass(frozen=True)
class _Norm:
    """A batch norm on its way forward.

    Attributes:
        centred_TFPB: what entered, less its group's mean.
        inverse_TFB: one over the standard deviation of each image's group.
    """

    centred_TFPB: Tensor
    inverse_TFB: Tensor


@dataclass
class _Tape:
    """What the backward pass needs of the forward pass."""

    patches: list[Tensor] = field(default_factory=list)
    activations: list[Tensor] = field(default_factory=list)
    norms: dict[str, _Norm] = field(default_factory=dict)


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
        """The shape of every parameter of one teacher, by name; convolutions are laid out as PyTorch's."""
        classes, units = self.num_classes, self.hidden_units
        shapes: dict[str, tuple[int, ...]] = {}
        for i, (fan_in, fan_out) in enumerate(zip(self.widths[:-1], self.widths[1:], strict=True)):
            shapes[f"conv{i}.image"] = (fan_out, fan_in * KERNEL * KERNEL)
            shapes[f"conv{i}.label"] = (fan_out, classes, KERNEL * KERNEL)
            shapes[f"conv{i}.bias"] = (fan_out,)
            if i > 0:
                shapes[f"conv{i}.scale"] = (fan_out,)
                shapes[f"conv{i}.shift"] = (fan_out,)
        shapes["hidden.image"] = (self.widths[-1] * self.sizes[-1] ** 2, units)
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

    def batch(
        self, parts: list[tuple[Tensor, Tensor, Tensor | None]], scratch: Scratch | None = None
    ) -> DiscriminatorBatch:
        """Join (images, labels, present) parts into one batch; each part is its own batch-norm group.

        Args:
            parts: images ``[T,B,C,H,W]``, labels ``[T,B]`` and present ``[T,B]`` (None: all are). What
                stands in slots that are not present has no influence, whatever it is.
            scratch: buffers to use again; the batch before it with the same ones is spent.
        """
        scratch = scratch or Scratch()
        patches, onehots, weights, groups, start = [], [], [], [], 0
        for images_TBCHW, labels_TB, present_TB in parts:
            if present_TB is None:
                present_TB = torch.ones_like(labels_TB, dtype=torch.bool)
            else:
                images_TBCHW = torch.where(present_TB[:, :, None, None, None], images_TBCHW, 0.0)
                labels_TB = torch.where(present_TB, labels_TB, 0)
            num_teachers, is_shared = len(images_TBCHW), images_TBCHW.stride(0) == 0
            images_TCHWB = (images_TBCHW[:1] if is_shared else images_TBCHW).movedim(1, -1)
            part_TKPB = take_patches(images_TCHWB, scratch, f"images{start}")
            patches.append(part_TKPB.expand(num_teachers, -1, -1, -1))
            onehots.append(functional.one_hot(labels_TB, self.num_classes).to(images_TBCHW.dtype))
            present = present_TB.to(images_TBCHW.dtype)
            weights.append(present / present.sum(1, keepdim=True).clamp(min=1.0))
            groups.append((start, start + labels_TB.shape[1]))
            start = groups[-1][1]
        return DiscriminatorBatch(
            (torch.cat(patches, -1) if len(patches) > 1 else patches[0]).flatten(2),
            torch.cat(onehots, 1),
            torch.cat(weights, 1),
            tuple(groups),
            scratch,
        )

    def logits(self, params: Params, images: Tensor, labels: Tensor) -> Tensor:
        """``logit_TB`` of one group of images, ``[T,B,C,H,W]`` or shared ``[B,C,H,W]``."""
        if images.dim() == 4:
            num_teachers = params["out.bias"].shape[0]
            images, labels = images.expand(num_teachers, *images.shape), labels.expand(num_teachers, -1)
        return self.forward(params, self.batch([(images, labels, None)]))[0]

    def forward(self, params: Params, batch: DiscriminatorBatch) -> tuple[Tensor, _Tape]:
        """``logit_TB`` and the tape for :meth:`backward`."""
        tape, scratch = _Tape(), batch.scratch
        onehot_TYB = batch.onehot_TBY.mT
        num_teachers, _, num_images = onehot_TYB.shape
        patches_TKN = batch.patches_TKN
        for i, size in enumerate(self.sizes[1:]):
            width, positions = self.widths[i + 1], size * size
            pre_TFN = scratch.empty(f"pre{i}", (num_teachers, width, positions * num_images), patches_TKN)
            torch.bmm(params[f"conv{i}.image"], patches_TKN, out=pre_TFN)
            taps_PK = label_taps(self.sizes[i]).to(pre_TFN, non_blocking=True)
            by_label_TFYP = torch.matmul(params[f"conv{i}.label"], taps_PK.mT)
            by_label_TFYP += params[f"conv{i}.bias"][:, :, None, None]
            by_label = by_label_TFYP.mT.flatten(1, 2)
            pre_TFN.view(num_teachers, -1, num_images).baddbmm_(by_label, onehot_TYB)
            pre_TFPB = pre_TFN.view(num_teachers, width, positions, num_images)
            pre_TFPB = self._norm(params, f"conv{i}", pre_TFPB, batch, tape) if i else pre_TFPB
            active = functional.leaky_relu_(pre_TFPB, LEAK)
            tape.patches.append(patches_TKN)
            tape.activations.append(active)
            if i + 2 < len(self.sizes):
                active_TFHWB = active.view(num_teachers, width, size, size, num_images)
                patches_TKN = take_patches(active_TFHWB, scratch, f"patches{i}").flatten(2)
        flat_TFB = tape.activations[-1].flatten(1, 2)
        flat_TBF = scratch.empty("flat", tuple(flat_TFB.mT.shape), flat_TFB).copy_(flat_TFB.mT)
        pre_TBH = torch.bmm(flat_TBF, params["hidden.image"]) + params["hidden.bias"][:, None]
        pre_TBH.baddbmm_(batch.onehot_TBY, params["hidden.label"])
        pre_TH1B = pre_TBH.mT.contiguous()[:, :, None]
        active = functional.leaky_relu_(self._norm(params, "hidden", pre_TH1B, batch, tape), LEAK)
        tape.activations.append(active)
        logit_T1B = torch.bmm(params["out.image"].mT, active.squeeze(2))
        logit_T1B += torch.bmm(params["out.label"].mT, onehot_TYB) + params["out.bias"][:, :, None]
        return logit_T1B.squeeze(1), tape

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
        grad_TFN = self._backward(params, batch, tape, grad_TB, None).flatten(2)
        grad_TKN = torch.bmm(params["conv0.image"].mT, grad_TFN)
        return fold_patches(grad_TKN, grad_TB.shape[1], self.sizes[0], self.image_shape[0]).movedim(-1, 1)

    def _backward(
        self, params: Params, batch: DiscriminatorBatch, tape: _Tape, grad_TB: Tensor, grads: Params | None
    ) -> Tensor:
        """Walk back to what enters the first activation; fill ``grads`` unless it is None."""
        onehot_TBY, scratch = batch.onehot_TBY, batch.scratch
        num_teachers, num_images, classes = onehot_TBY.shape

        def product(name: str, a: Tensor, b: Tensor) -> Tensor:
            shape = (num_teachers, a.shape[1], b.shape[2])
            return torch.bmm(a, b, out=scratch.empty("grad." + name, shape, a))

        grad_T1B = grad_TB[:, None]
        if grads is not None:
            grads["out.image"] = torch.bmm(tape.activations[-1].squeeze(2), grad_T1B.mT)
            grads["out.label"] = torch.bmm(onehot_TBY.mT, grad_T1B.mT)
            grads["out.bias"] = grad_TB.sum(1, keepdim=True)
        grad = _leak_back((params["out.image"] * grad_T1B)[:, :, None], tape.activations[-1])
        grad = self._norm_back(params, "hidden", grad, batch, tape, grads)
        grad_TBH = grad.squeeze(2).mT.contiguous()
        if grads is not None:
            grads["hidden.image"] = product("hidden", tape.activations[-2].flatten(1, 2), grad_TBH)
            grads["hidden.label"] = torch.bmm(onehot_TBY.mT, grad_TBH)
        grad_TBF = product("flat", grad_TBH, params["hidden.image"].mT)
        grad = scratch.empty("grad.active", tuple(grad_TBF.mT.shape), grad_TBF).copy_(grad_TBF.mT)
        for i in reversed(range(len(self.sizes) - 1)):
            active_TFPB = tape.activations[i]
            grad = grad.reshape(active_TFPB.shape)
            grad = _leak_back(grad, active_TFPB)
            if i > 0:
                grad = self._norm_back(params, f"conv{i}", grad, batch, tape, grads)
            grad_TFN = grad.flatten(2)
            if grads is not None:
                grads[f"conv{i}.image"] = product(f"conv{i}", grad_TFN, tape.patches[i].mT)
                by_label = torch.bmm(grad.flatten(1, 2), onehot_TBY)
                by_label_TFPY = by_label.view(*active_TFPB.shape[:3], classes)
                taps_PK = label_taps(self.sizes[i]).to(grad, non_blocking=True)
                grads[f"conv{i}.label"] = torch.matmul(by_label_TFPY.mT.contiguous(), taps_PK)
                if i == 0:
                    grads["conv0.bias"] = grad_TFN.sum(2)
            if i > 0:
                grad_TKN = product("patches", params[f"conv{i}.image"].mT, grad_TFN)
                grad = fold_patches(grad_TKN, num_images, self.sizes[i], self.widths[i], scratch)
        return grad

    def _norm(
        self, params: Params, name: str, x_TFPB: Tensor, batch: DiscriminatorBatch, tape: _Tape
    ) -> Tensor:
        """Batch norm within each group, by the statistics of its present images."""
        weight_T1B = batch.weight_TB[:, None] / x_TFPB.shape[2]
        mean_TFB = batch.group_sum(x_TFPB.sum(2) * weight_T1B)
        centred_TFPB = x_TFPB.sub_(mean_TFB[:, :, None])
        scratch, shape = batch.scratch, tuple(x_TFPB.shape)
        square_TFPB = torch.square(centred_TFPB, out=scratch.empty("product", shape, x_TFPB))
        variance_TFB = batch.group_sum(square_TFPB.sum(2) * weight_T1B)
        inverse_TFB = torch.rsqrt(variance_TFB + NORM_EPS)
        tape.norms[name] = _Norm(centred_TFPB, inverse_TFB)
        gain_TFB = inverse_TFB * params[f"{name}.scale"][:, :, None]
        shift_TF11 = params[f"{name}.shift"][:, :, None, None]
        out = scratch.empty(f"{name}.out", shape, x_TFPB)
        return torch.addcmul(shift_TF11, centred_TFPB, gain_TFB[:, :, None], out=out)

    def _norm_back(
        self,
        params: Params,
        name: str,
        grad_TFPB: Tensor,
        batch: DiscriminatorBatch,
        tape: _Tape,
        grads: Params | None,
    ) -> Tensor:
        """Back through :meth:`_norm`, in place; slots that are not present get exactly zero."""
        norm = tape.norms[name]
        weight_T1B = batch.weight_TB[:, None] / grad_TFPB.shape[2]
        product = batch.scratch.empty("product", tuple(grad_TFPB.shape), grad_TFPB)
        along_TFB = torch.mul(grad_TFPB, norm.centred_TFPB, out=product).sum(2) * norm.inverse_TFB
        sum_TFB = grad_TFPB.sum(2)
        if grads is not None:
            grads[f"{name}.scale"] = along_TFB.sum(2)
            grads[f"{name}.shift"] = sum_TFB.sum(2)
        gain_TFB = norm.inverse_TFB * params[f"{name}.scale"][:, :, None]
        pull_TFB = batch.group_sum(along_TFB) * gain_TFB * norm.inverse_TFB * weight_T1B
        level_TFB = batch.group_sum(sum_TFB) * gain_TFB * weight_T1B
        grad_TFPB.mul_(gain_TFB[:, :, None]).sub_(level_TFB[:, :, None])
        return grad_TFPB.addcmul_(norm.centred_TFPB, pull_TFB[:, :, None], value=-1)


def label_taps(size: int) -> Tensor:
    """``[P, 25]``: which kernel taps lie inside a map of ``size`` x ``size``, at each output position."""
    return take_patches(torch.ones(1, 1, size, size, 1))[0].flatten(1).mT


def _leak_back(grad: Tensor, active: Tensor) -> Tensor:
    """Back through the leaky ReLU; the activation has the sign of what entered it."""
    return torch.ops.aten.leaky_relu_backward(grad, active, LEAK, True)
