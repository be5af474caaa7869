"""Milliseconds a teacher from a few to many, and bytes of state a teacher of each kind, within one run.

    python benchmarks/teachers.py mnist --counts 50 200 1000 4000 20000 --disk 20000
    python benchmarks/teachers.py mnist --recipe mnist-paper --counts 4 20 80 --reference 20 --least-asked 1

A round asks every number of teachers for a generator step's votes, one after the other, so that all see the same
machine; few teachers are asked several times and their mean is one measurement. The first round is thrown away.
Every teacher has ``--shard-size`` records; where the data hold too few they are repeated, which changes no time.
``ratio`` is milliseconds a teacher over those of ``--reference`` teachers in the same round. Peak memory is the
process's, read after the warm-up of each number in rising order: it holds the smaller ones too. The numbers given to
``--disk`` are asked once more with all states on the disk. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import torch
from measuring import explained, machine, peak_resident_mib, seconds_of, spread

from datalens import recipes
from datalens.data import load
from datalens.data.images import LabelledImages
from datalens.teachers.families import TeacherKind, make_family
from datalens.teachers.family import Fakes
from datalens.teachers.room import state_bytes
from datalens.teachers.store_kind import StoreKind
from datalens.training.assembly import draw_run, make_teachers, teacher_settings
from datalens.training.config import Config


def some_records(data: LabelledImages, count: int) -> LabelledImages:
    """The first ``count`` records, over and over where there are fewer."""
    chosen = np.arange(count) % data.num_records
    return LabelledImages(data.images[chosen], data.labels[chosen], data.classes, data.name, data.public)


def asking(
    config: Config,
    data: LabelledImages,
    count: int,
    shard_size: int,
    stack: ExitStack,
    disk: Path | None = None,
) -> Callable[[], object]:
    """A function that has ``count`` teachers take one generator step: training and votes.

    Their states are on ``disk``, if that is given, and are let go with ``stack``.
    """
    config = config.replace(
        voting__num_teachers=count, voting__shard_size=shard_size, privacy__insecure_seed=0
    )
    records = some_records(data, count * shard_size)
    facts, _, partition, private, _ = draw_run(config, records, signal_matters=False)
    performance = config.performance
    if disk is not None:
        performance = performance.model_copy(update={"teacher_store": StoreKind.DISK, "teacher_memory": 0.0})
    teachers, voting = make_teachers(facts, records, partition, private, performance, disk), config.voting
    stack.callback(teachers.close)
    rng = torch.Generator().manual_seed(0)
    fakes = Fakes(
        torch.rand(voting.batch_size, *data.image_shape, generator=rng),
        torch.arange(voting.batch_size) % data.num_classes,
    )
    return lambda: teachers.tally(
        fakes, 1, config.teachers.steps, voting.top_k, voting.clip_bound, voting.images_per_teacher
    )


def bytes_a_teacher(config: Config, image_shape: tuple[int, int, int], shard_size: int) -> dict[str, int]:
    """Bytes of state of one teacher of each kind, at this recipe's settings."""
    found = {}
    for kind in TeacherKind:
        settings = teacher_settings(config, image_shape, 10, shard_size, num_steps=100)
        state = make_family(kind, settings).init(1, torch.Generator().manual_seed(0), torch.device("cpu"))
        found[str(kind)] = state_bytes(state)
    return found


def measure(given: argparse.Namespace) -> dict[str, object]:
    """Time every number of teachers in every round."""
    counts = sorted({*given.counts, given.reference})
    config = recipes.by_name(given.recipe).replace(performance__device=given.device)
    device = torch.device(given.device)
    data = load(given.source, split="train")
    sizes = bytes_a_teacher(config, data.image_shape, given.shard_size)
    works, resident = {}, {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        asked = [(str(count), count, None) for count in counts]
        asked += [(f"{count} on disk", count, Path(folder)) for count in given.disk]
        for name, count, disk in asked:
            works[name] = asking(config, data, count, given.shard_size, stack, disk)
            works[name]()
            resident[name] = peak_resident_mib()
        milliseconds: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(given.rounds):
            for name, count, _ in asked:
                times = max(1, given.least_asked // count)
                took = sum(seconds_of(works[name], device) for _ in range(times))
                milliseconds[name].append(1000 * took / (times * count))
    reference = milliseconds[str(given.reference)]
    return {
        "recipe": given.recipe,
        "kind": str(config.teachers.kind),
        "source": given.source,
        "shard_size": given.shard_size,
        "rounds": given.rounds,
        "seed": 0,
        "reference": given.reference,
        "teachers": {
            name: {
                "milliseconds_a_teacher": spread(found),
                "ratio": spread([one / other for one, other in zip(found, reference, strict=True)]),
                "peak_resident_mib": round(resident[name]),
            }
            for name, found in milliseconds.items()
        },
        "bytes_of_state_a_teacher": sizes,
        **machine(device),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print milliseconds, ratios and bytes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", default="mnist")
    parser.add_argument("--recipe", default="mnist-quick")
    parser.add_argument("--counts", type=int, nargs="+", default=[50, 200, 1000, 4000, 20000])
    parser.add_argument(
        "--disk", type=int, nargs="*", default=[], help="of these also with states on the disk"
    )
    parser.add_argument("--reference", type=int, default=1000)
    parser.add_argument("--shard-size", type=int, default=15)
    parser.add_argument(
        "--least-asked", type=int, default=1000, help="teachers asked in a measurement, at least"
    )
    parser.add_argument("--rounds", type=int, default=3, help="after one that is thrown away")
    parser.add_argument("--device", default="cpu")
    sys.stdout.write(json.dumps(measure(parser.parse_args(arguments))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(explained(main))
