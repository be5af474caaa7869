"""Whether the noise is what the event says, at the run's own standard deviation and size of a release.

All draws come through the mechanism's own function, on a tally of zeros, step after step as training asks for
them. A correct product fails any one of these with a chance of at most :data:`RATE`.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.special import ndtr
from scipy.stats import chi2, norm

from datalens.audit.findings import Finding, failed
from datalens.audit.subject import Subject, mechanism_at
from datalens.privacy.events import NoiseKind
from datalens.training.algorithm import Parts

RATE = 1e-6
TOLERANCE = 0.01
DRAWS = 400_000
SLOW_DRAWS = 40_000
"""Of discrete Gaussian noise, which is slow to draw."""
FEWEST_RELEASES = 4
_BINS = 50
_REPEAT_BITS = 100


def audit_noise(subject: Subject, draws: int = DRAWS) -> list[Finding]:
    """Standard deviation, shape, independence and freshness of the noise."""
    parts = subject.parts()
    if parts.mechanism.noise.kind is NoiseKind.NONE:
        return []
    noise_SN = draw_releases(parts, subject.dim, draws)
    again_SN = draw_releases(subject.parts(), subject.dim, 1)
    stddev = parts.mechanism.noise_stddev
    kind = parts.mechanism.noise.kind
    repeatable = parts.config.privacy.insecure_seed is not None
    return check_noise(noise_SN if repeatable else np.concatenate([noise_SN, again_SN]), stddev, kind)


def check_noise(noise_SN: np.ndarray, stddev: float, kind: NoiseKind) -> list[Finding]:
    """All four checks of S releases of N draws each."""
    flat = noise_SN.reshape(-1)
    return [
        check_stddev(flat, stddev, kind),
        check_shape(flat, stddev, kind),
        check_independence(flat, stddev),
        check_fresh(noise_SN, stddev),
    ]


def draw_releases(parts: Parts, dim: int, draws: int) -> np.ndarray:
    """float64 [S, B * D]: the noise of S releases, at least four, with ``draws`` draws or more in all."""
    zeros_BD = torch.zeros(parts.config.voting.batch_size, dim, dtype=torch.int32)
    releases = max(FEWEST_RELEASES, math.ceil(draws / zeros_BD.numel()))
    return np.stack(
        [mechanism_at(parts, step).noisy_tally(zeros_BD).double().numpy().ravel() for step in range(releases)]
    )


def default_draws(kind: NoiseKind) -> int:
    """Draws where no number was asked for."""
    return SLOW_DRAWS if kind is NoiseKind.DISCRETE else DRAWS


def check_stddev(noise: np.ndarray, stddev: float, kind: NoiseKind) -> Finding:
    """The standard deviation is within 1% of the claimed one (rounding adds 1/12 to the variance)."""
    ideal = ideal_stddev(stddev, kind)
    found = float(np.sqrt(np.mean(noise**2)))
    error = found / ideal - 1
    false_alarm = 2 * float(norm.sf(TOLERANCE * math.sqrt(2 * len(noise))))
    tolerance = TOLERANCE
    if false_alarm > RATE:  # too few draws for 1%
        tolerance = float(norm.isf(RATE / 2)) / math.sqrt(2 * len(noise))
        false_alarm = RATE
    text = f"standard deviation {found:.6g} of {ideal:.6g} ({error:+.2%}, {len(noise)} draws)"
    numbers = {"found": found, "ideal": ideal, "error": error, "tolerance": tolerance, "draws": len(noise)}
    return Finding("noise-stddev", abs(error) <= tolerance, text, numbers, false_alarm)


def check_shape(noise: np.ndarray, stddev: float, kind: NoiseKind) -> Finding:
    """A chi-square test of the draws against the claimed law in cells of about equal probability."""
    edges = np.unique(np.floor(norm.ppf(np.linspace(0, 1, _BINS + 1)[1:-1]) * stddev))
    below = np.concatenate([[0.0], cumulative(edges, stddev, kind), [1.0]])
    expected = np.diff(below) * len(noise)
    counts = np.diff(np.concatenate([[0], np.searchsorted(np.sort(noise), edges, "right"), [len(noise)]]))
    statistic = float(((counts - expected) ** 2 / expected).sum())
    chance = float(chi2.sf(statistic, len(expected) - 1))
    text = f"shape fits a {kind} (chi-square {statistic:.1f} in {len(expected)} cells, p {chance:.2g})"
    if chance < RATE:
        text = text.replace("fits", "is not that of")
    numbers = {"chi_square": statistic, "cells": len(expected), "p": chance}
    return Finding("noise-shape", chance >= RATE, text, numbers, RATE)


def check_independence(noise: np.ndarray, stddev: float) -> Finding:
    """No two coordinates, images or releases move together, whatever their distance in the stream.

    The largest circular autocorrelation of the draws and of their squares over all lags, each normal with
    standard deviation 1/sqrt(n), against a threshold divided among all of them.
    """
    if noise.std() == 0:
        return failed("noise-independence", "all draws are the same")
    scaled = (noise - noise.mean()) / noise.std()
    squared = scaled**2 - 1
    squared /= squared.std()
    count = len(noise)
    limit = float(norm.isf(RATE / (2 * count)))
    found = [_largest_lag(values) for values in (scaled, squared)]
    (size, lag), of = max(zip(found, ("draws", "squares"), strict=True))
    text = (
        f"largest correlation of {of} {size / math.sqrt(count):.4f}, at distance {lag} "
        f"({size:.2f} standard errors, limit {limit:.2f})"
    )
    numbers = {"largest": size / math.sqrt(count), "lag": lag, "standard_errors": size, "limit": limit}
    return Finding("noise-independence", size <= limit, text, numbers, 2 * RATE)


def check_fresh(noise_SN: np.ndarray, stddev: float) -> Finding:
    """No run of draws occurs twice, within a release, between releases or after the source is made again.

    Runs are long enough that chance repeats one (or their 64-bit keys agree) with probability below 1e-6.
    """
    bits = max(0.5, math.log2(stddev * math.sqrt(4 * math.pi)))  # of collision entropy in a draw
    length = math.ceil(_REPEAT_BITS / bits)
    if noise_SN.shape[1] < length:  # chance alone would repeat such short releases: all of them in a row
        noise_SN = noise_SN.reshape(1, -1)
    length = min(noise_SN.shape[1], length)
    mixed = _mixed(noise_SN)
    keys = np.zeros((len(noise_SN), noise_SN.shape[1] - length + 1), np.uint64)
    weights = np.random.default_rng(0).integers(1, 2**63, length, dtype=np.uint64)
    for place, weight in enumerate(weights):
        keys += mixed[:, place : place + keys.shape[1]] * weight
    repeats = keys.size - len(np.unique(keys))
    text = f"{repeats} of {keys.size} runs of {length} draws occur twice"
    return Finding(
        "noise-fresh", repeats == 0, text, {"repeats": repeats, "runs": keys.size, "length": length}, RATE
    )


def ideal_stddev(stddev: float, kind: NoiseKind) -> float:
    """Of the drawn values: rounding widens a Gaussian."""
    if kind is not NoiseKind.ROUNDED:
        return stddev
    if stddev > 2:  # Sheppard's correction, exact to 1e-30 there
        return math.sqrt(stddev**2 + 1 / 12)
    values = np.arange(-100, 101)
    mass = ndtr((values + 0.5) / stddev) - ndtr((values - 0.5) / stddev)
    return math.sqrt(float((values**2 * mass).sum()))


def cumulative(edges: np.ndarray, stddev: float, kind: NoiseKind) -> np.ndarray:
    """P(noise <= edge) at whole edges."""
    if kind is NoiseKind.CONTINUOUS:
        return ndtr(edges / stddev)
    if kind is NoiseKind.ROUNDED:
        return ndtr((edges + 0.5) / stddev)
    reach = math.ceil(12 * stddev) + 2
    values = np.arange(-reach, reach + 1)
    mass = np.exp(-(values**2) / (2 * stddev**2))
    return (np.cumsum(mass) / mass.sum())[np.clip(edges.astype(int) + reach, 0, 2 * reach)]


def _mixed(values: np.ndarray) -> np.ndarray:
    """Well-spread 64-bit keys of float64 values; equal for equal values (0 and -0 too)."""
    bits = (values + 0.0).view(np.uint64)
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (29, 0xC4CEB9FE1A85EC53)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(32))


def _largest_lag(values: np.ndarray) -> tuple[float, int]:
    """Largest |circular autocorrelation| times sqrt(n) over lags 1 to n/2, and its lag."""
    spectrum = np.fft.rfft(values)
    power = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, len(values)) / math.sqrt(len(values))
    lags = np.abs(power[1 : len(values) // 2])
    lag = int(lags.argmax())
    return float(lags[lag]), lag + 1
