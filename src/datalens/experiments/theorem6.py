"""Theorem 6 on gradients of published images and on synthetic ones: which k does each reading favour?

The theorem knows neither Algorithm 2's normalisation nor Algorithm 3's threshold, and at these settings its bound
is above what always holds (``says_something`` is False), so a favoured k compares bounds, not trainings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from datalens.data.images import LabelledImages
from datalens.errors import ConfigError
from datalens.experiments.gradients import Scene, teacher_gradients
from datalens.reports.plots import Curve
from datalens.teachers.families import TeacherKind
from datalens.theory.quantiser import Quantiser
from datalens.theory.tail import WeibullTail, fit_weibull
from datalens.theory.theorem6 import Bound, Descent, GradientFacts, Reading, bound, noise_per_kept

CLIPS = (1e-5, 1e-2, 1.0)
"""The paper's clip, one between, and the largest that a quantiser of equation (2) can send."""
MNIST_DIM = 784


@dataclass(frozen=True)
class Theorem6Row:
    """One bound, and the k at which it is smallest.

    Attributes:
        source: whose gradients.
        clip_bound: c.
        reading: which text of the theorem.
        quantiser: of the kept coordinates.
        favoured_k: where the right side is smallest, of 1..dim.
        dim: d.
        bias, privacy, quantiser_term: the terms that depend on k, there.
        right_side: all terms, there.
        left_factor: min(c, 1)/(d + 2).
        says_something: whether any k bounds the squared gradient below M^2, which holds anyway.
    """

    source: str
    clip_bound: float
    reading: str
    quantiser: str
    favoured_k: int
    dim: int
    bias: float
    privacy: float
    quantiser_term: float
    right_side: float
    left_factor: float
    says_something: bool


@dataclass(frozen=True)
class Theorem6Result:
    """Rows for a table and curves for a figure.

    Attributes:
        rows: one for every source, clip, reading and quantiser.
        curves: the terms that depend on k, over k, for one source and clip; the quantiser of equation (2).
        curves_title: which source and clip.
        tails: (source, fitted Weibull shape, fitted scale).
    """

    rows: tuple[Theorem6Row, ...]
    curves: tuple[Curve, ...]
    curves_title: str
    tails: tuple[tuple[str, float, float], ...]


def theorem6(
    images: LabelledImages | None = None,
    *,
    scene: Scene | None = None,
    noise_stddev: float = 5000.0,
    top_k: int = 200,
    num_teachers: int = 4000,
    step_size: float = 1e-3,
    num_steps: int = 86,
    clips: Sequence[float] = CLIPS,
) -> Theorem6Result:
    """The bound over k for gradients of published images, if given, and for synthetic Weibull gradients.

    Args:
        images: published images (MNIST in the paper's sense); None for synthetic gradients alone.
        scene: teachers whose gradients are measured; 100 of 15 records unless given.
        noise_stddev, top_k: fix A = sigma^2/k, the paper's by default.
        num_teachers: N of the bound.
        step_size: gamma; the paper's by default.
        num_steps: T; what the paper's accounting allows at epsilon 1 by default.
        clips: values of c, 1 at most.

    Raises:
        NotPrivateError: images that are not public.
        ConfigError: numbers out of range.

    >>> result = theorem6(clips=(1e-5,))
    >>> {row.favoured_k for row in result.rows if row.source == "Weibull, shape 0.5, scale 0.1"}
    {1}
    """
    if not clips:
        raise ConfigError("clips is empty: give at least one clip bound")
    dim = MNIST_DIM if images is None else int(np.prod(images.image_shape))
    sources = {
        f"Weibull, shape {tail.shape:g}, scale {tail.scale:g}": GradientFacts.from_tail(tail, dim)
        for tail in (WeibullTail(0.5, 0.1), WeibullTail(0.5, 1.0), WeibullTail(1.0, 0.1))
    }
    tails: list[tuple[str, float, float]] = []
    if images is not None:
        for name, grad_TBD in _measured(images, scene or Scene()).items():
            sources[name] = GradientFacts.from_gradients(grad_TBD)
            fitted = fit_weibull(grad_TBD)
            tails.append((name, fitted.shape, fitted.scale))
            sources[f"{name}, fitted tail"] = GradientFacts.from_tail(fitted, dim)
    plain = Descent(
        num_teachers, noise_per_kept(noise_stddev, top_k), clips[0], step_size=step_size, num_steps=num_steps
    )
    rows = []
    for source, facts in sources.items():
        for clip in clips:
            descent = replace(plain, clip_bound=clip, start_gap=facts.norm**2 / 2)
            for reading in Reading:
                for quantiser in Quantiser:
                    found = bound(facts, descent, reading, quantiser)
                    rows.append(_row(source, clip, reading, quantiser, found))
    shown = next((name for name in sources if name.endswith("late images")), next(iter(sources)))
    widest = replace(plain, clip_bound=max(clips))
    return Theorem6Result(
        rows=tuple(rows),
        curves=bound_curves(sources[shown], widest),
        curves_title=f"{shown}, clip {max(clips):g}",
        tails=tuple(tails),
    )


def bound_curves(facts: GradientFacts, descent: Descent) -> tuple[Curve, ...]:
    """The terms of the bound that depend on k, over k = 1..D, with and without quantisation."""
    curves = []
    for quantiser in (Quantiser.BERNOULLI, Quantiser.NONE):
        for reading in Reading:
            found = bound(facts, descent, reading, quantiser)
            height = found.bias + found.privacy + found.quantiser
            label = f"{reading}, {'quantised' if quantiser is Quantiser.BERNOULLI else 'not quantised'}"
            curves.append(Curve(label, tuple(found.top_k.tolist()), tuple(height.tolist())))
    return tuple(curves)


def _measured(images: LabelledImages, scene: Scene) -> Mapping[str, np.ndarray]:
    """Gradients [T, B, D] of compact teachers, early and late."""
    found = {}
    for kind in (TeacherKind.KERNEL, TeacherKind.MATCHING):
        for when, progress in (("first images", 0.0), ("late images", 0.9)):
            name = f"{images.name}, {kind} teachers, {when}"
            found[name] = teacher_gradients(images, kind, replace(scene, progress=progress))
    return found


def _row(source: str, clip: float, reading: Reading, quantiser: Quantiser, found: Bound) -> Theorem6Row:
    at = found.favoured_k - 1
    return Theorem6Row(
        source=source,
        clip_bound=clip,
        reading=str(reading),
        quantiser=str(quantiser),
        favoured_k=found.favoured_k,
        dim=len(found.bias),
        bias=float(found.bias[at]),
        privacy=float(found.privacy[at]),
        quantiser_term=float(found.quantiser[at]),
        right_side=float(found.total[at]),
        left_factor=found.left_factor,
        says_something=found.says_something,
    )
