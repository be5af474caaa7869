"""Inception v3 is the network that others mean: its numbers on fixed weights are theirs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datalens.models.inception import InceptionKind, InceptionV3, scaled_input

PLACES = [0, 7, -1]


def filled(net: InceptionV3) -> InceptionV3:
    """The network with weights that a formula gives."""
    rng, state = np.random.default_rng(0), {}
    for name, tensor in sorted(net.state_dict().items()):
        shape = tuple(tensor.shape)
        if name.endswith("num_batches_tracked"):
            state[name] = torch.zeros_like(tensor)
            continue
        if name.endswith("running_var"):
            values = rng.uniform(0.5, 1.5, shape)
        elif name.endswith("bn.weight"):
            values = rng.uniform(0.8, 1.2, shape)
        elif len(shape) == 1:
            values = rng.normal(0, 0.1, shape)
        else:
            values = rng.normal(0, 1.5 / np.sqrt(np.prod(shape[1:])), shape)
        state[name] = torch.from_numpy(values.astype(np.float32))
    net.load_state_dict(state)
    return net.eval()


def picture() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).integers(0, 256, (1, 3, 32, 40), dtype=np.uint8)).float()


@torch.inference_mode()
def test_case_r73_every_layer_gives_what_torch_fidelity_gives() -> None:
    """Expected values: torch-fidelity 0.4.0's own extractor with these weights on this image."""
    net = filled(InceptionV3(InceptionKind.TENSORFLOW))
    expected = {
        64: ([0.38534, 0.01286, 0.42673], 0.48797),
        192: ([0.15498, 0.38952, 0.67167], 0.95182),
        768: ([0.03577, 6.11416, 8.82678], 3.45733),
        2048: ([1.02019, 5.76777, 41.61596], 6.80216),
    }
    for layer, (some, mean) in expected.items():
        features, logits = net(picture(), layer)
        assert features.shape == (1, layer)
        assert features[0, PLACES].tolist() == pytest.approx(some, abs=2e-4)
        assert float(features.double().mean()) == pytest.approx(mean, abs=1e-4)
    assert logits.shape == (1, 1008)
    assert logits[0, PLACES].tolist() == pytest.approx([9.99074, -20.17182, -12.7053], abs=1e-3)


@torch.inference_mode()
def test_the_other_graph_gives_what_torchvision_gives() -> None:
    """Expected values: torchvision 0.28.0's inception_v3 with these weights on this image, scaled alike."""
    _, logits = filled(InceptionV3(InceptionKind.TORCHVISION))(picture())
    assert logits.shape == (1, 1000)
    assert logits[0, PLACES].tolist() == pytest.approx([10.32966, 24.84995, -20.45326], abs=1e-3)
    assert float(logits.double().mean()) == pytest.approx(-0.20976, abs=1e-3)


def test_scaling_keeps_the_first_pixel_and_the_range() -> None:
    image = picture()
    scaled = scaled_input(image, InceptionKind.TENSORFLOW)
    assert scaled.shape == (1, 3, 299, 299)
    assert torch.equal(scaled[..., 0, 0], (image[..., 0, 0] - 128) / 128)
    for kind in InceptionKind:
        assert scaled_input(image, kind).abs().max() <= 1
