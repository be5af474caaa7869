"""Share of the matrix-multiply peak that a teacher step of the paper's networks reaches.

    python benchmarks/peak_share.py
    python benchmarks/peak_share.py --device cuda --teachers 200 --size 8192

The peak is what one large square float32 product reaches on the same device, threads and precision, measured in
turn with the steps, so that both see the same machine. A teacher step is what a generator step asks of a teacher:
``--adam-steps`` optimiser steps on its shard and the fakes, then the gradient at each fake.

Operations are counted, not measured: two for each multiplication with its addition, in those products alone that
the formulation of ``datalens/models/stacked.py`` cannot do without. With P_i positions of map i, K_i = 25 C_i taps,
F_i channels, H hidden units, and an image's

    conv_i = 2 F_i K_i P_i      hidden = 2 (F_last P_last) H      out = 2 H

an image costs in an optimiser step (forward, by weight, by input; the first convolution needs no gradient by input)

    2 conv_0 + 3 (conv_1 + ... ) + 3 hidden + 3 out

and a fake at the vote (forward, by input, down to the pixels; nothing by weight)

    2 (conv_0 + conv_1 + ... + hidden + out)

Everything else counts as nothing done: label planes, batch norm, activations, Adam, patches, and the votes, whose
time is printed apart and included in ``share_with_votes``. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys

import torch
from measuring import explained, machine, seconds_of, spread

from datalens.compression.topk_sign import topk_sign
from datalens.models.patches import KERNEL
from datalens.models.stacked import PaperDiscriminator
from datalens.teachers.family import Fakes, Shards
from datalens.teachers.paper import PaperTeachers

TOP_K, CLIP_BOUND = 200, 1e-5
WARM_UP = 2


def operations(network: PaperDiscriminator, num_real: int, num_fakes: int, adam_steps: int) -> int:
    """Floating-point operations of one teacher's step, by the formula above.

    >>> operations(PaperDiscriminator((1, 28, 28), 10), 15, 15, 2)
    475252680
    """
    convs = [
        2 * fan_out * fan_in * KERNEL**2 * size**2
        for fan_in, fan_out, size in zip(
            network.widths[:-1], network.widths[1:], network.sizes[1:], strict=True
        )
    ]
    units = network.hidden_units
    dense = 2 * network.widths[-1] * network.sizes[-1] ** 2 * units + 2 * units
    an_image_trained = 2 * convs[0] + 3 * (sum(convs[1:]) + dense)
    a_fake_judged = 2 * (sum(convs) + dense)
    return adam_steps * (num_real + num_fakes) * an_image_trained + num_fakes * a_fake_judged


def measure(given: argparse.Namespace) -> dict[str, object]:
    """Time product and step in turn, ``given.repeats`` times after the warm-up."""
    device = torch.device(given.device)
    rng = torch.Generator().manual_seed(given.seed)
    family = PaperTeachers((1, given.image_size, given.image_size), 10)
    num_teachers, batch = given.teachers, given.images
    shape = (num_teachers, batch, *family.image_shape)
    shards = Shards(
        torch.rand(shape, generator=rng).to(device),
        torch.randint(10, shape[:2], generator=rng).to(device),
        torch.ones(shape[:2], dtype=torch.bool, device=device),
    )
    fakes = Fakes(
        torch.rand(batch, *family.image_shape, generator=rng).to(device),
        torch.randint(10, (batch,), generator=rng).to(device),
    )
    state = family.init(num_teachers, rng, device)
    left, right = (torch.rand(given.size, given.size, generator=rng).to(device) for _ in range(2))
    product = torch.empty_like(left)
    draws = torch.Generator(device=device).manual_seed(given.seed)
    grads: list[torch.Tensor] = []

    def step() -> None:
        nonlocal state
        state = family.train(state, shards, fakes, given.adam_steps)
        grads[:] = [family.input_gradient(state, shards, fakes)]

    def vote() -> None:
        topk_sign(grads[0], min(TOP_K, grads[0].shape[2]), CLIP_BOUND, draws)

    seconds: dict[str, list[float]] = {"product": [], "step": [], "votes": []}
    for repeat in range(WARM_UP + given.repeats):
        found = {
            "product": seconds_of(lambda: torch.mm(left, right, out=product), device),
            "step": seconds_of(step, device),
            "votes": seconds_of(vote, device),
        }
        if repeat >= WARM_UP:
            for name, value in found.items():
                seconds[name].append(value)
    work = num_teachers * operations(family.network, batch, batch, given.adam_steps)
    peak = [2 * given.size**3 / value for value in seconds["product"]]
    reached = [work / value for value in seconds["step"]]
    rounds = zip(peak, seconds["step"], seconds["votes"], strict=True)
    of_peak = [(work / step / top, work / (step + votes) / top) for top, step, votes in rounds]
    return {
        "share": spread([share for share, _ in of_peak]),
        "share_with_votes": spread([share for _, share in of_peak]),
        "share_of_best_over_best": max(reached) / max(peak),
        "peak_gflops": spread([value / 1e9 for value in peak]),
        "step_gflops": spread([value / 1e9 for value in reached]),
        "mflop_a_teacher": work / num_teachers / 1e6,
        "milliseconds_a_teacher": spread([1000 * value / num_teachers for value in seconds["step"]]),
        "milliseconds_of_votes_a_teacher": spread(
            [1000 * value / num_teachers for value in seconds["votes"]]
        ),
        "teachers": num_teachers,
        "images": f"{batch} records and {batch} fakes of {given.image_size}x{given.image_size}",
        "adam_steps": given.adam_steps,
        "matrix": given.size,
        "repeats": given.repeats,
        "seed": given.seed,
        "precision": torch.get_float32_matmul_precision(),
        **machine(device),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the shares."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--teachers", type=int, default=4, help="stepped at once")
    parser.add_argument("--images", type=int, default=15, help="records of a teacher, and fakes")
    parser.add_argument("--image-size", type=int, default=28)
    parser.add_argument("--adam-steps", type=int, default=2)
    parser.add_argument("--size", type=int, default=2048, help="side of the product that gives the peak")
    parser.add_argument("--repeats", type=int, default=30, help="after two that are thrown away")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    sys.stdout.write(json.dumps(measure(parser.parse_args(arguments))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(explained(main))
