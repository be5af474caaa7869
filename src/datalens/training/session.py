"""One run from its settings and data to a trained student: begin, resume, step, checkpoint, finish."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch

from datalens.data.images import LabelledImages
from datalens.errors import CheckpointError, ConfigError, RunError
from datalens.noise import NoiseSource, make_noise
from datalens.privacy.budget import Budget
from datalens.privacy.ledger import Ledger
from datalens.randomness import Streams
from datalens.student.latent import LatentSpace
from datalens.student.update import Student, StudentPlan
from datalens.teachers.ensemble import Diagnostics, TeacherEnsemble
from datalens.teachers.families import TeacherSettings, make_family
from datalens.teachers.partition import Partition
from datalens.teachers.shards import RecordShards
from datalens.training.algorithm import Parts, generator_step, replayed_step
from datalens.training.checkpoint import latest_checkpoint, save_checkpoint
from datalens.training.config import Config, LatentLaw
from datalens.training.directions import DirectionLog, DirectionRecord
from datalens.training.files import read_json, write_json
from datalens.training.plan import Plan, plan_releases
from datalens.training.run_folder import RunFolder
from datalens.version import __version__

CONFIG_FORMAT = "datalens-run/1"
"""What ``release/config.json`` says of itself."""


@dataclass(frozen=True)
class Progress:
    """Where a run stands; public.

    Attributes:
        step: generator steps done.
        num_steps: generator steps planned.
        epsilon_spent: of the steps done.
        epsilon: authorised.
        replayed: this step was released earlier and only caught up with.
    """

    step: int
    num_steps: int
    epsilon_spent: float
    epsilon: float
    replayed: bool = False


@dataclass(frozen=True)
class PublicFacts:
    """What everybody may know of a run; it fills ``release/config.json``.

    Attributes:
        config: the settings.
        image_shape: (C, H, W).
        classes: names of the classes, in the order of their numbers.
        classes_from_data: the class list was read off the data, and counts as public by declaration.
        data_name: name of a published data set, else "private".
        num_records: the public number of slots.
        noise_stddev: of every release.
        num_steps: planned.
        public_root: key of the public random streams.
    """

    config: Config
    image_shape: tuple[int, int, int]
    classes: tuple[str, ...]
    classes_from_data: bool
    data_name: str
    num_records: int
    noise_stddev: float
    num_steps: int
    public_root: bytes

    @property
    def student_plan(self) -> StudentPlan:
        """What the student is and how it learns."""
        settings, voting = self.config.student, self.config.voting
        return StudentPlan(
            image_shape=self.image_shape,
            latent=LatentSpace(
                settings.latent_dim, len(self.classes), settings.latent_law is LatentLaw.NORMAL
            ),
            hidden_units=settings.hidden_units,
            channels=settings.channels,
            jitter=settings.jitter,
            smoothing=settings.smoothing,
            batch_size=voting.batch_size,
            num_steps=self.num_steps,
            step_size=settings.step_size,
            learning_rate=settings.learning_rate,
            final_learning_rate=settings.final_learning_rate,
            beta1=settings.beta1,
            weight_average=settings.weight_average,
        )

    @property
    def streams(self) -> Streams:
        """The public random streams."""
        return Streams(self.public_root)

    def to_json(self) -> dict[str, Any]:
        """Plain values; :meth:`from_json` reads them back."""
        return {
            "format": CONFIG_FORMAT,
            "datalens": __version__,
            "image_shape": list(self.image_shape),
            "classes": list(self.classes),
            "classes_from_data": self.classes_from_data,
            "data": self.data_name,
            "num_records": self.num_records,
            "noise_stddev": self.noise_stddev,
            "num_steps": self.num_steps,
            "public_root": self.public_root.hex(),
            "config": self.config.to_json(),
        }

    @classmethod
    def from_json(cls, data: Any, source: Path) -> PublicFacts:
        """Read ``release/config.json``.

        Raises:
            RunError: it is not one, or from a newer version.
        """
        from datalens.training.config import parse_config

        try:
            if data["format"] != CONFIG_FORMAT:
                raise RunError(f"{source}: format {data['format']!r} is unknown; update datalens")
            channels, height, width = (int(size) for size in data["image_shape"])
            return cls(
                config=parse_config(data["config"]),
                image_shape=(channels, height, width),
                classes=tuple(str(name) for name in data["classes"]),
                classes_from_data=bool(data["classes_from_data"]),
                data_name=str(data["data"]),
                num_records=int(data["num_records"]),
                noise_stddev=float(data["noise_stddev"]),
                num_steps=int(data["num_steps"]),
                public_root=bytes.fromhex(data["public_root"]),
            )
        except (KeyError, TypeError, ValueError, ConfigError) as error:
            reason = " ".join(str(error).split())
            raise RunError(f"{source}: is not a run's settings ({reason:.120}); restore the file") from None


class Session:
    """A run in progress. Make one with :meth:`begin` or :meth:`resume`, then call :meth:`run`.

    Attributes:
        facts: what everybody may know.
        budget: what was authorised and spent.
        student: the generator in training.
        steps_done: generator steps done, replayed ones among them.
        notes: lines for the owner, such as checkpoints passed over.
    """

    def __init__(
        self,
        facts: PublicFacts,
        plan: Plan,
        data: LabelledImages,
        partition: Partition,
        private: Streams,
        ledger: Ledger,
        folder: RunFolder | None,
    ) -> None:
        config = facts.config
        self.facts = facts
        self.plan = plan
        self.folder = folder
        self.notes: list[str] = []
        self.steps_done = 0
        self.budget = Budget(ledger, plan.authorisation)
        self._ledger = ledger
        self._log = DirectionLog(folder.directions) if folder is not None else None
        self.records: list[DirectionRecord] = self._log.records if self._log is not None else []
        self.student = Student(facts.student_plan, facts.streams, config.performance.device)
        shards = RecordShards(
            torch.from_numpy(data.images),
            torch.from_numpy(data.labels),
            torch.from_numpy(partition.record_of_slot),
        )
        ensemble = TeacherEnsemble(
            make_family(config.teachers.kind, _teacher_settings(facts, partition)),
            shards,
            private,
            chunk_size=config.performance.chunk_size,
            device=config.performance.device,
        )
        self.parts = Parts(
            config=config,
            student=self.student,
            teachers=ensemble,
            mechanism=plan.mechanism,
            budget=self.budget,
            noise_for_step=_noise_for_step(config),
            record=self._record,
            diagnose=self._diagnose,
        )
        self.diagnostics: list[Diagnostics] = []

    # -- making one ---------------------------------------------------------------------------------------------

    @classmethod
    def begin(cls, config: Config, data: LabelledImages, root: Path | None) -> Session:
        """A new run; with ``root`` its folder is made, and removed again if the run cannot begin.

        Raises:
            DataLensError: settings or data that do not fit; nothing is left behind.
        """
        channels, height, width = data.image_shape
        plan = plan_releases(config, channels * height * width)
        seed = config.privacy.insecure_seed
        num_records = declared_records(config, data)
        public = Streams.from_entropy() if seed is None else Streams.from_insecure_seed(seed, "public")
        private = Streams.from_entropy() if seed is None else Streams.from_insecure_seed(seed, "private")
        partition = Partition.draw(
            num_records=num_records,
            num_teachers=config.voting.num_teachers,
            num_present=data.num_records,
            shard_size=config.voting.shard_size,
            rng=None if seed is None else private.numpy("slots"),
        )
        facts = PublicFacts(
            config=config,
            image_shape=data.image_shape,
            classes=data.classes,
            classes_from_data=data.classes_from_data,
            data_name=data.name if data.public else "private",
            num_records=num_records,
            noise_stddev=plan.noise_stddev,
            num_steps=plan.num_steps,
            public_root=public.root,
        )
        header = ledger_header(facts, plan, partition)
        if root is None:
            return cls(facts, plan, data, partition, private, Ledger.in_memory(header), None)
        folder = RunFolder.create(root)
        try:
            write_json(folder.secrets, {"private_root": private.root.hex(), "fingerprint": _fingerprint(data)})
            _save_partition(folder.partition, partition)
            ledger = Ledger.create(folder.ledger, header)
            write_json(folder.config, facts.to_json())
            return cls(facts, plan, data, partition, private, ledger, folder)
        except BaseException:
            folder.discard()
            raise

    @classmethod
    def resume(cls, root: Path, data: LabelledImages) -> Session:
        """A run that was interrupted, at its last good checkpoint; released steps after it are replayed.

        Raises:
            DataLensError: the folder lacks what is needed, or disagrees with the data or itself.
        """
        folder = RunFolder.open(root)
        facts = PublicFacts.from_json(read_json(folder.config), folder.config)
        if not folder.private.is_dir():
            raise RunError(f"{root}: its private/ is gone, so it cannot go on; sampling needs only release/")
        kept = read_json(folder.secrets)
        if kept.get("fingerprint") != _fingerprint(data):
            raise RunError(f"{root}: these are not the data of this run; resume with the same data")
        channels, height, width = facts.image_shape
        plan = plan_releases(facts.config, channels * height * width)
        ledger = Ledger.open(folder.ledger)
        try:
            session = cls(
                facts,
                plan,
                data,
                _load_partition(folder.partition),
                Streams(bytes.fromhex(kept["private_root"])),
                ledger,
                folder,
            )
            session._catch_up()
        except BaseException:
            ledger.close()
            raise
        return session

    # -- running ------------------------------------------------------------------------------------------------

    def run(
        self,
        *,
        tell: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Take the remaining steps; after each, ``tell`` is told and ``stop`` may end the run early.

        Returns:
            Whether all planned steps are done (or the budget has no room for another).
        """
        tell = tell or (lambda _: None)
        while self._next_step() < self.facts.num_steps and not self._exhausted():
            if stop():
                self.checkpoint()
                return False
            generator_step(self.parts, self._next_step())
            self.steps_done += 1
            if self.folder is not None and self.steps_done % self._checkpoint_every == 0:
                self.checkpoint()
            tell(self._progress())
        self.checkpoint()
        return True

    def checkpoint(self) -> None:
        """Save teachers and student under ``private/``; without a folder, nothing."""
        if self.folder is None:
            return
        tensors = {f"student/{name}": value for name, value in self.student.state_dict().items()}
        tensors |= {f"teachers/{name}": value for name, value in self.parts.teachers.state_dict().items()}
        index, digest = self._ledger.head
        meta = {"head": [index, digest], "last_step": self.records[-1].step if self.records else -1}
        save_checkpoint(self.folder.checkpoints, self.steps_done, tensors, meta)

    def close(self) -> None:
        """Give back ledger and files."""
        self._ledger.close()
        if self._log is not None:
            self._log.close()

    @property
    def ledger(self) -> Ledger:
        """The run's ledger."""
        return self._ledger

    @property
    def _checkpoint_every(self) -> int:
        return self.facts.config.performance.checkpoint_every

    def _progress(self, *, replayed: bool = False) -> Progress:
        return Progress(
            self.steps_done,
            self.facts.num_steps,
            self.budget.spent_epsilon(),
            self.budget.authorised_epsilon(),
            replayed,
        )

    def _next_step(self) -> int:
        """The number after every step that was ever charged: a charged step is never done twice."""
        charged = [line.body["note"].get("step", -1) for line in self._ledger.lines if line.kind == "release"]
        return max(charged, default=-1) + 1

    def _exhausted(self) -> bool:
        return self.plan.authorisation.is_private and self.budget.remaining_releases(self.plan.event) < 1

    def _record(self, record: DirectionRecord) -> None:
        if self._log is not None:
            self._log.append(record)
        else:
            self.records.append(record)

    def _diagnose(self, diagnostics: Diagnostics) -> None:
        self.diagnostics.append(diagnostics)
        if self.folder is not None:
            with self.folder.diagnostics.open("a") as file:
                file.write(json.dumps(asdict(diagnostics)) + "\n")

    def _catch_up(self) -> None:
        """Load the last good checkpoint, then replay what was released after it."""
        folder = self.folder
        if folder is None:
            raise RuntimeError("a run without a folder has nothing to catch up with")
        self._check_records()
        checkpoint = latest_checkpoint(folder.checkpoints)
        last_step = -1
        if checkpoint is not None:
            self.notes += checkpoint.passed_over
            index, digest = checkpoint.meta["head"]
            self._ledger.check_heads([(index, digest)])
            last_step = checkpoint.meta["last_step"]
            self.steps_done = checkpoint.step
            self.student.load_state_dict(_part(checkpoint.tensors, "student/"))
            self.parts.teachers.load_state_dict(_part(checkpoint.tensors, "teachers/"))
            if last_step not in {-1, *(record.step for record in self.records)}:
                raise CheckpointError(
                    f"{folder.directions}: ends before step {last_step}, which a checkpoint has seen; "
                    "restore the file"
                )
        for record in [record for record in self.records if record.step > last_step]:
            replayed_step(self.parts, record)
            self.steps_done += 1

    def _check_records(self) -> None:
        """Every recorded direction was paid for by a ledger line of its own."""
        paid = {line.hash for line in self._ledger.lines if line.kind == "release"}
        for record in self.records:
            if record.line_hash not in paid:
                raise CheckpointError(
                    f"step {record.step} was released but the ledger has no line for it; restore the ledger "
                    "that belongs to this run"
                )


def declared_records(config: Config, data: LabelledImages) -> int:
    """The public number of records: declared, or the file's own length where that is public.

    Raises:
        ConfigError: neither was declared.
    """
    if config.privacy.num_records is not None:
        return config.privacy.num_records
    if data.public or config.privacy.record_count_is_public:
        return data.num_records
    raise ConfigError(
        "the number of records is not public: give --num-records with an upper bound that may be known, "
        "or --public-record-count if the file's own length may be"
    )


def ledger_header(facts: PublicFacts, plan: Plan, partition: Partition) -> dict[str, Any]:
    """Line 0 of the ledger: what was authorised and on which terms. Nothing of it comes from records."""
    voting, privacy = facts.config.voting, facts.config.privacy
    return {
        "datalens": __version__,
        "method": "datalens",
        "authorisation": plan.authorisation.to_json(),
        "adjacency": "add-or-remove-one" if partition.from_os_entropy else "one-record-blanked",
        "mechanism": {
            "name": "topagg",
            "num_teachers": voting.num_teachers,
            "shard_size": partition.shard_size,
            "num_records": facts.num_records,
            "top_k": voting.top_k,
            "batch_size": voting.batch_size,
            "images_per_teacher": voting.images_per_teacher,
            "vote_threshold": plan.mechanism.vote_threshold,
            "noise_stddev": plan.noise_stddev,
            "noise": str(privacy.noise),
        },
        "publishable": privacy.is_publishable,
        "data": facts.data_name,
    }


def _noise_for_step(config: Config) -> Callable[[int], NoiseSource]:
    privacy = config.privacy
    if privacy.insecure_seed is None or not privacy.is_private:
        noise = make_noise(privacy.noise)
        return lambda step: noise
    streams = Streams.from_insecure_seed(privacy.insecure_seed, "noise")
    return lambda step: make_noise(privacy.noise, streams.key("noise", step))


def _teacher_settings(facts: PublicFacts, partition: Partition) -> TeacherSettings:
    teachers = facts.config.teachers
    return TeacherSettings(
        image_shape=facts.image_shape,
        num_classes=len(facts.classes),
        shard_size=partition.shard_size,
        batch_size=facts.config.voting.batch_size,
        num_steps=facts.num_steps,
        learning_rate=teachers.learning_rate,
        bandwidth=teachers.bandwidth,
        first_bandwidth=teachers.first_bandwidth,
        annealing=teachers.annealing,
    )


def _fingerprint(data: LabelledImages) -> str:
    """SHA-256 of the data; private, and only to notice a wrong file."""
    digest = hashlib.sha256(np.ascontiguousarray(data.images).tobytes())
    digest.update(np.ascontiguousarray(data.labels).tobytes())
    digest.update(json.dumps([list(data.images.shape), list(data.classes)]).encode())
    return digest.hexdigest()


def _save_partition(path: Path, partition: Partition) -> None:
    from datalens.training.files import write_atomically

    write_atomically(path, safetensors.numpy.save(partition.to_arrays()))


def _load_partition(path: Path) -> Partition:
    try:
        return Partition.from_arrays(safetensors.numpy.load_file(path))
    except (OSError, safetensors.SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); the run cannot go on without it") from None


def _part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
