"""The certificate's sentence on public weights that a run begins with."""

from __future__ import annotations

from itertools import product

import pytest

from datalens.privacy import promises
from datalens.privacy.public_start import start_words
from datalens.training.public_init import StartSource


def test_nothing_is_said_of_a_run_that_begins_at_random() -> None:
    assert start_words({}) == {}


@pytest.mark.parametrize(("source", "same_classes"), list(product(StartSource, [True, False])))
@pytest.mark.parametrize("discriminators", [True, False])
def test_every_kind_of_start_has_its_sentence(source: str, same_classes: bool, discriminators: bool) -> None:
    said = {"source": source, "name": "letters", "same_classes": same_classes, "sha256": "abc"}
    sentence = start_words({"public_init": {**said, "discriminators": discriminators}})["start"]
    assert sentence.startswith(promises.START_OF[discriminators])
    for part in (promises.START_FROM[source], "letters", promises.START_CLASSES[source, same_classes], "abc"):
        assert part in sentence
