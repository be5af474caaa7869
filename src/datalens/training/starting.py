"""What a run starts from: public images or a run on public images, looked at and turned into weights.

The sensitive records are asked one thing only: how many are among the public images. Where most are, it is refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from datalens.data import list_sources
from datalens.data.fitting import fitted
from datalens.data.images import LabelledImages
from datalens.errors import ConfigError, DataError, RunError
from datalens.randomness import Streams
from datalens.teachers.families import TeacherKind
from datalens.training.facts import PublicFacts
from datalens.training.pretraining import pretrain
from datalens.training.private_files import Secrets, fingerprint
from datalens.training.public_init import Origin, PublicInit, StartSource
from datalens.training.release import read_facts, read_generator
from datalens.training.run_folder import RunFolder
from datalens.training.start_file import PublicStart, read_start

PublicSource = LabelledImages | str | os.PathLike[str]
"""Public images, or the folder of a run on public images."""
MakeStart = Callable[[PublicFacts], PublicStart]


def start_maker(
    source: PublicSource,
    data: LabelledImages,
    *,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[int, int], None] | None = None,
) -> MakeStart:
    """How the public start of a run is made, once its public facts are known.

    Args:
        source: where it comes from.
        data: the sensitive records, most of which may not be among them; nothing else is asked of them.
        stop: ends a training on public images.
        tell: hears of every step of it, as (done, of how many).

    Raises:
        DataLensError: a source that is not public, or holds most of the sensitive records themselves.
    """
    tell = tell or (lambda done, total: None)
    if isinstance(source, LabelledImages):
        if not source.public:
            raise ConfigError(
                f"public_init {source.name}: these images are not declared public; say so with "
                "--public-init-is-public (public=True in Python) if they are, or give others"
            )
        refuse_covering(source, data)
        return lambda facts: start_of_images(facts, source, stop, tell)
    folder = RunFolder.open(Path(source))
    theirs = read_facts(folder)
    _refuse_private(folder, theirs, data)
    return lambda facts: start_of_run(facts, folder, theirs)


def require_used(config_start: PublicInit) -> None:
    """Refuse settings of a public start where there is none.

    Raises:
        ConfigError: says which.
    """
    if config_start != PublicInit():
        raise ConfigError(
            "[public_init] (public_init): has settings of a public start, and there is none; give --public-init "
            "SOURCE (public_init=... in Python), or leave the section out"
        )


def start_of(folder: RunFolder, facts: PublicFacts) -> PublicStart | None:
    """The public start that lies in a run's folder; None where the run has none.

    Raises:
        CheckpointError: it should be there and cannot be used.
    """
    return None if facts.start is None else read_start(folder.public_init, facts.start, facts.student_plan)


def start_of_images(
    facts: PublicFacts,
    images: LabelledImages,
    stop: Callable[[], bool],
    tell: Callable[[int, int], None],
) -> PublicStart:
    """A start trained on public images, made to the run's size and classes.

    Raises:
        DataLensError: the training fails or is stopped.
    """
    fitting = fitted(images, facts.image_shape)
    same = set(images.classes) == set(facts.classes)
    public = facts.streams
    labelled = _in_order(fitting, facts.classes) if same else _by_lot(fitting, facts.classes, public)
    origin = Origin(StartSource.IMAGES, _name_of(images.name, _digest_of(images)), same, _trains(facts))
    config = facts.config
    device = config.performance.device
    return pretrain(
        facts.student_plan, config.public_init, labelled, origin, public, device, stop=stop, tell=tell
    )


def start_of_run(facts: PublicFacts, folder: RunFolder, theirs: PublicFacts) -> PublicStart:
    """A start from the released generator of a run on public images, and its own public discriminator if it had one.

    Raises:
        DataLensError: other networks than this run's, or files that cannot be read.
    """
    for name, there, here in _differences(theirs, facts):
        raise ConfigError(
            f"public_init {folder.root}: {name} is {there} there and {here} here; give a run with the same, or set it"
        )
    if not folder.generator.is_file():
        raise RunError(f"public_init {folder.root}: the run has no generator yet; resume it first")
    digest = hashlib.sha256(folder.generator.read_bytes()).hexdigest()
    generator = read_generator(folder.generator, theirs).state_dict()
    own = start_of(folder, theirs) if _trains(facts) else None
    discriminator = None if own is None else own.discriminator
    same = theirs.classes == facts.classes
    origin = Origin(StartSource.RUN, _name_of(theirs.data_name, digest), same, discriminator is not None)
    return PublicStart(origin, generator, discriminator)


def refuse_covering(images: LabelledImages, data: LabelledImages) -> None:
    """Refuse public images among which more than half of the sensitive records are, in whatever order or size.

    Raises:
        DataError: they are. Whether it is raised depends on the records: see ``docs/privacy.md``, 9.1.
    """
    if 2 * _num_shared(images, data) > data.num_records:
        raise DataError(
            f"public_init {images.name}: holds the very images that are to be protected, more than half of them; "
            "give other, public ones"
        )


def note_of_shared(images: LabelledImages, data: LabelledImages) -> str | None:
    """One line for the owner where some records are among the public images, or None. Private: it counts records."""
    shared = _num_shared(images, data)
    if not shared:
        return None
    return (
        f"public_init {images.name}: {shared} of {data.num_records} records are among the public images, and what "
        "the start shows of those is not protected; leave them out of the public images unless they are public"
    )


def _num_shared(images: LabelledImages, data: LabelledImages) -> int:
    """How many records are, bit for bit, public images made to their size. Private."""
    known = set(_digests(fitted(images, data.image_shape)))
    return sum(digest in known for digest in _digests(data))


def _refuse_private(folder: RunFolder, theirs: PublicFacts, data: LabelledImages) -> None:
    """A run that learned from people, or from the very records that are to be protected."""
    if theirs.data_name == "private":
        raise RunError(
            f"public_init {folder.root}: that run learned from people's data, and is public at no epsilon; "
            "give a run on public images (--public-data)"
        )
    kept = Secrets.read(folder.secrets).fingerprint if folder.secrets.is_file() else ""
    if kept == fingerprint(data) or (data.public and theirs.data_name == data.name):
        raise DataError(
            f"public_init {folder.root}: that run learned from the very images that are to be protected; give "
            "another one"
        )


def _differences(theirs: PublicFacts, ours: PublicFacts) -> Iterator[tuple[str, Any, Any]]:
    """What keeps one run's generator from being another's."""
    pairs = [
        ("the images' (channels, height, width)", theirs.image_shape, ours.image_shape),
        ("the number of classes", len(theirs.classes), len(ours.classes)),
    ]
    for name in ("latent_dim", "latent_law", "hidden_units", "channels", "smoothing"):
        there, here = (getattr(facts.config.student, name) for facts in (theirs, ours))
        pairs.append((f"student.{name}", there, here))
    return (pair for pair in pairs if pair[1] != pair[2])


def _trains(facts: PublicFacts) -> bool:
    """Whether the teachers are networks that can start from weights."""
    return facts.config.teachers.kind is TeacherKind.PAPER


def _in_order(images: LabelledImages, classes: tuple[str, ...]) -> LabelledImages:
    place = np.array([classes.index(name) for name in images.classes], np.int64)
    return replace(images, labels=place[images.labels], classes=classes)


def _by_lot(images: LabelledImages, classes: tuple[str, ...], public: Streams) -> LabelledImages:
    rng = public.torch("public-init-labels")
    labels = torch.randint(len(classes), (images.num_records,), generator=rng).numpy()
    return replace(images, labels=labels, classes=classes)


def _name_of(name: str, digest: str) -> str:
    """What is published: the name of a known data set, else a digest, since a folder's name is the owner's own."""
    known = {source.name for source in list_sources()}
    return name if name in known else f"SHA-256 {digest:.16}"


def _digest_of(images: LabelledImages) -> str:
    """Of public images, in whatever order, in hex."""
    return hashlib.sha256(b"".join(sorted(_digests(images)))).hexdigest()


def _digests(images: LabelledImages) -> Iterator[bytes]:
    for image in images.images:
        yield hashlib.blake2b(np.ascontiguousarray(image).tobytes(), digest_size=16).digest()
