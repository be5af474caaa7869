"""The table of emoji: what its rows train, and that those without noise say so and promise nothing."""

from __future__ import annotations

import math

import pytest

from datalens.experiments.cells import Cell
from datalens.experiments.emoji import EPSILON, table_emoji
from datalens.experiments.table import Row
from datalens.training.plan import plan_releases

ROWS = table_emoji().rows
OURS = [row for row in ROWS if row.labels[0] == "datalens"]


@pytest.mark.parametrize("row", OURS, ids=lambda row: row.labels[2])
def test_a_row_promises_what_its_epsilon_says(row: Row) -> None:
    assert isinstance(row.cell, Cell)
    config = row.cell.config()
    is_noisy = row.labels[1] == f"{EPSILON:g}"
    assert (config.privacy.noise != "none") == is_noisy
    assert (config.voting.vote_threshold == 0.0) != is_noisy


def test_the_private_row_spends_at_most_its_epsilon() -> None:
    (row,) = [row for row in OURS if row.labels[1] == "10"]
    assert isinstance(row.cell, Cell)
    config = row.cell.config()
    assert config.privacy.epsilon == EPSILON
    plan = plan_releases(config, math.prod((3, 64, 64)))
    assert plan.num_steps == 138
    assert 0 < plan.authorisation.epsilon <= EPSILON


def test_there_is_a_row_of_the_papers_networks_and_every_row_is_scored_alike() -> None:
    assert [row.cell.recipe for row in OURS] == ["emoji-quick", "emoji-paper", "emoji-quick"]
    assert {row.scores for row in ROWS} == {("cnn-10000", "is-10000", "fid-10000")}
    assert len({row.cell.key for row in ROWS}) == len(ROWS)
