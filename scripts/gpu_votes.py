"""Do two devices cast the same votes? One generator step from one state, the same records, fakes and draws.

    python scripts/gpu_votes.py --device cuda --against cpu
    python scripts/gpu_votes.py --device cpu --against cpu --teachers 4 --source shapes

Sums of floats round differently on another device or in chunks of another size, which turns a vote where two
gradients are nearly equal. Exit status 1 where less than 99.9% of all coordinates got the same vote. Prints one
line of JSON, with a stricter share too: among the coordinates where either device voted.
"""

from __future__ import annotations

import argparse
import json
import sys

import torch

from datalens import recipes
from datalens.compression.image_cap import strongest_images
from datalens.compression.topk_sign import signs_from_uniforms
from datalens.data import load
from datalens.data.images import LabelledImages
from datalens.teachers.families import make_family
from datalens.teachers.family import Fakes, Shards, TeacherFamily, TeacherState
from datalens.teachers.shards import RecordShards
from datalens.training.assembly import teacher_settings
from datalens.training.config import Config
from datalens.training.release import environment

LEAST = 0.999


class Step:
    """One generator step of some teachers, to be taken on any device from any state."""

    def __init__(self, config: Config, data: LabelledImages, num_teachers: int, seed: int) -> None:
        voting = config.voting
        shard_size = min(voting.shard_size or 15, data.num_records // num_teachers)
        rng = torch.Generator().manual_seed(seed)
        self.config, self.num_teachers = config, num_teachers
        self.family: TeacherFamily = make_family(
            config.teachers.kind,
            teacher_settings(config, data.image_shape, data.num_classes, shard_size, voting.num_steps or 100),
        )
        chosen = torch.randperm(data.num_records, generator=rng)[: num_teachers * shard_size]
        self.shards = RecordShards(
            torch.from_numpy(data.images), torch.from_numpy(data.labels), chosen.view(num_teachers, -1)
        )
        self.fakes = Fakes(
            torch.rand(voting.batch_size, *data.image_shape, generator=rng),
            torch.randint(data.num_classes, (voting.batch_size,), generator=rng),
        )
        spoken = min(voting.images_per_teacher or voting.batch_size, voting.batch_size)
        dim = self.fakes.images_BCHW[0].numel()
        self.images_per_teacher = spoken
        self.uniform_TSD = torch.rand(num_teachers, spoken, dim, generator=rng) * 2 - 1
        self.first = self.family.init(num_teachers, rng, torch.device("cpu"))

    def train(self, state: TeacherState, device: str, chunk: int, num_steps: int) -> TeacherState:
        """The state after ``num_steps`` optimiser steps on ``device``, on the CPU; ``state`` stays as it is."""
        return _joined([part for part, _ in self._chunks(state, device, chunk, num_steps)])

    def votes(self, state: TeacherState, device: str, chunk: int) -> torch.Tensor:
        """``vote_TBD`` on the CPU: the teachers train once more on ``device`` and vote."""
        steps = self.config.teachers.steps
        return torch.cat([vote for _, vote in self._chunks(state, device, chunk, steps, voting=True)])

    def _chunks(
        self, state: TeacherState, device: str, chunk: int, num_steps: int, *, voting: bool = False
    ) -> list[tuple[TeacherState, torch.Tensor]]:
        place, found = torch.device(device), []
        fakes = Fakes(self.fakes.images_BCHW.to(place), self.fakes.labels_B.to(place))
        for start in range(0, self.num_teachers, chunk):
            stop = min(start + chunk, self.num_teachers)
            part = {name: value[start:stop].clone().to(place) for name, value in state.items()}
            shards = self.shards.chunk(start, stop, place)
            part = self.family.train(part, shards, fakes, num_steps)
            vote = self._vote(part, shards, fakes, start) if voting else torch.empty(0)
            found.append(({name: value.cpu() for name, value in part.items()}, vote))
        return found

    def _vote(self, state: TeacherState, shards: Shards, fakes: Fakes, start: int) -> torch.Tensor:
        grad_TBD = self.family.input_gradient(state, shards, fakes)
        voting, batch = self.config.voting, len(fakes.images_BCHW)
        image_TS = None
        if self.images_per_teacher < batch:
            grad_TBD, image_TS = strongest_images(grad_TBD, self.images_per_teacher)
        uniform = self.uniform_TSD[start : start + len(grad_TBD)].to(grad_TBD.device)
        vote, _ = signs_from_uniforms(grad_TBD, voting.top_k, voting.clip_bound, uniform)
        if image_TS is None:
            return vote.cpu()
        whole = torch.zeros(len(vote), batch, vote.shape[2], dtype=vote.dtype)
        return whole.scatter_(1, image_TS.cpu()[:, :, None].expand_as(vote), vote.cpu())


def _joined(parts: list[TeacherState]) -> TeacherState:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def compare(given: argparse.Namespace) -> dict[str, object]:
    """Train a little on one device, then take the same step on both."""
    config = recipes.by_name(given.recipe)
    step = Step(config, load(given.source, split="train"), given.teachers, given.seed)
    state = step.train(step.first, given.against, given.against_chunk, given.steps_before)
    one = step.votes(state, given.against, given.against_chunk)
    other = step.votes(state, given.device, given.chunk)
    same, voted = one == other, (one != 0) | (other != 0)
    tally = (one.sum(0, dtype=torch.int32) - other.sum(0, dtype=torch.int32)).abs()
    return {
        "agree": float(same.double().mean()),
        "agree_where_either_voted": float(same[voted].double().mean()),
        "votes": int((other != 0).sum()),
        "largest_difference_of_a_tally": int(tally.max()),
        "needed": LEAST,
        "recipe": given.recipe,
        "source": given.source,
        "teachers": given.teachers,
        "chunk": given.chunk,
        "chunk_of_the_other": given.against_chunk,
        "optimiser_steps_before": given.steps_before,
        "seed": given.seed,
        "against": environment(given.against),
        **environment(given.device),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print how far the votes agree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--against", default="cpu")
    parser.add_argument("--recipe", default="mnist-paper")
    parser.add_argument("--source", default="mnist")
    parser.add_argument("--teachers", type=int, default=200)
    parser.add_argument("--chunk", type=int, default=100, help="teachers at once on --device")
    parser.add_argument("--against-chunk", type=int, default=20, help="teachers at once on --against")
    parser.add_argument(
        "--steps-before", type=int, default=10, help="optimiser steps before the state is shared"
    )
    parser.add_argument("--seed", type=int, default=0)
    found = compare(parser.parse_args(arguments))
    sys.stdout.write(json.dumps(found) + "\n")
    return 0 if float(str(found["agree"])) >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
