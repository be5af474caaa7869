"""What the owner of a run may look at besides: scores and diagnostics under ``private/``. Never to be shared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datalens.errors import RunError
from datalens.reports.facts import read_object

SCORES, DIAGNOSTICS = "scores", "diagnostics.jsonl"


@dataclass(frozen=True)
class Measured:
    """One answer of ``datalens evaluate``.

    Attributes:
        data: what it was measured on.
        file: where it lies, below ``private/``.
        rows: (what, value, on what) of every number.
        copies: the copy check, as it was written; None where none was made.
    """

    data: str
    file: str
    rows: tuple[tuple[str, str, str], ...]
    copies: Mapping[str, Any] | None


@dataclass(frozen=True)
class Step:
    """What the teachers did in one step.

    Attributes:
        step: its number.
        failed: (teacher, images) whose gradients were not finite.
        rms_agreement, max_agreement: of the votes, between 0 and 1.
    """

    step: int
    failed: tuple[tuple[int, int], ...]
    rms_agreement: float
    max_agreement: float


@dataclass(frozen=True)
class PrivateFacts:
    """What lies under ``private/``.

    Attributes:
        measured: one a file under ``scores/``, by name.
        steps: in order.
    """

    measured: tuple[Measured, ...]
    steps: tuple[Step, ...]

    @property
    def failures(self) -> tuple[tuple[int, int, int], ...]:
        """(teacher, steps, images) of every teacher that failed, the worst first."""
        found: dict[int, list[int]] = {}
        for step in self.steps:
            for teacher, images in step.failed:
                found.setdefault(teacher, []).append(images)
        rows = [(teacher, len(images), sum(images)) for teacher, images in found.items()]
        return tuple(sorted(rows, key=lambda row: (-row[2], row[0])))


def read_private(private: Path) -> PrivateFacts:
    """The owner's facts.

    Args:
        private: the run's private folder.

    Raises:
        RunError: a file there is damaged.
    """
    scores = sorted((private / SCORES).glob("*.json")) if (private / SCORES).is_dir() else []
    return PrivateFacts(tuple(map(_measured, scores)), tuple(_steps(private / DIAGNOSTICS)))


def _measured(path: Path) -> Measured:
    answer = read_object(path)
    try:
        rows = [*_accuracies(answer), *_features(answer.get("features"))]
        copies = answer.get("copies")
        if copies is not None:
            copies = {name: copies[name] for name in COPY_FIELDS}
        return Measured(str(answer["data"]), f"{SCORES}/{path.name}", tuple(rows), copies)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, error) from None


COPY_FIELDS = ("num_exact_copies", "num_samples", "share_closer_to_train", "z_score")
"""What is shown of a copy check."""


def _accuracies(answer: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    if "accuracy" in answer:
        return [("accuracy", _percent(answer["accuracy"]), f"{answer['num_test']:,} test images")]
    rows = []
    for classifier, result in (answer.get("utility") or {}).items():
        on = f"{result['num_train']:,} synthetic, {result['num_test']:,} test images, {result['epochs']} epochs"
        rows.append((f"accuracy of {classifier}, last epoch", _percent(result["last_accuracy"]), on))
        rows.append((f"accuracy of {classifier}, best epoch", _percent(result["best_epoch_accuracy"]), on))
    return rows


def _features(features: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    if features is None:
        return []
    rows = []
    for which in ("synthetic", "real_test"):
        scores = features[which]
        if scores is None:
            continue
        on = f"{scores['num_images']:,} {which.replace('_', ' ')} images, {features['network']}"
        if "inception_score" in scores:
            rows.append(("Inception Score", f"{scores['inception_score']['mean']:.4g}", on))
        if "fid" in scores:
            rows.append(("FID", f"{scores['fid']['value']:.4g}", on))
        if "kid" in scores:
            rows.append(("KID", f"{scores['kid']['mean']:.4g}", on))
    return rows


def _steps(path: Path) -> list[Step]:
    if not path.is_file():
        return []
    try:
        return [_step(json.loads(line)) for line in path.read_text().splitlines()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from None


def _step(line: Mapping[str, Any]) -> Step:
    return Step(
        int(line["step"]),
        tuple((int(teacher), int(images)) for teacher, images in line["failed"]),
        float(line["rms_agreement"]),
        float(line["max_agreement"]),
    )


def _damaged(path: Path, error: Exception) -> RunError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return RunError(f"{path}: cannot be understood ({reason:.120}); restore or remove the file")


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
