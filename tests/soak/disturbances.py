"""The disturbances: each begins a run, hurts it, and says what must hold afterwards."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable

from soak import inside, invariants
from soak.commands import num_lines, start, within
from soak.damage import damage, files_of
from soak.plan import Disturbance
from soak.scene import Scene

from datalens.training.run_folder import RunFolder

HASHED = ("ledger.jsonl", "config.json", "directions.bin", "generator.safetensors", "load_generator.py")
"""Files of a release that are under a hash: no flipped bit of them may pass."""
DRAWN = "report.html"
"""Drawn from the others for people; nothing rests on it."""


def kill(scene: Scene) -> None:
    """SIGKILL once or twice, at any moment."""
    for _ in range(scene.rng.randint(1, 2)):
        scene.clear_unbegun()
        scene.kill()
    scene.conclude()


def interrupt(scene: Scene) -> None:
    """Ctrl-C or a termination request, sometimes twice: the run is saved and can go on."""
    number = scene.rng.choice((signal.SIGINT, signal.SIGTERM))
    twice = scene.rng.random() < 0.25

    def act(process: subprocess.Popen[str]) -> None:
        process.send_signal(number)
        if twice:
            time.sleep(0.02)
            process.send_signal(number)

    # once all is saved and the pages are drawn, the signal has its usual effect
    ended = scene.begin(scene.moment(begun=True), act, (0, 128 + number, -number))
    scene.look()
    if not twice and ended.status >= 0:
        scene.violations += invariants.nothing_half_written(scene.run)
    scene.violations += invariants.nothing_left(scene.place.temporary)
    scene.conclude()


def full_disk(scene: Scene) -> None:
    """From some moment on no file may grow beyond a size: a write fails half-way, as on a full disk."""
    room = int(10 ** scene.rng.uniform(1.5, 5))

    def act(process: subprocess.Popen[str]) -> None:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    scene.outcome.append(f"no file beyond {room} bytes")
    scene.begin(scene.moment(), act, (0, 2))
    if scene.run.exists() and not RunFolder.holds_run(scene.run):
        scene.violations.append("a folder without a run is left behind by a full disk")
    scene.look()
    scene.violations += invariants.nothing_half_written(scene.run)
    scene.conclude()


def damaged_run(scene: Scene) -> None:
    """One file of an interrupted run is damaged: it goes on without it, or is refused and goes on once restored."""
    scene.kill(begun=True)
    if not RunFolder.holds_run(scene.run):
        return scene.conclude()
    backup = scene.place.folder / "backup"
    shutil.copytree(scene.run, backup)
    path, how = damage(files_of(scene.run), scene.rng)
    scene.outcome.append(f"{path.relative_to(scene.run)} {how}")
    ended = start(scene.place, scene.place.resume())
    scene.violations += invariants.ended_well(ended, (0, 2))
    if ended.status == 0:
        scene.outcome.append("goes on")
        scene.seen.forget(path, scene.run, backup)
        scene.look()
        scene.verify((0, 1, 2))
        return None
    scene.outcome.append("refused")
    shutil.rmtree(scene.run)
    backup.rename(scene.run)
    scene.conclude()
    return None


def damaged_release(scene: Scene) -> None:
    """One file of a finished release is damaged: ``datalens verify`` says so."""
    if not scene.finish():
        return
    scene.judge_finished()
    release = RunFolder.open(scene.run).release
    hashed = scene.rng.random() < 0.6
    files = files_of(release, lambda path: path.name in HASHED if hashed else path.name != DRAWN)
    path, how = damage(files, scene.rng, ("cut", "flip", "remove") if hashed else ("cut", "remove"))
    scene.outcome.append(f"{path.name} {how}")
    scene.outcome.append(f"verify {scene.verify((1, 2))}")
    scene.violations += invariants.ended_well(
        within(scene.place, ["sample", str(scene.run), "-n", "2"]), (0, 2)
    )


def other_settings(scene: Scene) -> None:
    """A setting that a run keeps from its beginning: refused, and nothing of the run is touched."""
    scene.kill(begun=True)
    if RunFolder.holds_run(scene.run):
        method = "moments" if scene.plan.method != "moments" else "dp-merf"
        kept = (
            ("--config", str(scene.place.other_settings)),
            ("--recipe", "quick"),
            ("--num-teachers", "11"),
            ("--batch-size", "5"),
            ("--delta", "1e-6"),
            ("--insecure-seed", "77"),
            ("--num-records", "300"),
            ("--method", method),
        )
        option = scene.rng.choice((*kept, None))
        words = scene.place.train() if option is None else scene.place.resume(option)
        scene.outcome.append("begun again over it" if option is None else " ".join(option[:1]))
        _refused(scene, words)
    scene.conclude()


def other_data(scene: Scene) -> None:
    """Other records than the run began with: refused, and nothing of the run is touched."""
    scene.kill(begun=True)
    if RunFolder.holds_run(scene.run):
        _refused(scene, scene.place.resume_with_other_data())
    scene.conclude()


def new_terms(scene: Scene) -> None:
    """What may change in a run that goes on: it does, and what was charged stays charged."""
    scene.kill(begun=True)
    if not RunFolder.holds_run(scene.run):
        return scene.conclude()
    rng = scene.rng
    changes = rng.choice(
        (
            ("--epsilon", "60"),
            ("--epsilon", "40"),
            ("--num-steps", str(num_lines(scene.run) + rng.randint(0, 6))),
            ("--top-k", "4"),
            ("--noise-stddev", str(rng.choice((5, 50)))),
            ("--vote-threshold", "0.3"),
            ("--chunk-size", "5", "--checkpoint-every", "2"),
            ("--teacher-store", rng.choice(("memory", "disk"))),
        )
    )
    scene.outcome.append(" ".join(changes))
    ended = start(scene.place, scene.place.resume(changes))
    scene.judge(ended, (0, 2))
    scene.look()
    if ended.status == 0:
        scene.verify(words=["--replay"])
        scene.violations += invariants.nothing_left(scene.place.temporary)
        return None
    scene.outcome.append("refused")
    scene.conclude()
    return None


def _refused(scene: Scene, words: list[str]) -> None:
    before = invariants.tree(scene.run)
    scene.violations += invariants.ended_well(start(scene.place, words), (2,))
    scene.violations += invariants.untouched(before, invariants.tree(scene.run))


PROCEDURES: dict[Disturbance, Callable[[Scene], None]] = {
    Disturbance.KILL: kill,
    Disturbance.INTERRUPT: interrupt,
    Disturbance.FULL_DISK: full_disk,
    Disturbance.DAMAGED_RUN: damaged_run,
    Disturbance.DAMAGED_RELEASE: damaged_release,
    Disturbance.OTHER_SETTINGS: other_settings,
    Disturbance.OTHER_DATA: other_data,
    Disturbance.NEW_TERMS: new_terms,
    Disturbance.INSIDE: inside.inside,
}
