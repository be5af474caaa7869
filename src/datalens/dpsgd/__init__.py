"""TopAgg for ordinary training (section 4.4, Appendix A): an engine as in Opacus, with one word more."""

from __future__ import annotations

try:
    import opacus as _opacus
except ImportError:
    from datalens.errors import MissingExtraError

    raise MissingExtraError(
        "datalens.dpsgd needs Opacus, which is not installed; run: pip install 'datalens-dp[dpsgd]'"
    ) from None

if tuple(int(part) for part in _opacus.__version__.split(".")[:2]) < (1, 6):
    from datalens.errors import ConfigError

    raise ConfigError(
        f"Opacus is {_opacus.__version__}, but datalens.dpsgd needs 1.6 or later; run: pip install 'opacus>=1.6'"
    )

from datalens.dpsgd.classifier import DPSGDClassifier
from datalens.dpsgd.engine import TopAggPrivacyEngine
from datalens.dpsgd.facts import ClassifierConfig, parse_classifier
from datalens.dpsgd.method import NoiseForm
from datalens.dpsgd.training import train_classifier
from datalens.methods.sgd_kinds import Method, SelectBy

__all__ = [
    "ClassifierConfig",
    "DPSGDClassifier",
    "Method",
    "NoiseForm",
    "SelectBy",
    "TopAggPrivacyEngine",
    "parse_classifier",
    "train_classifier",
]
