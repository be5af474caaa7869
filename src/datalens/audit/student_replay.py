"""The generator once more, from what was released: no data, no teachers, the same weights.

Bit for bit on the recorded platform (same PyTorch, instructions, device and number of threads). Elsewhere sums are
rounded otherwise, and training carries that on; there both generators must draw nearly the same images.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from datalens.audit.direction_reader import read_direction_records
from datalens.audit.ledger_reader import Difference
from datalens.errors import DataLensError
from datalens.models.finish import AnyGenerator
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.student.latent import LatentSpace
from datalens.student.update import replay
from datalens.training.devices import why_not
from datalens.training.facts import read_facts
from datalens.training.files import read_json
from datalens.training.release import environment, read_generator
from datalens.training.run_folder import RunFolder
from datalens.training.starting import start_of
from datalens.training.warm_file import read_tables
from datalens.training.warm_plan import WarmTerms
from datalens.training.warm_start import weights_of

IMAGES = 256
MEAN_TOLERANCE = 0.02
"""Largest mean absolute difference of pixels, on the scale 0 to 1, between two platforms."""
PLATFORM = ("torch", "machine", "instructions", "device", "threads")


def replay_student(root: Path) -> dict[str, Any]:
    """Train the student again from ``release/`` and compare.

    Returns:
        ``bit_for_bit``; ``same_platform``; ``mean_difference`` of pixels; ``steps``.

    Raises:
        Difference: another generator than the released one, or files that cannot be replayed.
    """
    folder = RunFolder.open(root)
    try:
        facts = read_facts(folder)
        made_in = read_json(folder.certificate).get("environment", {})
        released = read_generator(folder.generator, facts)
        records = list(read_direction_records(folder.directions))
        start, ledger = start_of(folder, facts), Ledger.read(folder.ledger)
        tables, terms = read_tables(folder.warm_start, facts.measures, ledger), WarmTerms.recorded(ledger)
    except (DataLensError, AttributeError) as error:
        raise Difference(f"cannot be replayed: {error}") from None
    device = facts.config.performance.device
    if why_not(device) is not None:
        device = "cpu"
    threads = torch.get_num_threads()
    try:
        if isinstance(made_in.get("threads"), int) and 1 <= made_in["threads"] <= 1024:
            torch.set_num_threads(made_in["threads"])
        here = environment(device)
        same = all(made_in.get(name) == here[name] for name in PLATFORM)
        directions = ((record.step, torch.from_numpy(record.values)) for record in records)
        weights = None if start is None else start.generator
        if terms is not None:
            weights = weights_of(facts, terms, tables, device)
        student = replay(facts.student_plan, facts.streams, directions, device, weights)
        again = student.finished_generator().to("cpu")
    except (RuntimeError, MemoryError, ValueError) as error:
        reason = " ".join(str(error).split()) or "memory"
        raise Difference(f"cannot be replayed: {reason:.120}") from None
    finally:
        torch.set_num_threads(threads)
    mine, theirs = again.state_dict(), released.state_dict()
    equal = all(torch.equal(mine[name], theirs[name]) for name in theirs)
    difference = 0.0 if equal else _difference(again, released, facts.student_plan.latent, facts.streams)
    if same and not equal:
        raise Difference(
            f"generator.safetensors is not what the released directions give (pixels differ by {difference:.2g})"
        )
    if difference > MEAN_TOLERANCE:
        raise Difference(
            f"generator.safetensors is not what the released directions give: pixels differ by {difference:.2g}, "
            f"more than {MEAN_TOLERANCE} between platforms"
        )
    return {
        "bit_for_bit": equal,
        "same_platform": same,
        "mean_difference": difference,
        "tolerance": MEAN_TOLERANCE,
        "steps": len(records),
    }


def _difference(one: AnyGenerator, other: AnyGenerator, latent: LatentSpace, streams: Streams) -> float:
    rng = streams.torch("verification")
    latents_BZ, labels_B = latent.latents(IMAGES, rng), latent.labels(IMAGES, rng)
    with torch.no_grad():
        mean = (one(latents_BZ, labels_B) - other(latents_BZ, labels_B)).abs().mean()
    return float(mean) if bool(torch.isfinite(mean)) else float("inf")
