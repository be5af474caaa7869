"""Tables are drawn from whatever is there, and a sweep runs each cell once, first seeds first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from datalens.experiments import paper
from datalens.experiments.baseline_cells import BaselineCell
from datalens.experiments.cells import DATA_SETS, Cell
from datalens.experiments.settings import SHORT
from datalens.experiments.store import REFUSED, ResultsStore
from datalens.experiments.sweep import work_of
from datalens.experiments.table import RUN, Column, Row, Table, summary
from datalens.experiments.tables import TABLES
from datalens.reports.grid import Grid, to_csv, to_markdown, to_text

FACTS = {"privacy": {"spent_epsilon": {"exact": 0.99}}}


def store_with(path: Path, *results: tuple[Cell, dict]) -> ResultsStore:
    store = ResultsStore(path / "results.jsonl")
    for cell, scores in results:
        store.add(cell, scores, FACTS)
    return store


def accuracy(last: float, best: float = 0.9) -> dict:
    return {"last_accuracy": last, "best_epoch_accuracy": best}


def small_table() -> Table:
    cell = Cell("mnist", 1.0)
    rows = (
        Row(("MNIST",), cell, (0, 1, 2), "71.2", (SHORT,)),
        Row(("CIFAR-10",), Cell("cifar10", 1.0), (0,), "60.6", (SHORT,)),
    )
    columns = (Column("last", SHORT), Column("best", SHORT, "best_epoch_accuracy"))
    return Table("small", "A table", ("data set",), columns, "paper", rows)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_drawn_from_an_empty_store(tmp_path: Path, name: str) -> None:
    table = TABLES[name]()
    assert table.name == name
    grid = table.draw(ResultsStore(tmp_path / "none.jsonl"))
    assert len(grid.rows) == len(table.rows)
    for row, drawn in zip(table.rows, grid.rows, strict=True):
        assert ("no files" in drawn) == (row.cell.recipe is None)
        assert ("not run" in drawn) == (row.cell.recipe is not None)


# table5 has a cell that does not, and other units
@pytest.mark.parametrize("name", [name for name in TABLES if name != "table5"])
def test_every_cell_of_every_table_has_settings_that_fit_its_budget(name: str) -> None:
    from datalens.training.plan import plan_releases

    for row in TABLES[name]().rows:
        if not isinstance(row.cell, Cell) or row.cell.recipe is None:
            continue
        config = row.cell.config()
        known = DATA_SETS[row.cell.data_set]
        plan = plan_releases(config, known.dim)
        assert plan.num_steps >= 7
        if known.image_shape == (3, 64, 64):
            assert config.voting.top_k in (500, 700, 900, known.dim)
            assert config.voting.num_teachers >= 4000 or row.cell.data_set == "emoji", (
                "emoji has too few records"
            )
        assert config.privacy.delta == 1e-5 and config.privacy.insecure_seed == row.cell.seed
        if row.cell.epsilon == 1.0 and config.privacy.is_private and "149" not in "".join(row.labels):
            assert plan.noise_stddev == (9000.0 if known.dim == 12288 else 5000.0), "the paper's noise"


def test_settings_of_colour_images_are_the_papers() -> None:
    rows = {row.labels: row.cell for row in TABLES["table1"]().rows if isinstance(row.cell, Cell)}
    found = {
        labels[:2]: (voting.num_teachers, voting.top_k, voting.noise_stddev)
        for labels, cell in rows.items()
        for voting in [cell.config().voting]
    }
    assert found["CelebA-Gender", "1"] == (6000, 700, 9000.0)
    assert found["CelebA-Gender", "10"] == (6000, 500, 700.0)
    assert found["CelebA-Hair", "1"] == (8000, 700, 9000.0)
    assert found["CelebA-Hair", "10"] == (8000, 500, 700.0)
    assert found["Places365", "1"] == (6000, 700, 9000.0)
    assert found["Places365", "10"] == (6000, 700, 700.0)
    assert found["MNIST", "1"] == (4000, 200, 5000.0) and found["MNIST", "10"] == (4000, 350, 900.0)


@pytest.mark.parametrize("name", TABLES)
def test_where_files_are_absent_every_cell_without_a_result_says_so(tmp_path: Path, name: str) -> None:
    table, store = TABLES[name](), ResultsStore(tmp_path / "none.jsonl")
    for drawn in table.draw(store, frozenset(DATA_SETS)).rows:
        assert "no files" in drawn and "not run" not in drawn
    some = {row.cell.data_set for row in table.rows} & {"celeba-gender", "celeba-hair", "places365"}
    for row, drawn in zip(table.rows, table.draw(store, some).rows, strict=True):
        assert ("no files" in drawn) == (row.cell.data_set in some) != ("not run" in drawn)


def test_a_result_that_is_there_is_shown_without_files(tmp_path: Path) -> None:
    store = store_with(tmp_path, (Cell("mnist", 1.0), {SHORT: accuracy(0.8)}))
    drawn = small_table().draw(store, {"mnist"}).rows[0]
    assert drawn == ("MNIST", "80.0", "90.0", "1 of 3", "0.99", "71.2")


def test_mean_and_spread_over_the_seeds_that_are_there(tmp_path: Path) -> None:
    cells = [Cell("mnist", 1.0, seed) for seed in range(3)]
    store = store_with(tmp_path, (cells[0], {SHORT: accuracy(0.8)}), (cells[1], {SHORT: accuracy(0.9, 0.95)}))
    drawn = small_table().draw(store).rows
    assert drawn[0] == ("MNIST", "85.0 ± 7.1", "92.5 ± 3.5", "2 of 3", "0.99", "71.2")
    assert drawn[1] == ("CIFAR-10", "no files", "no files", "", "", "60.6")


def test_a_seed_counts_once_all_that_the_row_asks_is_there(tmp_path: Path) -> None:
    cells = [Cell("mnist", 1.0, seed) for seed in range(2)]
    store = store_with(
        tmp_path,
        (cells[0], {SHORT: accuracy(0.8), "is-10": {"mean": 4.0}}),
        (cells[1], {SHORT: accuracy(0.9)}),
    )
    row = Row(("MNIST",), cells[0], (0, 1), "", (SHORT, "is-10"))
    columns = (Column("last", SHORT), Column("IS", "is-10", "mean", percent=False))
    drawn = Table("small", "A table", ("data set",), columns, "paper", (row,)).draw(store).rows[0]
    assert drawn == ("MNIST", "85.0 ± 7.1", "4.00", "1 of 2", "0.99", "")


def test_the_reasons_put_the_papers_settings_back(tmp_path: Path) -> None:
    rows = {row.labels: row.cell for row in TABLES["reasons"]().rows}
    base = rows[("MNIST", "nothing")].config()
    assert rows[("MNIST", "86 steps")].config() == base.replace(voting__num_steps=86)
    student = rows[("MNIST", "the generator")].config().student
    assert student == Cell("mnist", 1.0, paper_networks=True).config().student
    assert rows[("MNIST", "the generator; threshold 0")].config().student == student
    assert not rows[("MNIST", "nothing; without noise")].config().privacy.is_private
    assert len({cell.key for cell in rows.values()}) == len(rows)


def test_one_seed_has_no_spread(tmp_path: Path) -> None:
    cell = Cell("mnist", 1.0)
    store = store_with(tmp_path, (cell, {SHORT: accuracy(0.8123), "is-10": {"mean": 4.1234}}))
    assert summary([cell], Column("x", SHORT), store) == "81.2"
    assert summary([cell], Column("x", "is-10", "mean", percent=False), store) == "4.12"
    assert summary([cell], Column("x", "fid-10", "value", percent=False), store) == "not run"


def test_a_sweep_runs_first_seeds_first_and_each_cell_once(tmp_path: Path) -> None:
    rows = [*TABLES["table1"]().rows, *TABLES["table7"]().rows, *TABLES["table12"]().rows]
    work = work_of(rows, ResultsStore(tmp_path / "none.jsonl"))
    keys = [item.cell.key for item in work]
    assert len(keys) == len(set(keys))
    seeds = [item.cell.seed for item in work]
    assert seeds == sorted(seeds)
    full = next(item for item in work if item.cell == TABLES["table7"]().rows[0].cell)
    assert {"cnn-60000", "cnn-10000", "is-10000", "fid-10000"} <= set(full.scores), "all that any table asks"


def test_what_is_in_the_store_is_not_run_again(tmp_path: Path) -> None:
    rows = TABLES["table7"]().rows
    cell = rows[0].cell
    store = store_with(tmp_path, (cell, {SHORT: accuracy(0.8)}))
    before = work_of(rows, ResultsStore(tmp_path / "none.jsonl"))
    after = work_of(rows, store)
    assert len(after) == len(before) - 1
    assert cell.key not in [item.cell.key for item in after]


def test_a_refused_cell_says_so_and_why_and_is_not_left_to_run(tmp_path: Path) -> None:
    table = small_table()
    cells, reason = table.rows[0].cells, "epsilon=1 is too small for one step"
    store = store_with(tmp_path)
    for cell in cells:
        store.add(cell, {}, {REFUSED: reason})
    grid = table.draw(ResultsStore(store.path))
    assert grid.rows[0] == ("MNIST", "refused", "refused", "", "", "71.2")
    assert grid.notes == (f"Refused, MNIST: {reason}",)
    assert work_of(table.rows, store) == []
    store.add(cells[0], {SHORT: accuracy(0.8)}, FACTS)
    assert store.refusal(cells[0]) is None, "a later version of the product took it"


def test_rows_that_are_refused_for_one_reason_share_a_note(tmp_path: Path) -> None:
    rows = TABLES["table7"]().rows[:3]
    table = Table(
        "small", "A table", ("data set", "what"), (Column("last", SHORT),), "paper", rows, ("first",)
    )
    store = store_with(tmp_path)
    for row, reason in zip(rows, ("noise", "noise", "top_k"), strict=True):
        store.add(row.cell, {}, {REFUSED: reason})
    assert table.draw(store).notes == (
        "first",
        "Refused, MNIST full; MNIST without top-k: noise",
        "Refused, MNIST without stochastic quantisation: top_k",
    )


@pytest.mark.parametrize("name", TABLES)
def test_a_table_says_of_replacing_a_record_what_its_rows_cost(name: str) -> None:
    """That it costs the same is true of DataLens alone; where other methods stand, epsilon has two columns."""
    table = TABLES[name]()
    says_the_same = any("replacing one costs the same" in note for note in table.notes)
    assert not says_the_same or all(isinstance(row.cell, Cell) for row in table.rows)
    assert table.both_adjacencies == any("beside it for replacing one" in note for note in table.notes)


def test_the_papers_numbers_are_the_papers() -> None:
    assert paper.TABLE_1["mnist"] == {1.0: 0.7123, 10.0: 0.8066}
    assert paper.TABLE_7["mnist"]["without threshold"] == paper.TABLE_4["vote_threshold"]["mnist"][0.0]
    for table in (paper.TABLE_1, paper.TABLE_2, paper.TABLE_5, paper.TABLE_6, paper.TABLE_7, paper.TABLE_12):
        assert set(table) <= set(DATA_SETS)


def test_the_other_methods_stand_beside_what_the_paper_prints_for_them() -> None:
    rows = {row.labels: row for row in TABLES["table1"]().rows}
    assert rows["MNIST", "1", "pate-gan"].printed == "41.7"
    assert rows["MNIST", "inf", "dc-gan"].printed == "96.5" and ("MNIST", "1", "dc-gan") not in rows
    sound, published = rows["MNIST", "10", "gs-wgan"], rows["MNIST", "10", "gs-wgan-as-published"]
    assert (sound.printed, published.printed) == ("", "80.8") and sound.cell.key != published.cell.key
    twelve = {row.labels: row.printed for row in TABLES["table12"]().rows}
    assert twelve["Fashion-MNIST", "10", "gs-wgan-as-published"] == "5.87 / 135.47"
    assert twelve["CelebA-Gender", "1", "g-pate"] == "1.11 / 302.45"
    assert rows["CelebA-Hair", "10", "g-pate"].printed == "62.2"
    assert rows["Places365", "inf", "dc-gan"].printed == "74.0"
    small = {row.labels: row.printed for row in TABLES["table2"]().rows}
    assert small["Fashion-MNIST", "0.4", "g-pate"] == "30.2"


def test_replacing_a_record_has_its_own_epsilon(tmp_path: Path) -> None:
    cell = BaselineCell("mnist", "dp-merf", 1.0)
    store = ResultsStore(tmp_path / "results.jsonl")
    privacy = {"spent_epsilon": {"exact": 0.9}, "replace_one_epsilon": 2.1}
    store.add(cell, {SHORT: accuracy(0.8)}, {"privacy": privacy, "training_seconds": 12.0})
    row = Row(("dp-merf",), cell, (0,), "", (SHORT,))
    columns = (Column("last", SHORT), Column("s", RUN, "training_seconds", percent=False))
    columns += (Column("MiB", RUN, "peak_memory_mib", percent=False),)
    table = Table("t", "T", ("method",), columns, "paper", (row,), both_adjacencies=True)
    assert table.draw(store).rows[0] == ("dp-merf", "80.0", "12.00", "not measured", "1", "0.9", "2.1", "")
    table = replace(table, rows=(Row(("datalens",), Cell("mnist", 1.0), (0,), "", (SHORT,)),))
    store.add(Cell("mnist", 1.0), {SHORT: accuracy(0.8)}, FACTS)
    assert table.draw(store).rows[0][-3:] == ("0.99", "0.99", ""), "one that says nothing costs the same"


def test_the_three_forms_of_a_table_say_the_same() -> None:
    grid = Grid("T", ("a", "b|c"), (("1,5", "x"), ("2", "±")), ("a note",))
    assert "a    b|c" in to_text(grid) and "a note" in to_text(grid)
    assert "| a | b\\|c |" in to_markdown(grid) and "* a note" in to_markdown(grid)
    assert to_csv(grid) == 'a,b|c\n"1,5",x\n2,±\n'
    with pytest.raises(ValueError, match="a row has 1 cells"):
        Grid("T", ("a", "b"), (("1",),))
