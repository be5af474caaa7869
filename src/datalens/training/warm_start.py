"""A warm start: two noisy sums of the records, released before the first vote, from which the generator learns.

A table is on disk before it is used, and its ledger line before its noise is drawn. Where a process died between the
two, the table is lost and stays charged: it is never released again, and the run goes on with what there is.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from datalens.data.images import LabelledImages
from datalens.models.gaussian import GaussianImages
from datalens.moments.law import Centres
from datalens.moments.measuring import MEANS, PRODUCTS, STATES, Measures
from datalens.privacy.budget import Budget
from datalens.privacy.ledger import Ledger
from datalens.student.warming import Warming, warm_weights
from datalens.training.facts import PublicFacts
from datalens.training.warm_file import Table, Tables
from datalens.training.warm_plan import NOTE, PAID, RANK, WarmTerms, noise_of_release

LOST = {
    MEANS: (
        "warm start: the class means were charged and lost in a crash; they are not released again, and the "
        "generator begins at random"
    ),
    PRODUCTS: (
        "warm start: the class moments were charged and lost in a crash; they are not released again, and the "
        "generator learns from the class means alone"
    ),
}
"""What the owner is told, by what was lost."""


def release_tables(
    facts: PublicFacts,
    terms: WarmTerms,
    data: LabelledImages,
    budget: Budget,
    tables: Tables,
    save: Callable[[Tables], None],
) -> dict[str, Table]:
    """Release what has not been released yet.

    Guarantee:
        Every table passes :meth:`~datalens.mechanisms.vector_sum.VectorSum.release`, which charges ``budget`` first,
        and is given to ``save`` before anything is computed from it. No table is charged twice.

    Args:
        facts: of the run.
        terms: on which the run makes its releases.
        data: the sensitive records.
        budget: of the run.
        tables: released already.
        save: puts all tables on disk.

    Returns:
        All tables; where one was charged and lost, those before it.

    Raises:
        BudgetError: the data set's budget was used up by another run meanwhile; nothing was released.
    """
    found, measures = dict(tables), facts.measures
    for number, what in enumerate(STATES):
        if what in found:
            continue
        if num_paid(budget.ledger) > len(found):
            break
        mean_YD = None if what == MEANS else centres_of(measures, terms, found).mean_YD
        sums_YS = measures.sums(what, data.tensors(), mean_YD)
        mechanism = terms.mechanism(facts.config, measures, what, noise_of_release(facts.config, what))
        release = mechanism.release(sums_YS, budget, {"what": what, NOTE: number})
        found[what] = Table(release.value, release.line_hash)
        save(found)
    return found


def num_paid(ledger: Ledger) -> int:
    """Releases that were charged, among them what a cut-off line may have been."""
    return sum(line.kind in PAID for line in ledger.lines)


def centres_of(measures: Measures, terms: WarmTerms, tables: Tables) -> Centres:
    """The released means."""
    return measures.centres(tables[MEANS].sums_YS, terms.real_stddev(measures, MEANS))


def weights_of(
    facts: PublicFacts, terms: WarmTerms, tables: Tables, device: torch.device | str = "cpu"
) -> dict[str, Tensor] | None:
    """What the generator begins with: a function of what was released; None where that is nothing.

    Args:
        facts: of the run.
        terms: on which the tables were released.
        tables: all of them that there are.
        device: where to compute.
    """
    if MEANS not in tables:
        return None
    measures, settings = facts.measures, facts.config.warm_start
    moments = tables[PRODUCTS].sums_YS if PRODUCTS in tables else None
    stddev = terms.real_stddev(measures, PRODUCTS)
    law = measures.law(centres_of(measures, terms, tables), moments, stddev, RANK)
    network = GaussianImages(measures.basis, measures.num_classes, RANK)
    network.set_law(law.mean_YD, law.factor_YKL, law.grain_YG)
    how = Warming(settings.steps, settings.batch_size, settings.learning_rate)
    return warm_weights(facts.student_plan, network, how, facts.streams, device)
