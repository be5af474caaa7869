"""Noise that protects people, from operating-system entropy, and its insecure stand-ins for experiments."""

from __future__ import annotations

from datalens.errors import ConfigError
from datalens.noise.base import NoiseSource
from datalens.noise.entropy import Entropy, OsEntropy, SeededEntropy
from datalens.privacy.events import NoiseKind

__all__ = ["Entropy", "NoiseSource", "OsEntropy", "SeededEntropy", "make_noise"]


def make_noise(kind: NoiseKind, insecure_key: bytes | None = None) -> NoiseSource:
    """The noise source of one kind.

    Args:
        kind: which distribution.
        insecure_key: None for bits from the operating system; a key makes the noise repeatable and the
            release unfit for publication.

    Raises:
        ConfigError: a key for the discrete Gaussian, which takes none, or OpenDP missing.
    """
    entropy: Entropy = OsEntropy() if insecure_key is None else SeededEntropy(insecure_key)
    match NoiseKind(kind):
        case NoiseKind.ROUNDED:
            from datalens.noise.rounded_gaussian import RoundedGaussian

            return RoundedGaussian(entropy)
        case NoiseKind.CONTINUOUS:
            from datalens.noise.gaussian import ContinuousGaussian

            return ContinuousGaussian(entropy)
        case NoiseKind.DISCRETE:
            from datalens.noise.discrete_gaussian import DiscreteGaussian

            if insecure_key is not None:
                raise ConfigError(
                    "discrete Gaussian noise cannot be repeated from an insecure seed; "
                    "choose rounded-gaussian or leave the seed out"
                )
            return DiscreteGaussian()
        case NoiseKind.NONE:  # pragma: no branch  (the last kind there is)
            from datalens.noise.none import NoNoise

            return NoNoise()
