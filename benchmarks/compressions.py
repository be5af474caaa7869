"""Seconds of compressing and releasing the same gradients with TopAgg, D2P-Fed and FetchSGD, within one run.

    python benchmarks/compressions.py mnist
    python benchmarks/compressions.py mnist --top-k 350
    python benchmarks/compressions.py mnist --kind kernel --teachers 4000 --batch-size 15

Some compact teachers are trained once on the records and asked about images halfway to class means. Their gradients
then stand in for the teachers of a run, and everything after them is training's own: ``compress`` is what
``TeacherEnsemble.tally`` does with them (the strongest images of each teacher, compression in blocks, the sum),
``release`` is what ``VoteSum.release`` does with the sum (check, charge in memory, noise, reading a direction), and
``both`` is their sum. Training of teachers and student is left out: ``datalens reproduce table6`` times whole steps.
``ratio`` is over TopAgg in the same round. ``each sketched`` is the sound form of FetchSGD with every teacher's votes
sketched on their own, as Algorithm 7 prints it; elsewhere their sum is sketched, which gives the same table.

The paper gives top-k (200 at epsilon 1 on MNIST, 350 at 10) and neither levels nor the size of a sketch. A round does
all of them one after the other, every second round backwards; the first is thrown away, and with it the making of
noise tables. Noise is 1.25 votes a teacher, the paper's share. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import torch
from measuring import explained, machine, spread, wait_for
from torch import Tensor

from datalens import recipes
from datalens.compression.count_sketch import count_sketch
from datalens.compression.topk_sign import SignVotes, topk_sign
from datalens.data import load
from datalens.experiments.gradients import Scene, teacher_gradients
from datalens.mechanisms.fetchsgd import SketchedSum
from datalens.mechanisms.kinds import MechanismKind
from datalens.mechanisms.vote_sum import VoteSum
from datalens.privacy.budget import Authorisation, Budget
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.teachers.ensemble import TeacherEnsemble
from datalens.teachers.families import TeacherKind
from datalens.teachers.family import Fakes, Shards, TeacherState
from datalens.teachers.room import chunk_size_for
from datalens.training.config import Config
from datalens.training.mechanisms import check_mechanism, set_compression, units_a_vote
from datalens.training.plan import mechanism_of

NOISE_OF_A_TEACHER = 1.25
EACH_SKETCHED = "each sketched"


@dataclass(frozen=True)
class Recorded:
    """Teachers that say what they said before: a family and its shards in one, without a state."""

    grad_TBD: Tensor

    @property
    def num_teachers(self) -> int:
        return len(self.grad_TBD)

    def chunk(self, start: int, stop: int, device: torch.device) -> Shards:
        nothing = torch.empty(stop - start, 0, device=device)
        return Shards(nothing, nothing, nothing, first=start)

    def init(self, num_teachers: int, rng: torch.Generator, device: torch.device) -> TeacherState:
        return {}

    def train(self, state: TeacherState, shards: Shards, fakes: Fakes, num_steps: int) -> TeacherState:
        return state

    def input_gradient(self, state: TeacherState, shards: Shards, fakes: Fakes) -> Tensor:
        return self.grad_TBD[shards.first : shards.first + shards.num_teachers]


@dataclass(frozen=True)
class EachSketched(SketchedSum):
    """The sound form, from a sum of sketches instead of the sketch of a sum."""

    dim: int = 0

    def check_tally(self, tally_BD: Tensor) -> None:
        """No bound is known of a single bucket's sum, and nothing is promised here."""

    def summed(self, tally_BD: Tensor) -> Tensor:
        return tally_BD.view(-1, self.rows, self.buckets)

    def _dim_of(self, tally_BD: Tensor) -> int:
        return self.dim


@dataclass(frozen=True)
class Contender:
    """One compression with the teachers that it asks and the mechanism that releases."""

    teachers: TeacherEnsemble
    mechanism: VoteSum
    config: Config
    fakes: Fakes

    def seconds(self, step: int) -> tuple[float, float]:
        """Of compression and of release."""
        voting, device = self.config.voting, self.teachers.device
        budget = Budget(Ledger.in_memory(), self._authorised())
        wait_for(device)
        started = time.perf_counter()
        tally_BD = self.teachers.tally(
            self.fakes, step, 1, voting.top_k, voting.clip_bound, voting.images_per_teacher
        ).tally_BD
        between = time.perf_counter()
        self.mechanism.release(tally_BD, budget, {"step": step})
        return between - started, time.perf_counter() - between

    def _authorised(self) -> Authorisation:
        """Enough for a release."""
        delta = self.config.privacy.delta
        return (
            Authorisation(1000.0, delta)
            if self.config.privacy.is_private
            else Authorisation.not_private(delta)
        )


def contender(config: Config, recorded: Recorded, fakes: Fakes, *, each_sketched: bool = False) -> Contender:
    """The parts of a run with these settings, as training makes them."""
    num_teachers, _, dim = recorded.grad_TBD.shape
    device, voting = recorded.grad_TBD.device, config.voting
    check_mechanism(config, dim)
    stddev = NOISE_OF_A_TEACHER * num_teachers * units_a_vote(voting)
    mechanism = mechanism_of(config, dim, stddev)
    chunk_size = chunk_size_for(0, 4 * voting.batch_size * dim, num_teachers, device)
    streams = Streams.from_insecure_seed(0, "private")
    teachers = TeacherEnsemble(recorded, recorded, streams, chunk_size, device)
    set_compression(teachers, voting)
    if each_sketched:
        sketch = count_sketch(dim, voting.sketch_rows, voting.sketch_buckets)

        def compress(grad: Tensor, top_k: int, clip_bound: float, rng: torch.Generator) -> SignVotes:
            vote_TBD, failed_TB = topk_sign(grad, top_k, clip_bound, rng)
            table = sketch.sketch(vote_TBD.flatten(0, 1)).to(torch.int8)
            return SignVotes(table.view(*vote_TBD.shape[:2], -1), failed_TB)

        teachers.compress = compress
        teachers.width_of = lambda _: voting.sketch_rows * voting.sketch_buckets
        mechanism = EachSketched(**{f.name: getattr(mechanism, f.name) for f in fields(mechanism)}, dim=dim)
    return Contender(teachers, mechanism, config, fakes)


def measure(given: argparse.Namespace) -> dict[str, object]:
    """Time every compression in every round."""
    device = torch.device(given.device)
    data = load(given.source, split="train")
    base = recipes.by_name(given.recipe)
    kind = TeacherKind(given.kind) if given.kind else base.teachers.kind
    batch_size = given.batch_size or base.voting.batch_size
    scene = Scene(given.teachers, given.shard_size, batch_size)
    grad_TBD = torch.from_numpy(teacher_gradients(data, kind, scene)).float().to(device)
    settings: dict[str, Any] = {
        "num_teachers": given.teachers,
        "shard_size": given.shard_size,
        "batch_size": batch_size,
        "top_k": given.top_k or base.voting.top_k,
        "levels": given.levels,
        "sketch_rows": given.sketch[0],
        "sketch_buckets": given.sketch[1],
    }
    config = base.replace(voting=settings, teachers__kind=str(kind), privacy__insecure_seed=0)
    fakes = Fakes(
        torch.zeros(batch_size, *data.image_shape), torch.arange(batch_size) % data.num_classes
    )  # the gradients have been asked for
    recorded, contenders = Recorded(grad_TBD), {}
    for mechanism in MechanismKind:
        published = mechanism is MechanismKind.FETCHSGD
        changed = config.replace(voting__mechanism=str(mechanism), privacy__as_published=published)
        contenders[str(mechanism)] = contender(changed, recorded, fakes)
    sound = contenders[str(MechanismKind.FETCHSGD_SOUND)].config
    contenders[EACH_SKETCHED] = contender(sound, recorded, fakes, each_sketched=True)
    return {
        "source": given.source,
        "recipe": given.recipe,
        "kind": str(kind),
        "rounds": given.rounds,
        "seed": 0,
        "settings": settings | {"images_per_teacher": config.voting.images_per_teacher},
        "coordinates": math.prod(data.image_shape),
        "chunk_size": contenders[EACH_SKETCHED].teachers.chunk_size,
        "compressions": rounds_of(contenders, given.rounds),
        **machine(device),
    }


def rounds_of(contenders: dict[str, Contender], rounds: int) -> dict[str, dict[str, dict[str, Any]]]:
    """Seconds and ratios of compression, of release and of both, by contender."""
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        order = list(contenders)
        for name in order if turn % 2 else reversed(order):
            seconds = contenders[name].seconds(turn)
            if turn > 0:
                took[name].append(seconds)
    parts: dict[str, Callable[[tuple[float, float]], float]] = {
        "compress": lambda pair: pair[0],
        "release": lambda pair: pair[1],
        "both": sum,
    }
    reference = took[str(MechanismKind.TOPAGG)]
    return {
        name: {
            part: {
                "seconds": spread([of(pair) for pair in pairs]),
                "ratio": spread([of(pair) / of(other) for pair, other in zip(pairs, reference, strict=True)]),
            }
            for part, of in parts.items()
        }
        for name, pairs in took.items()
    }


def main(arguments: list[str] | None = None) -> int:
    """Print seconds and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="?", default="mnist")
    parser.add_argument("--recipe", default="mnist-quick")
    parser.add_argument("--kind", help="of teachers; the recipe's unless given")
    parser.add_argument("--teachers", type=int, default=1000)
    parser.add_argument("--shard-size", type=int, default=15)
    parser.add_argument("--batch-size", type=int, help="images of a step; the recipe's unless given")
    parser.add_argument("--top-k", type=int, help="the recipe's unless given")
    parser.add_argument("--levels", type=int, default=8)
    parser.add_argument("--sketch", type=int, nargs=2, default=[5, 500], metavar=("ROWS", "BUCKETS"))
    parser.add_argument("--rounds", type=int, default=10, help="after one that is thrown away")
    parser.add_argument("--device", default="cpu")
    sys.stdout.write(json.dumps(measure(parser.parse_args(arguments))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(explained(main))
