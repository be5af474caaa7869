"""What is said of a plan before a run begins."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from datalens.cli.output import Output
from datalens.errors import PrivacyWarning

if TYPE_CHECKING:
    from datalens.data.images import LabelledImages
    from datalens.methods.facts import MethodConfig
    from datalens.training.config import Config


@contextmanager
def plan_announced() -> Iterator[None]:
    """Nothing that :func:`announce_plan` warned of is warned of again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


def say_details(config: Config | MethodConfig, output: Output) -> None:
    """Where it runs and every setting, for those who asked for details."""
    if not output.verbose:
        return
    from datalens.training.parameters import flat
    from datalens.training.release import environment
    from datalens.training.sections import Section

    output.detail(
        "runs on "
        + ", ".join(f"{name} {value}" for name, value in environment(config.performance.device).items())
    )
    for name, value in flat(config).items():
        if not isinstance(value, Section):
            output.detail(f"{name.replace('__', '.')} = {value}")


def announce_plan(config: Config, data: LabelledImages, output: Output) -> None:
    """Say what the plan is; one that cannot be paid or leaves no signal is refused as when the run begins."""
    from datalens.training.facts import declared_records, require_public_classes
    from datalens.training.groups import slots_of_teacher
    from datalens.training.plan import check_plan, plan_signal

    num_records = declared_records(config.privacy, data)
    require_public_classes(config.privacy, data)
    of_groups = data.group_ids is not None
    plan, notes = check_plan(config, num_records, data.image_shape, of_groups=of_groups)
    for note in notes:
        output.warn(note)
    voting, privacy, signal = config.voting, config.privacy, plan_signal(config, plan)
    slots = slots_of_teacher(config, num_records, of_groups=of_groups)
    left = num_records - voting.num_teachers * slots
    promise = (
        f"epsilon {privacy.epsilon:g}, delta {privacy.delta:g}" if privacy.is_private else "no guarantee"
    )
    output.say(
        f"{config.recipe}: {promise}, {voting.num_teachers} teachers, {plan.num_steps} steps of "
        f"{voting.batch_size} images, noise {plan.mechanism.noise_in_votes:g} votes"
    )
    if config.warm_start.enabled:
        output.say(
            f"warm start: two noisy sums of the records before the first vote, with {config.warm_start.share:g} of "
            f"the budget, and {config.warm_start.steps} steps of the generator on images drawn from what they show"
        )
    if of_groups:
        output.say(f"each group goes to one teacher, and a teacher has {slots} slots")
    elif left > 0:
        output.say(f"{left} of {num_records} slots are left over: no teacher sees the records in them")
    output.say(
        f"{signal.verdict}: where all teachers agree a coordinate comes out right with chance {signal.right:.3f}, "
        f"wrong with {signal.wrong:.3f}; noise alone sets {signal.from_noise:.0%}"
    )
