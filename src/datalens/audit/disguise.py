"""Noise sources that say of themselves what another one says: to watch what is drawn, or to break it unseen."""

from __future__ import annotations

from dataclasses import dataclass

from datalens.noise import NoiseSource
from datalens.privacy.events import NoiseKind, SamplerSlack


@dataclass(frozen=True)
class Disguised:
    """A source that says of itself what another one, ``inner``, says."""

    inner: NoiseSource

    @property
    def kind(self) -> NoiseKind:
        """That of the inner source."""
        return self.inner.kind

    @property
    def secure(self) -> bool:
        """That of the inner source."""
        return self.inner.secure

    def slack(self, stddev: float) -> SamplerSlack:
        """That of the inner source at ``stddev``."""
        return self.inner.slack(stddev)
