"""The anchor table for TopAgg at delta 1e-5 (case R05): three conversions, to 2%."""

from __future__ import annotations

import math

import pytest

from datalens.privacy.accountant import Accountant, AccountantKind
from datalens.privacy.events import GaussianEvent

ANCHORS = [
    # top_k, noise, releases, exact, rdp, rdp-classic
    (200, 5000, 1, 0.0144, 0.0164, 0.0272),
    (200, 5000, 30, 0.0948, 0.1057, 0.1492),
    (200, 5000, 100, 0.1831, 0.2028, 0.2730),
    (200, 5000, 1000, 0.6422, 0.7038, 0.8744),
    (200, 5000, 1909, 0.9148, 0.9998, 1.2165),
    (200, 5000, 1910, 0.9151, 1.0001, 1.2169),
    (10, 200, 10, 0.3407, 0.3753, 0.4849),
    (10, 200, 20, 0.4970, 0.5457, 0.6886),
    (4, 8, 1, 1.9931, 2.1657, 2.5243),
    (4, 8, 10, 7.5113, 8.0784, 8.8371),
    (4, 8, 20, 11.4800, 12.2997, 13.2298),
]


@pytest.mark.parametrize("row", ANCHORS, ids=lambda row: f"k{row[0]}-sigma{row[1]}-{row[2]}")
def test_r05_epsilon_matches_the_anchor_table(row):
    top_k, noise, releases, *expected = row
    event = GaussianEvent(2 * math.sqrt(top_k), noise, coordinates=784, count=releases)
    found = [Accountant(kind).epsilon(event, 1e-5) for kind in AccountantKind]
    assert found == pytest.approx(expected, rel=0.02)
    assert found == pytest.approx(expected, abs=6e-5)  # and to every printed digit
    assert found[0] < found[1] < found[2]


def test_one_joint_release_costs_what_its_images_cost():
    joint = GaussianEvent(2 * math.sqrt(200 * 15), 5000, coordinates=15 * 784)
    single = GaussianEvent(2 * math.sqrt(200), 5000, coordinates=784, count=15)
    for kind in AccountantKind:
        accountant = Accountant(kind)
        assert accountant.epsilon(joint, 1e-5) == pytest.approx(accountant.epsilon(single, 1e-5), rel=1e-9)
