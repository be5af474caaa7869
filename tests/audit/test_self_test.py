"""The audit passes the product and catches every sabotage, through the very same checks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from datalens.audit.findings import Report
from datalens.audit.run import audit_subject
from datalens.audit.sabotage import SABOTAGES
from datalens.audit.self_test import self_test_subject
from datalens.audit.subject import Subject

TRIALS, DRAWS = 10_000, 40_000
CAUGHT_BY = {
    "half the noise": {"noise-stddev", "noise-shape", "mechanism"},
    "noise added on every rank": {"noise-stddev", "noise-shape"},
    "noise added on no rank": {
        "noise-stddev",
        "noise-shape",
        "noise-independence",
        "noise-fresh",
        "mechanism",
    },
    "a repeated noise stream": {"noise-independence", "noise-fresh"},
    "sensitivity without its factor 2": {"sensitivity", "mechanism"},
    "top-k by threshold with ties": {"sensitivity", "mechanism"},
    "a shared shard": {"shards", "isolation"},
    "wrapped partitions": {"shards"},
    "groups dealt out by record": {"shards", "isolation"},
    "shared optimiser state": {"isolation"},
    "resume that resets the budget": {"budget-resumed", "ledger-cost"},
}


def failures(subject: Subject) -> set[str]:
    return {finding.name for finding in Report(tuple(audit_subject(subject, TRIALS, DRAWS))).failures}


@pytest.fixture(scope="module")
def sound() -> Subject:
    return self_test_subject()


def test_every_sabotage_has_its_alarm() -> None:
    assert CAUGHT_BY.keys() == SABOTAGES.keys()


@pytest.mark.parametrize("name", SABOTAGES)
def test_broken_product_is_caught_and_by_what_should_catch_it(name: str, sound: Subject) -> None:
    assert CAUGHT_BY[name] <= failures(SABOTAGES[name](sound))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"teachers__kind": "paper"},
        {"voting__images_per_teacher": 2},
        {"privacy__group_size": 3},
        {"privacy__noise": "continuous-gaussian"},
        {"privacy__insecure_seed": 7},
        {"privacy__accountant": "rdp"},
        {"performance__chunk_size": 3},
    ],
    ids=str,
)
def test_sound_product_passes(changes: dict[str, object], sound: Subject) -> None:
    config = sound.config.replace(voting__noise_stddev=None, **changes)
    assert failures(Subject.of(config, sound.image_shape, sound.num_classes)) == set()


@pytest.mark.parametrize("kind", ["kernel", "matching", "paper"])
def test_sound_product_with_groups_passes(kind: str, sound: Subject) -> None:
    config = sound.config.replace(voting__noise_stddev=None, teachers__kind=kind)
    subject = replace(Subject.of(config, sound.image_shape, sound.num_classes), of_groups=True)
    assert failures(subject) == set()


def test_sound_product_passes_with_discrete_noise(sound: Subject) -> None:
    pytest.importorskip("opendp")
    config = sound.config.replace(voting__noise_stddev=None, privacy__noise="discrete-gaussian")
    subject = Subject.of(config, sound.image_shape, sound.num_classes)
    found = Report(tuple(audit_subject(subject, 1000, 10_000)))
    assert found.passed, found.verdict


def test_run_without_noise_fails(sound: Subject) -> None:
    config = sound.config.replace(voting__noise_stddev=None, privacy__noise="none")
    assert "mechanism" in failures(Subject.of(config, sound.image_shape, sound.num_classes))
