"""Tables 5 and 6: each compression beside the paper's numbers, at settings that the product takes or refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_cell import TINY

from datalens.data import load
from datalens.errors import DataError
from datalens.experiments import compression_times, paper
from datalens.experiments.cells import DATA_SETS, Cell
from datalens.experiments.compression_times import STEPS, cells_to_time, draw_table_6, measure_steps
from datalens.experiments.compressions import (
    COMPRESSIONS,
    D2P_FED,
    PUBLISHED,
    SOUND,
    TOPAGG,
    Compression,
    cells_of_equal_steps,
    table_5,
)
from datalens.experiments.measure import measure
from datalens.experiments.settings import SHORT, base_cell
from datalens.experiments.store import REFUSED, ResultsStore
from datalens.experiments.study import NotRun, Study
from datalens.experiments.sweep import refusal_of
from datalens.experiments.workplace import Workplace
from datalens.mechanisms.kinds import MechanismKind
from datalens.training.plan import plan_releases


def small(one: Compression) -> Cell:
    """A compression on the smallest cell, with room for its noise."""
    changes = dict(one.cell("shapes").changes)
    changes |= {"voting__sketch_rows": 3, "voting__sketch_buckets": 20, "voting__top_k": 10}
    return replace(TINY, epsilon=60.0, changes=(*TINY.changes, *changes.items()))


@pytest.fixture(scope="module")
def rows():
    return {row.labels: row for row in table_5().rows}


def test_topagg_is_the_cell_that_other_tables_have_run(rows) -> None:
    assert rows["MNIST", "TopAgg", "noise 5000 votes"].cell.key == base_cell("mnist").key


def test_the_papers_numbers_stand_beside_what_it_printed_them_for(rows) -> None:
    printed = {labels[:2]: row.printed for labels, row in rows.items()}
    assert printed["MNIST", "D2P-Fed"] == "14.2"
    assert printed["CelebA-Hair", PUBLISHED.title] == "49.3"
    assert printed["MNIST", SOUND.title] == printed["CelebA-Hair", SOUND.title] == ""
    assert {name: values["TopAgg"] for name, values in paper.TABLE_5.items()} == {
        name: paper.TABLE_1[name][1.0] for name in paper.TABLE_5
    }


def test_only_what_has_no_guarantee_runs_as_published_and_its_row_says_so(rows) -> None:
    for labels, row in rows.items():
        if row.cell.recipe is None:
            continue
        privacy = row.cell.config().privacy
        assert privacy.as_published == ("no guarantee" in labels[1]) == (not privacy.is_private)
        assert privacy.as_published == (row.cell.config().voting.mechanism is MechanismKind.FETCHSGD)


def test_what_is_kept_of_topagg_is_its_noise_or_its_steps(rows) -> None:
    for labels, row in rows.items():
        grey = labels[0] in ("MNIST", "Fashion-MNIST")
        if "units" in labels[2] or labels[1:] == ("D2P-Fed", "138 steps"):
            continue  # refused, see below
        plan = plan_releases(row.cell.config(), 28 * 28 if grey else 3 * 64 * 64)
        if labels[2].startswith("noise"):
            assert plan.mechanism.noise_in_votes == (5000 if grey else 9000)
        else:
            assert plan.num_steps == (149 if grey else 138)
    equal = cells_of_equal_steps("mnist")
    assert {plan_releases(cell.config(), 28 * 28).num_steps for cell in equal.values()} == {149}
    assert len({row.cell.key for row in rows.values() if row.cell.recipe is not None}) == 28


def test_colour_images_have_the_papers_teachers_and_a_sketch_larger_than_they_are(rows) -> None:
    for title, teachers in (("CelebA-Gender", 6000), ("CelebA-Hair", 8000)):
        for one in COMPRESSIONS:
            votings = [
                row.cell.config().voting for labels, row in rows.items() if labels[:2] == (title, one.title)
            ]
            assert votings and {voting.num_teachers for voting in votings} == {teachers}
            assert {voting.top_k for voting in votings} == {700}
            assert all(voting.sketch_rows * voting.sketch_buckets > 3 * 12288 for voting in votings)


def test_as_many_steps_of_d2p_fed_cannot_be_paid_on_colour_images_and_are_timed_at_another_epsilon(
    rows,
) -> None:
    class Faces:
        num_records = num_listed = 162770
        image_shape = (3, 64, 64)

    for title in ("CelebA-Gender", "CelebA-Hair"):
        reason = refusal_of(rows[title, "D2P-Fed", "138 steps"].cell, Faces())  # pyright: ignore[reportArgumentType]
        assert reason is not None and "leaves no signal" in reason
    for name in paper.TABLE_6:
        dim = DATA_SETS[name].dim
        plans = {plan_releases(cell.config(), dim).num_steps for cell in cells_to_time(name).values()}
        assert min(plans) > STEPS


def test_the_papers_noise_in_the_quantisers_units_is_refused(rows) -> None:
    class Records:
        num_records = num_listed = 60000
        image_shape = (1, 28, 28)

    cell = rows["MNIST", "D2P-Fed", "noise 5000 units"].cell
    reason = refusal_of(cell, Records())  # pyright: ignore[reportArgumentType]
    assert reason is not None and "too small for one step" in reason
    assert refusal_of(base_cell("mnist"), Records()) is None  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("one", COMPRESSIONS, ids=str)
def test_a_cell_of_each_compression_is_trained_and_scored(tmp_path: Path, one: Compression) -> None:
    store = ResultsStore(tmp_path / "results.jsonl")
    measure(small(one), ["logistic-40"], store, Workplace(tmp_path / "scratch"))
    run = store.run(small(one))
    assert run is not None and run["steps"] == 2 and run["training_seconds"] > 0
    assert run["config"]["voting"]["mechanism"] == str(one.mechanism)
    assert (run["privacy"] is None) == one.as_published


def test_steps_of_all_compressions_are_timed_in_turns() -> None:
    cells = {one: small(one) for one in COMPRESSIONS}
    seconds = measure_steps(load("shapes"), cells, steps=1)["seconds"]
    assert list(seconds) == [str(one.mechanism) for one in COMPRESSIONS]
    assert all(len(times) == 1 and times[0] > 0 for times in seconds.values())


def test_table_6_has_steps_trainings_and_the_papers_seconds_with_ratios(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression_times, "measure_steps", lambda *_: pytest.fail("all is in the store"))
    store = ResultsStore(tmp_path / "results.jsonl")
    seconds = {
        "topagg": [1.0, 2.0],
        "d2p-fed": [2.0, 6.0],
        "fetchsgd": [1.0, 2.0],
        "fetchsgd-sound": [1.1, 2.2],
    }
    for name in ("mnist", "fashion-mnist"):
        study = Study("table6", (("data_set", name), ("steps", STEPS)))
        store.add(study, {"result": {"seconds": seconds}}, {})
    cells = cells_of_equal_steps("mnist")
    for one, took in ((TOPAGG, 200.0), (D2P_FED, 300.0)):
        store.add(cells[one], {SHORT: {}}, {"training_seconds": took})
    store.add(cells[SOUND], {}, {REFUSED: "too dear"})
    others = cells_of_equal_steps("fashion-mnist")
    for one, took, machine in ((TOPAGG, 200.0, "slow"), (D2P_FED, 90.0, "fast")):
        store.add(others[one], {SHORT: {}}, {"training_seconds": took, "environment": {"machine": machine}})
    grid = draw_table_6(ResultsStore(store.path, read_only=True), Workplace(tmp_path), tmp_path)
    drawn = {row[:2]: row[2:] for row in grid.rows}
    assert drawn["MNIST", "TopAgg"] == ("1.50 (1.00 to 2.00)", "1.00", "200", "1.00", "338", "1.00")
    assert drawn["MNIST", "D2P-Fed"] == ("4.00 (2.00 to 6.00)", "2.50", "300", "1.50", "492", "1.46")
    assert drawn["Fashion-MNIST", "D2P-Fed"][2:4] == ("90", ""), "of another machine than TopAgg's"
    assert drawn["MNIST", PUBLISHED.title][2:] == ("not run", "", "785", "2.32")
    assert drawn["MNIST", SOUND.title][2:] == ("refused", "", "", "")
    assert drawn["CelebA-Hair", "D2P-Fed"] == ("no files", "", "no files", "", "8092", "7.22")
    assert drawn["CelebA-Hair", SOUND.title] == ("no files", "", "no files", "", "", "")


def test_table_6_is_not_measured_where_only_drawing_was_asked_or_files_lack(tmp_path: Path) -> None:
    class Empty(Workplace):
        def data_of(self, data_set: str):
            raise DataError("not here")

    class Drawn(Workplace):
        def data_of(self, data_set: str):
            return super().data_of("shapes")

    with pytest.raises(NotRun):
        draw_table_6(ResultsStore(tmp_path / "none", read_only=True), Drawn(tmp_path), tmp_path)
    grid = draw_table_6(ResultsStore(tmp_path / "none"), Empty(tmp_path), tmp_path)
    assert {row[2] for row in grid.rows} == {row[4] for row in grid.rows} == {"no files"}
