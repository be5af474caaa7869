"""The parts of a run that are made from its settings: teachers with their shards, and the noise of each step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from datalens.data.images import LabelledImages
from datalens.distributed.ranks import Ranks
from datalens.noise import NoiseSource, make_noise
from datalens.randomness import Streams
from datalens.teachers.families import TeacherSettings, make_family
from datalens.teachers.groups import SlotMap
from datalens.teachers.room import chunk_size_for, make_store, state_bytes
from datalens.teachers.shards import RecordShards
from datalens.training.config import Config, Performance
from datalens.training.crew import Crew
from datalens.training.facts import PublicFacts, declared_records, require_public_classes, shown_of
from datalens.training.groups import draw_slots
from datalens.training.mechanisms import set_compression
from datalens.training.plan import Plan, check_plan
from datalens.training.start_file import PublicStart


def make_teachers(
    facts: PublicFacts,
    data: LabelledImages,
    partition: SlotMap,
    private: Streams,
    performance: Performance | None = None,
    folder: Path | None = None,
    ranks: Ranks | None = None,
    start: PublicStart | None = None,
) -> Crew:
    """This rank's teachers of a run, each with its shard, as they stand before the first step. Private.

    Spans are cut where one process cuts its chunks, so that every chunk has the same shape on any number of ranks.

    Args:
        facts: of the run.
        data: the sensitive records.
        partition: their slots.
        private: private random streams.
        performance: in place of the run's own.
        folder: where states that do not fit into memory go; private. None for the system's temporary folder.
        ranks: of the run, all of whom must be here at once; a single process unless given.
        start: public weights; every teacher that trains begins with those of its discriminator, if it has one.
    """
    ranks = ranks or Ranks.alone()
    performance = performance or facts.config.performance
    settings = teacher_settings(
        facts.config, facts.image_shape, len(facts.classes), partition.shard_size, facts.num_steps
    )
    shards = RecordShards(
        *data.tensors(),
        torch.from_numpy(partition.record_of_slot),
    )
    if start is not None:
        settings = replace(settings, start=start.discriminator)
    family = make_family(facts.config.teachers.kind, settings)
    device = torch.device(ranks.device(performance.device))
    num_teachers, voting = partition.num_teachers, facts.config.voting
    a_state = state_bytes(family.init(1, torch.Generator(), torch.device("cpu")))
    a_vote = 4 * voting.batch_size * math.prod(facts.image_shape)
    on_a_rank = -(-num_teachers // ranks.world_size)
    suits = performance.chunk_size or chunk_size_for(a_state, a_vote, on_a_rank, device)
    chunk_size = -ranks.largest(-suits)
    first, last = span = ranks.span(num_teachers, chunk_size)
    store = make_store(
        performance.teacher_store,
        a_state * (last - first),
        performance.teacher_memory,
        device,
        folder,
        ranks.place.local_size,
    )
    crew = Crew(family, shards, private, chunk_size, device, store, span, ranks)
    set_compression(crew, voting)
    return crew


def teacher_settings(
    config: Config, image_shape: tuple[int, int, int], num_classes: int, shard_size: int, num_steps: int
) -> TeacherSettings:
    """What a run's settings, its data and its plan say to teachers of any kind."""
    teachers = config.teachers
    return TeacherSettings(
        image_shape=image_shape,
        num_classes=num_classes,
        shard_size=shard_size,
        batch_size=config.voting.batch_size,
        num_steps=num_steps,
        learning_rate=teachers.learning_rate,
        bandwidth=teachers.bandwidth,
        first_bandwidth=teachers.first_bandwidth,
        annealing=teachers.annealing,
    )


def noise_for_step(config: Config) -> Callable[[int], NoiseSource]:
    """From a step to its noise source; with an insecure seed every step has a stream of its own."""
    privacy = config.privacy
    if privacy.insecure_seed is None or not privacy.adds_noise:
        noise = make_noise(privacy.noise)
        return lambda step: noise
    streams = Streams.from_insecure_seed(privacy.insecure_seed, "noise")
    return lambda step: make_noise(privacy.noise, streams.key("noise", step))


def draw_run(
    config: Config, data: LabelledImages, *, signal_matters: bool = True
) -> tuple[PublicFacts, Plan, SlotMap, Streams, tuple[str, ...]]:
    """What is decided when a run begins: public facts, plan, slot map, private random streams, and warnings.

    Raises:
        DataLensError: settings and data that do not fit.
    """
    num_records = declared_records(config.privacy, data)
    require_public_classes(config.privacy, data)
    plan, warnings = check_plan(
        config,
        num_records,
        data.image_shape,
        signal_matters=signal_matters,
        of_groups=data.group_ids is not None,
    )
    seed = config.privacy.insecure_seed
    public = Streams.from_entropy() if seed is None else Streams.from_insecure_seed(seed, "public")
    private = Streams.from_entropy() if seed is None else Streams.from_insecure_seed(seed, "private")
    voting = config.voting
    partition = draw_slots(
        data, num_records, voting.num_teachers, voting.shard_size, private, seeded=seed is not None
    )
    facts = PublicFacts(
        config=config,
        **shown_of(data),
        num_records=num_records,
        noise_stddev=plan.noise_stddev,
        num_steps=plan.num_steps,
        public_root=public.root,
    )
    return facts, plan, partition, private, warnings
