"""DC-GAN learns from the records themselves, promises nothing, and goes on from its state."""

from __future__ import annotations

import pytest
import torch
from baseline_scene import context_for, same_state, shapes, size_of

from datalens.baselines.dcgan import DcganSettings
from datalens.errors import CheckpointError, ConfigError
from datalens.training.sections import Privacy

SMALL = {"latent_dim": 4, "hidden_units": 32, "channels": 8}
OPEN = Privacy(noise="none")


def begin(steps: int = 3):
    records = shapes()
    settings = DcganSettings(num_steps=steps, batch_size=16, critic_channels=4, learning_rate=1e-3, **SMALL)
    method = settings.plan(OPEN, size_of(records))
    assert method.planned() == () and method.num_steps == steps
    return method.begin(context_for(records, OPEN, ()))


def test_it_is_refused_where_privacy_is_asked_for() -> None:
    with pytest.raises(ConfigError, match="'dc-gan' has no privacy: say so with --noise none"):
        DcganSettings().plan(Privacy(), size_of(shapes()))


def test_both_networks_learn_and_the_images_are_images() -> None:
    learner = begin()
    before = learner.state_dict()
    learner.step(0)
    after = learner.state_dict()
    moved = {name.split("/")[1] for name in before if not torch.equal(before[name], after[name])}
    assert moved == {"generator", "discriminator"}
    generator = learner.generator()
    images = generator(torch.zeros(2, 4 + 7), torch.tensor([0, 1]))
    assert images.shape == (2, 1, 16, 16) and 0 <= float(images.min()) <= float(images.max()) <= 1


def test_a_learner_that_goes_on_is_the_one_that_never_stopped() -> None:
    whole, first, second = begin(), begin(), begin()
    for step in range(3):
        whole.step(step)
    first.step(0)
    second.load_state_dict(first.state_dict())
    second.step(1)
    second.step(2)
    assert same_state(whole.state_dict(), second.state_dict())


def test_a_state_of_other_networks_is_refused_in_one_line() -> None:
    learner = begin()
    state = learner.state_dict()
    state["module/generator/inner.hidden.weight"] = torch.zeros(2, 2)
    with pytest.raises(CheckpointError, match="of other networks"):
        learner.load_state_dict(state)
