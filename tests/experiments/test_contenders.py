"""Who stands in a comparison: every name is a training that can be begun."""

from __future__ import annotations

import pytest

from datalens.errors import ConfigError
from datalens.experiments.contenders import CONTENDERS, contender


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_has_settings(name: str) -> None:
    cell = contender(name, "mnist", 1.0)
    assert cell.config().privacy.insecure_seed == 0
    assert cell.config().privacy.as_published is name.endswith("as-published")


def test_every_method_that_has_a_published_form_stands_there_in_both() -> None:
    assert "gs-wgan" in CONTENDERS and "gs-wgan-as-published" in CONTENDERS
    assert "dp-merf-as-published" not in CONTENDERS
    with pytest.raises(ConfigError, match="'dp-merf-as-published' is unknown; known: datalens, dc-gan"):
        contender("dp-merf-as-published", "mnist", 1.0)
