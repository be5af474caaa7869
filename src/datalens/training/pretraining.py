"""An ordinary GAN on public images, without privacy: the very networks of a run, for it to begin with.

Nothing here sees the sensitive records, their number or which classes occur among them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from datalens.data.images import LabelledImages
from datalens.errors import ConfigError, NotBegunError
from datalens.randomness import Streams
from datalens.student.update import StudentPlan
from datalens.teachers.family import Shards
from datalens.teachers.paper import PaperTeachers
from datalens.training.ordinary_gan import BETA1, as_shard, gan_step, generator_adam
from datalens.training.public_init import Origin, PublicInit
from datalens.training.start_file import PublicStart, check_start


def pretrain(
    plan: StudentPlan,
    settings: PublicInit,
    images: LabelledImages,
    origin: Origin,
    public: Streams,
    device: torch.device | str = "cpu",
    *,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> PublicStart:
    """Train the student's generator against one of the paper's discriminators, on the ordinary GAN losses.

    Args:
        plan: of the run's student.
        settings: steps, batch size, learning rate.
        images: public, of the run's shape; each label is one of the run's classes.
        origin: where they come from; says whether the discriminator is kept.
        public: the public random streams of the run.
        device: where to compute.
        stop: asked before every step.
        tell: hears of every step, as (done, of how many).

    Guarantee: the result is a function of these arguments, the same to the last bit on one platform.

    Raises:
        ConfigError: numbers that are no longer finite.
        NotBegunError: it was asked to stop.
    """
    device = torch.device(device)
    generator = plan.generator(training=True)
    generator.inner.init_weights(public.torch("public-init-generator"))
    generator.to(device).train()
    adam = generator_adam(generator, settings.learning_rate)
    family = PaperTeachers(
        plan.image_shape, plan.latent.num_classes, learning_rate=settings.learning_rate, beta1=BETA1
    )
    state = family.init(1, public.torch("public-init-discriminator"), device)
    for step in range(settings.steps):
        if stop():
            raise NotBegunError("stopped before the run had begun: nothing was written or charged")
        latents_BZ, labels_B = plan.latent.batch(
            settings.batch_size, public.torch("public-init-latents", step)
        )
        shard = _minibatch(images, settings.batch_size, public.torch("public-init-images", step), device)
        state = gan_step(generator, adam, family, state, shard, latents_BZ.to(device), labels_B)
        tell(step + 1, settings.steps)
    kept = {name: state[name] for name in family.network.shapes()} if origin.discriminators else None
    start = PublicStart(origin, generator.state_dict(), kept)
    try:
        check_start(start, plan)
    except ValueError as error:
        raise ConfigError(
            f"public_init.learning_rate = {settings.learning_rate:g}: training on the public images failed "
            f"({error}); use a smaller one"
        ) from None
    return start


def _minibatch(images: LabelledImages, batch_size: int, rng: torch.Generator, device: torch.device) -> Shards:
    """Public images drawn with replacement, as the shard of a single teacher."""
    rows = torch.randint(images.num_records, (batch_size,), generator=rng).numpy()
    chosen = (torch.from_numpy(part[rows]).to(device) for part in (images.images, images.labels))
    return as_shard(*chosen)
