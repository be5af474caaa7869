"""Inception Score: class probabilities -> statistics of splits -> mean and spread."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from datalens.errors import ConfigError, DataError


@dataclass(frozen=True)
class InceptionScore:
    """An Inception Score: between 1 and the number of classes.

    Attributes:
        mean: Mean over the splits.
        stddev: Standard deviation over the splits (of the population, as the original code has it).
        splits: How many splits were used.
        num_images: N.
    """

    mean: float
    stddev: float
    splits: int
    num_images: int

    def to_json(self) -> dict[str, object]:
        """The same, as plain types."""
        return asdict(self)


def inception_score(
    log_probabilities_NY: npt.NDArray[np.floating],
    *,
    splits: int = 10,
    rng: np.random.Generator | None = None,
) -> InceptionScore:
    """exp of the mean divergence of a split's images from the split's mean, averaged over splits.

    Guarantee: never NaN; at least 1 and at most Y. Fewer images than splits reduce these, with a warning.

    Args:
        log_probabilities_NY: log p(class | image), ``[N, Y]``; minus infinity stands for an exact zero.
        splits: Number of parts that the images are cut into.
        rng: Shuffles the images first: give one where they come sorted by class; ``None`` keeps the order.

    Raises:
        ConfigError: splits below 1.
        DataError: no images, or rows that are not log probabilities.

    Source: Salimans et al. 2016; Tables 3 and 12 of the paper.

    >>> score = inception_score(np.log(np.eye(2) * 0.998 + 0.001), splits=1)
    >>> round(score.mean, 3)
    1.984
    """
    logs = np.asarray(log_probabilities_NY, dtype=np.float64)
    if splits < 1:
        raise ConfigError(f"splits is {splits}; give at least 1")
    if logs.ndim != 2 or 0 in logs.shape:
        raise DataError(f"log probabilities have shape {logs.shape}; give [N, Y] with at least one image")
    if not np.all(np.abs(np.exp(logs).sum(axis=1) - 1.0) < 1e-3):
        raise DataError("log probabilities do not sum to one in each row; give log_softmax of the logits")
    if len(logs) < splits:
        warnings.warn(
            f"{len(logs)} images cannot fill {splits} splits; {len(logs)} splits of one image are no score, "
            "so the Inception Score uses 1 split",
            stacklevel=2,
        )
        splits = 1
    if rng is not None:
        logs = logs[rng.permutation(len(logs))]
    scores = [split_score(part) for part in np.array_split(logs, splits)]
    return InceptionScore(float(np.mean(scores)), float(np.std(scores)), splits, len(logs))


def probability_logs(probabilities_NY: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Logarithms of probabilities in which exact zeros are allowed.

    >>> probability_logs(np.array([[1.0, 0.0]])).tolist()
    [[0.0, -inf]]
    """
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(probabilities_NY, dtype=np.float64))


def split_score(log_probabilities_NY: npt.NDArray[np.float64]) -> float:
    """exp of the mean Kullback-Leibler divergence of the rows from their mean; zeros count as zero."""
    probabilities = np.exp(log_probabilities_NY)
    mean = probabilities.mean(axis=0)
    held = probabilities > 0
    ratio = np.zeros_like(probabilities)
    log_mean = np.log(np.where(mean > 0, mean, 1.0))
    np.subtract(log_probabilities_NY, log_mean, out=ratio, where=held)
    divergence = (probabilities * ratio).sum(axis=1).mean()
    return float(np.clip(np.exp(divergence), 1.0, log_probabilities_NY.shape[1]))
