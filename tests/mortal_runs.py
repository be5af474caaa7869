"""Tiny trainings, begun or gone on with by one call, in a process that may die at any thing it does to the disk.

As a program it is a server: every line of JSON that it reads is a training for a fork of its own, which ends at the
point that is asked for as ``kill -9`` ends it: no clean-up runs, and a write may be half done.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from baseline_scene import shapes
from small_baselines import SMALL
from small_runs import small_config, small_data

from datalens import DataLens
from datalens.baselines.model import Baseline
from datalens.baselines.registry import baseline
from datalens.baselines.run import BaselineRun
from datalens.data.images import LabelledImages
from datalens.dpsgd import DPSGDClassifier, parse_classifier
from datalens.dpsgd.classifier import ClassifierRun
from datalens.dpsgd.facts import ClassifierFacts
from datalens.errors import DataLensError
from datalens.methods.opening import decide
from datalens.methods.run import MethodRun
from datalens.training.run_folder import RunFolder
from datalens.training.session import Session
from datalens.training.unbegun import clear_unbegun

KILLED = 137
STEPS = 4
VOTES: dict[str, dict[str, Any]] = {
    "topagg": {},
    "topagg-of-groups": {},
    "paper-teachers-on-disk": {
        "teachers__kind": "paper",
        "performance__teacher_store": "disk",
        "performance__teacher_memory": 0.0,
    },
    "d2p-fed": {"voting__mechanism": "d2p-fed", "privacy__epsilon": 50.0},
    "fetchsgd-sound": {
        "voting__mechanism": "fetchsgd-sound",
        "voting__sketch_rows": 3,
        "voting__sketch_buckets": 20,
    },
    "warm-start": {"warm_start__enabled": True, "warm_start__steps": 3, "warm_start__batch_size": 4},
}
"""Runs of DataLens: what each changes in the smallest one."""
STEPWISE = ("moments", "judged", "dp-merf", "dp-gan", "pate-gan", "g-pate", "gs-wgan", "dpsgd")
"""Methods that go on from their last checkpoint alone."""
CASES = (*VOTES, *STEPWISE)


def data_of(case: str) -> LabelledImages:
    """The records of a case."""
    if case == "topagg-of-groups":
        return small_data().with_groups([f"person {number % 17}" for number in range(60)])
    return small_data() if case in VOTES else shapes()


def config_of(case: str, **privacy: Any) -> Any:
    """Its settings: few steps, a checkpoint every second one, and draws that anyone can repeat."""
    if case in VOTES:
        usual = {"voting__num_steps": STEPS, "performance__checkpoint_every": 2, "privacy__insecure_seed": 5}
        config = small_config(**usual, **VOTES[case])
        return config.replace(privacy=privacy) if privacy else config
    privacy = {"epsilon": 2.0, "delta": 1e-3, "insecure_seed": 5} | privacy
    if case == "dpsgd":
        settings = {"model": "linear", "num_steps": STEPS, "batch_size": 40}
        return parse_classifier(
            {"settings": settings, "privacy": privacy, "performance": {"checkpoint_every": 2}}
        )
    found = baseline(case, SMALL[case], **privacy)
    return found.model_copy(
        update={"performance": found.performance.model_copy(update={"checkpoint_every": 2})}
    )


def begun(case: str, root: Path | None) -> Any:
    """A run at its beginning, with its parts in the caller's hands."""
    config, data = config_of(case), data_of(case)
    if case in VOTES:
        return Session.begin(config, data, root)
    if case == "dpsgd":
        return ClassifierRun.begun(decide(ClassifierFacts, config, data, None), data, root, None)
    return BaselineRun.begin(config, data, root)


def model_of(case: str) -> type[Any]:
    """The façade of its trained runs."""
    if case in VOTES:
        return DataLens
    return DPSGDClassifier if case == "dpsgd" else Baseline


def network_of(model: Any) -> dict[str, torch.Tensor]:
    """What was learned, by the names of its tensors."""
    network = model.classifier if isinstance(model, DPSGDClassifier) else model.generator
    return {name: value.clone() for name, value in network.state_dict().items()}


def skipping(run: Session | MethodRun[Any, Any], lost: set[int]) -> Callable[[], bool]:
    """A ``stop`` that passes over steps as a resumed run passes over those that were lost, and stops at the end."""
    num_steps = run.plan.num_steps if isinstance(run, Session) else run.method.num_steps

    def stop() -> bool:
        while run._next_step in lost:
            run._next_step += 1
        return run._next_step >= num_steps

    return stop


def work(case: str, root: Path, data: LabelledImages) -> None:
    """What a user does: go on if there is a run, else begin it anew."""
    if RunFolder.holds_run(root):
        model_of(case).resume(root, data)
        return
    clear_unbegun(root)
    model_of(case)(config_of(case)).fit(data, out=root)


class Disk:
    """Counts what a process does to the disk, and ends the process before the thing of a given number.

    A write is two things: its first half and its second.
    """

    def __init__(self, last: int | None) -> None:
        self.last, self.count = last, 0

    def watch(self) -> None:
        """From here on everything counts."""
        for name in ("fsync", "ftruncate", "replace", "rename", "link", "unlink", "mkdir", "rmdir"):
            setattr(os, name, self._counted(getattr(os, name)))
        safetensors.torch.save_file = self._counted(safetensors.torch.save_file)
        open_, write = os.open, os.write

        def opened(path: Any, flags: int, *words: Any, **options: Any) -> int:
            if flags & os.O_CREAT:
                self._tick()
            return open_(path, flags, *words, **options)

        def written(descriptor: int, content: Any) -> int:
            view = memoryview(content)
            self._tick()
            done = write(descriptor, view[: len(view) // 2])
            self._tick()
            return done + write(descriptor, view[done:])

        os.open, os.write = opened, written

    def _counted(self, thing: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*words: Any, **options: Any) -> Any:
            self._tick()
            return thing(*words, **options)

        return counted

    def _tick(self) -> None:
        if self.count == self.last:
            os._exit(KILLED)
        self.count += 1


def _serve() -> None:
    torch.set_num_threads(1)
    records = {case: data_of(case) for case in CASES}
    for line in sys.stdin:
        case, root, last, count_file = json.loads(line)
        child = os.fork()
        if child == 0:
            status = 3
            try:
                disk = Disk(last)
                disk.watch()
                try:
                    work(case, Path(root), records[case])
                    status = 0
                except DataLensError as error:
                    sys.stderr.write(f"{error}\n")
                    status = 2
                Path(count_file).write_text(str(disk.count))
            except BaseException as error:
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(status)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
