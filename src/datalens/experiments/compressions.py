"""Table 5: D2P-Fed and FetchSGD in the place of TopAgg, and the cells that it shares with Table 6.

The paper gives neither the noise of the two nor how many steps they took. So each is asked twice, as in Table 2:
with TopAgg's noise and the steps that this leaves, and with TopAgg's steps and the noise that these need.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from datalens.experiments import paper
from datalens.experiments.cells import DATA_SETS, Cell
from datalens.experiments.settings import ONE_SEED, PROTOCOL_NOTES, SHORT, base_cell, percent
from datalens.experiments.table import Column, Row, Table
from datalens.mechanisms.kinds import MechanismKind
from datalens.training.mechanisms import units_a_vote

PAPER_VOTES = 5000.0
"""The paper's noise for TopAgg on MNIST at epsilon 1, in votes."""

STEPS = "149 steps"
NOISE = f"noise {PAPER_VOTES:g} votes"


@dataclass(frozen=True)
class Compression:
    """One of the mechanisms that Tables 5 and 6 compare.

    Attributes:
        title: as shown.
        mechanism: by the product's name.
        printed: its name in the paper's tables; None for what the paper does not have.
        as_published: run although it is not sound; nothing is promised then.
    """

    title: str
    mechanism: MechanismKind
    printed: str | None
    as_published: bool = False

    def cell(self, data_set: str, noise_stddev: float | None = None) -> Cell:
        """A training at epsilon 1: of the recipe's steps, or with this noise and the steps that it leaves."""
        changes: list[tuple[str, Any]] = [("voting__mechanism", str(self.mechanism))]
        if self.as_published:
            changes.append(("privacy__as_published", True))
        if noise_stddev is not None:
            changes += [("voting__noise_stddev", noise_stddev), ("voting__num_steps", None)]
        return Cell(data_set, 1.0, changes=tuple(changes))

    def paper_value(self, table: dict[str, dict[str, float]], data_set: str) -> float | None:
        """What the paper prints for it; None where it prints nothing."""
        return None if self.printed is None else table[data_set][self.printed]


TOPAGG = Compression("TopAgg", MechanismKind.TOPAGG, "TopAgg")
D2P_FED = Compression("D2P-Fed", MechanismKind.D2P_FED, "D2P-Fed")
PUBLISHED = Compression(
    "FetchSGD as published: no guarantee", MechanismKind.FETCHSGD, "FetchSGD", as_published=True
)
SOUND = Compression("FetchSGD, sound form", MechanismKind.FETCHSGD_SOUND, None)
COMPRESSIONS = (TOPAGG, D2P_FED, PUBLISHED, SOUND)


def cells_of_equal_steps(name: str) -> dict[Compression, Cell]:
    """The training of each compression that makes as many steps as TopAgg's."""
    return {
        TOPAGG: base_cell(name),
        D2P_FED: D2P_FED.cell(name),
        PUBLISHED: PUBLISHED.cell(name, PAPER_VOTES),
        SOUND: SOUND.cell(name),
    }


def table_5() -> Table:
    """Accuracy by compression."""
    rows = [
        Row(
            (DATA_SETS[name].title, compression.title, kept),
            cell,
            ONE_SEED,
            "" if printed is None else percent(printed),
            (SHORT,),
        )
        for name in paper.TABLE_5
        for compression, kept, cell in _trainings(name)
        for printed in [compression.paper_value(paper.TABLE_5, name)]
    ]
    return Table(
        "table5",
        "Table 5: other compressions in the place of TopAgg, epsilon 1",
        ("data set", "compression", "what is kept"),
        (Column("CNN, 10,000", SHORT), Column("its best test epoch", SHORT, "best_epoch_accuracy")),
        "paper",
        tuple(rows),
        (
            *PROTOCOL_NOTES,
            "Noise 5000 votes: TopAgg's, with as many steps as fit. 149 steps: as many as TopAgg makes, with the "
            "noise that makes them fit. Noise 5000 units: that number in the quantiser's own units, 7 to a vote.",
            "FetchSGD as published puts noise on coordinates that were chosen without any, so it has no guarantee at "
            "all (epsilon inf): noise and steps are those of the paper's count for epsilon 1. The paper's number is "
            "beside it; for the sound form, noise on the sketch, it prints none.",
            "Levels (8) and sketch (5 rows of 500) are ours: the paper gives neither.",
        ),
    )


def _trainings(name: str) -> Iterator[tuple[Compression, str, Cell]]:
    """(what compresses, what is kept of TopAgg's, the cell)."""
    if DATA_SETS[name].quick is None:  # what the paper prints, and nothing to run
        yield from ((one, "", one.cell(name)) for one in COMPRESSIONS if one.printed is not None)
        return
    equal = cells_of_equal_steps(name)
    a_vote = units_a_vote(equal[D2P_FED].config().voting)
    yield TOPAGG, NOISE, equal[TOPAGG]
    yield D2P_FED, STEPS, equal[D2P_FED]
    yield D2P_FED, NOISE, D2P_FED.cell(name, PAPER_VOTES * a_vote)
    yield D2P_FED, f"noise {PAPER_VOTES:g} units", D2P_FED.cell(name, PAPER_VOTES)
    yield PUBLISHED, NOISE, equal[PUBLISHED]
    yield SOUND, STEPS, equal[SOUND]
    yield SOUND, NOISE, SOUND.cell(name, PAPER_VOTES)
