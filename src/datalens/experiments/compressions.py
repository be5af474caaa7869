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
from datalens.experiments.settings import (
    ONE_SEED,
    PROTOCOL_NOTES,
    SHORT,
    base_cell,
    paper_noise,
    percent,
    teachers_of,
)
from datalens.experiments.table import Column, Row, Table
from datalens.mechanisms.kinds import MechanismKind
from datalens.training.mechanisms import units_a_vote


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
        changes: list[tuple[str, Any]] = [("voting__mechanism", str(self.mechanism)), *teachers_of(data_set)]
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
        PUBLISHED: PUBLISHED.cell(name, paper_noise(name)),
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
            "Noise 5000 votes (colour: 9000): TopAgg's, with as many steps as fit. 149 steps (colour: 138): as many "
            "as TopAgg makes, with the noise that makes them fit. Noise in units: that number in the quantiser's own "
            "units, 7 to a vote.",
            "FetchSGD as published puts noise on coordinates that were chosen without any, so it has no guarantee at "
            "all (epsilon inf): noise and steps are those of the paper's count for epsilon 1. The paper's number is "
            "beside it; for the sound form, noise on the sketch, it prints none.",
            "Levels (8) and sketch (5 rows of 500; colour: of 8000) are ours: the paper gives neither.",
        ),
    )


def _trainings(name: str) -> Iterator[tuple[Compression, str, Cell]]:
    """(what compresses, what is kept of TopAgg's, the cell)."""
    equal, noise = cells_of_equal_steps(name), paper_noise(name)
    voting = equal[D2P_FED].config().voting
    steps, votes = f"{voting.num_steps} steps", f"noise {noise:g} votes"
    yield TOPAGG, votes, equal[TOPAGG]
    yield D2P_FED, steps, equal[D2P_FED]
    yield D2P_FED, votes, D2P_FED.cell(name, noise * units_a_vote(voting))
    yield D2P_FED, f"noise {noise:g} units", D2P_FED.cell(name, noise)
    yield PUBLISHED, votes, equal[PUBLISHED]
    yield SOUND, steps, equal[SOUND]
    yield SOUND, votes, SOUND.cell(name, noise)
