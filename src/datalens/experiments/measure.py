"""Train a cell and measure what is asked of it, on public data and with insecure seeds: nothing here is private."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
from PIL import Image

from datalens import data
from datalens.data.images import LabelledImages
from datalens.errors import ConfigError, NotPrivateError
from datalens.evaluation import (
    PROTOCOLS,
    FeatureExtractor,
    FeatureStatistics,
    evaluate_utility,
    feature_extractor,
    feature_statistics,
    frechet_distance,
    inception_score,
)
from datalens.experiments.cells import Cell
from datalens.experiments.store import ResultsStore
from datalens.experiments.variants import adapt
from datalens.models.finish import FinishedGenerator
from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import times
from datalens.student.latent import LatentSpace
from datalens.student.sampling import sample_images
from datalens.training.facts import PublicFacts
from datalens.training.files import read_json, write_atomically, write_json
from datalens.training.release import environment
from datalens.training.session import Session

GRID_ROWS = 5
Tell = Callable[[str], None]


class Scorer:
    """Scores generated images against one data set; the feature classifier is asked for when first needed.

    Args:
        train: real images that the feature classifier learns from; FID compares with them.
        test: real images that utility is tested on.
        features: folder of cached feature classifiers.
    """

    def __init__(self, train: LabelledImages, test: LabelledImages, features: Path | None) -> None:
        self._train, self._test, self._features = train, test, features
        self._extractor: FeatureExtractor | None = None
        self._real: FeatureStatistics | None = None

    def score(self, name: str, images: np.ndarray, labels: np.ndarray, *, seed: int) -> dict[str, Any]:
        """One score, by name as in :func:`measure`, of images uint8 [N, C, H, W] with labels int64 [N].

        Raises:
            ConfigError: an unknown name.
        """
        kind, _, _ = name.partition("-")
        if kind in PROTOCOLS:
            test = self._test
            result = evaluate_utility(
                images,
                labels,
                test.images,
                test.labels,
                num_classes=test.num_classes,
                classifier=kind,
                seed=seed,
            )
            kept = ("last_accuracy", "best_epoch_accuracy", "best_epoch", "epochs", "num_train", "num_test")
            return {name: value for name, value in result.to_json().items() if name in kept}
        if kind not in ("is", "fid"):
            raise ConfigError(
                f"score {name!r} is unknown; known: {', '.join(PROTOCOLS)}, is, fid, each with -N"
            )
        extractor = self._feature_classifier()
        found = extractor.extract(images)
        about = {"num_images": found.num_images, "extractor": found.extractor}
        if kind == "is":
            return {**inception_score(found.log_probabilities).to_json(), **about}
        if self._real is None:
            self._real = feature_statistics(extractor.extract(self._train.images).features)
        return {**frechet_distance(self._real, feature_statistics(found.features)).to_json(), **about}

    def score_real(self, kind: str) -> dict[str, Any]:
        """``is`` or ``fid`` of the real test images: what a perfect generator would reach."""
        return self.score(f"{kind}-{len(self._test.labels)}", self._test.images, self._test.labels, seed=0)

    def _feature_classifier(self) -> FeatureExtractor:
        if self._extractor is None:
            train = self._train
            self._extractor = feature_extractor(
                train.images, train.labels, num_classes=train.num_classes, cache=self._features
            )
        return self._extractor


@dataclass
class Workplace:
    """Where experiments read data and keep what is not a result.

    Attributes:
        scratch: generators and feature classifiers by key, so that an interrupted sweep goes on.
        data_root: of the published data sets.
        grids: folder of image grids, one PNG a cell; None for none.
    """

    scratch: Path
    data_root: str | None = None
    grids: Path | None = None

    _held: dict[str, tuple[LabelledImages, Scorer]] = field(default_factory=dict, init=False, repr=False)

    def data_of(self, data_set: str) -> tuple[LabelledImages, Scorer]:
        """The training images of a data set, and what scores images against it; read once.

        Raises:
            DataError: its files are not here.
            NotPrivateError: the data are not published; experiments use insecure seeds.
        """
        if data_set not in self._held:
            train = data.load(data_set, split="train", root=self.data_root)
            test = data.load(data_set, split="test", root=self.data_root)
            if not train.public:
                raise NotPrivateError(f"{data_set}: experiments are for published data; use datalens train")
            self._held = {data_set: (train, Scorer(train, test, self.scratch / "features"))}
        return self._held[data_set]


def measure(
    cell: Cell, scores: Sequence[str], store: ResultsStore, place: Workplace, tell: Tell = lambda _: None
) -> None:
    """Train the cell, unless its generator is still at hand, and put the scores that are missing in the store.

    Args:
        cell: what to train.
        scores: names: a classifier and a number of images (``cnn-60000``, ``mlp-10000``, ``logistic-10000``), or
            ``is-N`` and ``fid-N``.
        store: where results go; scores that it has are not measured again.
        place: where data and scratch files are.
        tell: told what begins.

    Raises:
        DataLensError: data that are missing, or settings that contradict each other.
    """
    missing = store.missing(cell, scores)
    if not missing:
        return
    train, scorer = place.data_of(cell.data_set)
    generator, latent, facts = _trained(cell, train, place, tell)
    if place.grids is not None:
        place.grids.mkdir(parents=True, exist_ok=True)
        write_grid(place.grids / f"{cell.key}.png", generator, latent, cell.seed)
    for name in missing:
        tell(name)
        started = time.monotonic()
        drawn = sample_images(generator, latent, images_of(name), seed=cell.seed)
        found = scorer.score(name, *drawn, seed=cell.seed)
        store.add(cell, {name: {**found, "seconds": round(time.monotonic() - started, 1)}}, facts)


def _trained(
    cell: Cell, train: LabelledImages, place: Workplace, tell: Tell
) -> tuple[FinishedGenerator, LatentSpace, dict[str, Any]]:
    """The cell's finished generator, what it is fed, and the facts of its training; kept for the next time."""
    weights, about = (place.scratch / f"{cell.key}.{ending}" for ending in ("safetensors", "json"))
    if weights.exists() and about.exists():
        kept = read_json(about)
        plan = PublicFacts.from_json(kept["public"], about).student_plan
        generator = plan.generator()
        generator.load_state_dict(safetensors.torch.load(weights.read_bytes()))
        return generator.eval().requires_grad_(False), plan.latent, kept["facts"]
    tell("training")
    place.scratch.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    session = _begin(cell, train, place.scratch / f"{cell.key}.run")
    try:
        resumed = session.steps_done
        session.parts = adapt(session.parts, cell.variant)
        session.run()
        generator = session.student.finished_generator()
        facts = _facts(cell, session, time.monotonic() - started, resumed)
    finally:
        session.close()
    write_atomically(weights, safetensors.torch.save(dict(generator.state_dict())))
    write_json(about, {"public": session.facts.to_json(), "facts": facts})
    return generator, session.facts.student_plan.latent, facts


def _begin(cell: Cell, train: LabelledImages, folder: Path) -> Session:
    """A training that goes on where it was interrupted; minutes are not worth the folder."""
    if not cell.paper_networks:
        return Session.begin(cell.config(), train, None)
    if folder.exists():
        return Session.resume(folder, train)
    return Session.begin(cell.config(), train, folder)


def _facts(cell: Cell, session: Session, seconds: float, resumed: int) -> dict[str, Any]:
    """What a result says besides its scores."""
    config, plan = session.facts.config, session.plan
    privacy = None
    if config.privacy.is_private:
        event = times(plan.event, session.steps_done)
        delta = config.privacy.delta
        privacy = {
            "adjacency": "add-or-remove one record; replace-one costs the same",
            "delta": delta,
            "authorised_epsilon": session.budget.authorised_epsilon(),
            "spent_epsilon": {str(kind): Accountant(kind).epsilon(event, delta) for kind in AccountantKind},
        }
    return {
        "privacy": privacy,
        "steps": session.steps_done,
        "noise_stddev": plan.noise_stddev,
        "vote_threshold": plan.mechanism.vote_threshold,
        "rms_agreement_by_step": [round(found.rms_agreement, 4) for found in session.diagnostics],
        "training_seconds": round(seconds, 1),
        "resumed_at_step": resumed,
        "config": config.to_json(),
        "environment": {**environment(config.performance.device), "cores": os.cpu_count()},
        "command": f"datalens reproduce (cell {cell.key})",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def images_of(name: str) -> int:
    """How many images a score asks for.

    >>> images_of("cnn-60000")
    60000
    """
    kind, _, count = name.partition("-")
    if not kind or not count.isdigit() or int(count) < 1:
        raise ConfigError(f"score {name!r}: write a kind and a number of images, such as cnn-10000")
    return int(count)


def write_grid(path: Path, generator: FinishedGenerator, latent: LatentSpace, seed: int) -> None:
    """A PNG of generated images: a column a class, :data:`GRID_ROWS` rows."""
    classes = latent.num_classes
    labels = np.tile(np.arange(classes), GRID_ROWS)
    images, _ = sample_images(generator, latent, len(labels), labels=labels, seed=seed)
    _, channels, height, width = images.shape
    grid = images.reshape(GRID_ROWS, classes, channels, height, width).transpose(0, 3, 1, 4, 2)
    picture = grid.reshape(GRID_ROWS * height, classes * width, channels)
    buffer = io.BytesIO()
    Image.fromarray(picture[:, :, 0] if channels == 1 else picture).save(buffer, format="PNG")
    write_atomically(path, buffer.getvalue())
