"""The judge before its first step: post-processing of the law that was released, with public draws alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from datalens.evaluation.fitting import fit_classifier
from datalens.models.classifiers import ClassifierKind
from datalens.models.judge import Judge, JudgedGenerator
from datalens.models.mixed import GAIN, LIGHTNESS
from datalens.models.warp import WARP_DIM, affine_warp
from datalens.randomness import Streams

if TYPE_CHECKING:
    from datalens.baselines.judged import Judged

_EPOCHS, _BATCH, _RATE = 4, 64, 2e-3
_AT_ONCE = 100
_FRAMED = 15_000
"""Images that give the frame; two thirds of the law, the rest mixtures."""
_ROOM = 1.2
"""Length to which coordinates are cut, over the median of synthetic images."""
_FIRST_STEPS, _FIRST_ERROR, _FIRST_RATE, _FIRST_MOMENTUM = 60, 0.36, 3375.0, 0.9


def fit_judge(generator: JudgedGenerator, method: Judged, public: Streams) -> JudgedGenerator:
    """Two classifiers on the law's images, a frame of what they look at, and a head on the law's labels.

    Args:
        generator: with its law.
        method: settings and sizes.
        public: random streams that may be known.

    Guarantee: the result is a function of these arguments, the same to the last bit on one platform; no record is
    seen.
    """
    judge, size = generator.judge, method.size
    plain = _law_images(generator, method, public, "judge plain", toned=False)
    toned = _law_images(generator, method, public, "judge toned", toned=True)
    for number, (images, labels) in enumerate((plain, toned)):
        learned = fit_classifier(
            images.numpy(),
            labels.numpy(),
            kind=ClassifierKind.CNN,
            num_classes=size.num_classes,
            epochs=_EPOCHS,
            batch_size=_BATCH,
            learning_rate=_RATE,
            streams=Streams(public.key("judge classifier", number)),
            device=torch.device("cpu"),
        )
        judge.networks[number].load_state_dict(learned.state_dict())
    judge.eval()
    few = min(_FRAMED // 3, len(plain[0]))
    seen = [
        _features(judge, part[:few])
        for part in (plain[0], toned[0], _mixtures(generator, method, public, few))
    ]
    _set_frame(judge, torch.cat(seen))
    taught_FK = judge.framed(torch.cat(seen[:2]))
    _teach(judge, taught_FK, torch.cat([plain[1][:few], toned[1][:few]]))
    return generator


@torch.no_grad()
def _law_images(
    generator: JudgedGenerator, method: Judged, public: Streams, name: str, *, toned: bool
) -> tuple[Tensor, Tensor]:
    """Warped images of the law alone, uint8 [N, C, H, W], with the classes they were asked for, int64 [N].

    Toned ones have a random gain and lightness, two in three; half of those are without grain.
    """
    law, count, rng = generator.inner.law, method.settings.judge_images, public.torch(name)
    images, labels = [], torch.randint(method.size.num_classes, (count,), generator=rng)
    for few in labels.split(_AT_ONCE):
        latents_BZ = torch.randn(len(few), law.latent_dim, generator=rng)
        warp_BW = torch.rand(len(few), WARP_DIM, generator=rng) * 2 - 1
        kind_B = torch.randint(3, (len(few),), generator=rng)
        gain_B = 1 + GAIN * torch.rand(len(few), generator=rng)
        lightness_B = LIGHTNESS * torch.randn(len(few), generator=rng)
        if toned:
            latents_BZ[:, law.rank :].mul_((kind_B != 1)[:, None])
        unit = law(latents_BZ, few)
        if toned:
            logit = torch.logit(unit.clamp(1e-3, 1 - 1e-3)) + lightness_B[:, None, None, None]
            other = torch.sigmoid(gain_B[:, None, None, None] * logit)
            unit = torch.where((kind_B > 0)[:, None, None, None], other, unit)
        if generator.finish.jitter:
            unit = affine_warp(unit, warp_BW, generator.finish.jitter, generator.finish.outside)
        images.append((unit * 255).round().clamp(0, 255).to(torch.uint8))
    return torch.cat(images), labels


@torch.no_grad()
def _mixtures(generator: JudgedGenerator, method: Judged, public: Streams, count: int) -> Tensor:
    """Images as the generator draws them, uint8."""
    latent = method.settings.latent(method.size)
    latents_BZ = latent.latents(count, public.torch("judge mixtures"))
    labels_B = latent.labels(count, public.torch("judge mixtures' classes"))
    parts = zip(latents_BZ.split(_AT_ONCE), labels_B.split(_AT_ONCE), strict=True)
    return torch.cat([(generator(z, y) * 255).round().clamp(0, 255).to(torch.uint8) for z, y in parts])


@torch.no_grad()
def _features(judge: Judge, images_BCHW: Tensor) -> Tensor:
    """float32 [B, F]."""
    return torch.cat([judge.features(few.float() / 255) for few in images_BCHW.split(_AT_ONCE)])


@torch.no_grad()
def _set_frame(judge: Judge, features_BF: Tensor) -> None:
    """The directions in which features of synthetic images vary most, each scaled to about one deviation."""
    centre_F = features_BF.double().mean(0)
    apart_BF = features_BF.double() - centre_F
    value_K, direction_FK = _widest(apart_BF, judge.size)
    scale_K = (value_K + value_K[-1] + 1e-9 * value_K[0] + 1e-12).rsqrt()
    judge.centre_F.copy_(centre_F)
    judge.frame_FK.copy_(direction_FK * scale_K)
    along_BK = apart_BF @ judge.frame_FK.double()
    judge.length.copy_(_ROOM * along_BK.norm(dim=1).median().clamp(min=1e-6))


def _widest(apart_BF: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Variances [K] of rows along the K orthonormal directions [F, K] in which they vary most, widest first.

    Fewer rows than numbers in them are told apart through their products with each other, which is the quicker; where
    nothing varies any more, directions and variances are zeros.
    """
    count, dim = apart_BF.shape
    if count >= dim:
        value_F, direction_FF = torch.linalg.eigh(apart_BF.T @ apart_BF / count)
        return value_F.flip(0)[:most].clamp(min=0), direction_FF.flip(1)[:, :most]
    value_B, place_BB = torch.linalg.eigh(apart_BF @ apart_BF.T / count)
    value_B, place_BB = value_B.flip(0)[:most].clamp(min=0), place_BB.flip(1)[:, :most]
    varies_B = value_B > 1e-12 * value_B[0]
    value_K, direction_FK = apart_BF.new_zeros(most), apart_BF.new_zeros(dim, most)
    value_K[: len(value_B)] = torch.where(varies_B, value_B, 0.0)
    direction_FK[:, : len(value_B)] = apart_BF.T @ torch.where(
        varies_B, place_BB / (value_B * count).clamp(min=1e-300).sqrt(), 0.0
    )
    return value_K, direction_FK


@torch.no_grad()
def _teach(judge: Judge, rows_BK: Tensor, labels_B: Tensor) -> None:
    """The head's first answers, from the law's labels, by the same steps as the judge's own, without noise."""
    right_BY = functional.one_hot(labels_B, judge.num_classes).double()
    head_YK = torch.zeros(judge.num_classes, judge.size + 1, dtype=torch.float64)
    velocity_YK = torch.zeros_like(head_YK)
    for step in range(_FIRST_STEPS):
        error_BY = right_BY - torch.softmax(rows_BK @ head_YK.T, 1)
        length_B1 = error_BY.norm(dim=1, keepdim=True)
        error_BY = error_BY / length_B1.clamp(min=_FIRST_ERROR)
        velocity_YK = _FIRST_MOMENTUM * velocity_YK + error_BY.T @ rows_BK / len(rows_BK)
        head_YK += _FIRST_RATE * (1 - step / (_FIRST_STEPS + 1)) * velocity_YK
    judge.head_YK.copy_(head_YK)
