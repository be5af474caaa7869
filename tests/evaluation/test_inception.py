"""Inception features come from a file that the user has, read as plain tensors or refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from datalens.errors import ConfigError, DataError
from datalens.evaluation import inception as module
from datalens.evaluation.inception import InceptionExtractor, find_weights, load_inception
from datalens.models.inception import InceptionKind, InceptionV3


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights under the names that torch-fidelity uses."""
    torch_rng = torch.Generator().manual_seed(0)
    state = InceptionV3(InceptionKind.TENSORFLOW).state_dict()
    for name, tensor in state.items():
        if tensor.ndim > 1:
            tensor.normal_(0, (2 / tensor[0].numel()) ** 0.5, generator=torch_rng)
        elif name == "fc.bias":
            tensor.normal_(generator=torch_rng)
    path = tmp_path_factory.mktemp("weights") / "inception.pth"
    torch.save(state, path)
    return path


@pytest.fixture(scope="module")
def extractor(weights: Path) -> InceptionExtractor:
    return load_inception(weights, layer=64)


def _colour(num: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (num, 3, 32, 32), dtype=np.uint8)


@pytest.mark.parametrize("layer", [64, 192, 768, 2048])
def test_case_r73_all_feature_layers_work(weights: Path, layer: int) -> None:
    found = load_inception(weights, layer=layer).extract(_colour(3), batch_size=2)
    assert found.features.shape == (3, layer)
    assert np.isfinite(found.features).all()
    assert found.features.std() > 0
    np.testing.assert_allclose(np.exp(found.log_probabilities).sum(axis=1), 1.0)
    assert "299x299" in found.resize


def test_case_r55_grey_images_are_repeated_and_it_is_said(extractor: InceptionExtractor) -> None:
    grey = _colour(2)[:, :1]
    first = extractor.extract(grey)
    assert first.channel_repeat == 3
    for form in (grey[:, 0], grey[:, 0, :, :, None], np.repeat(grey, 3, axis=1)):
        assert np.array_equal(extractor.extract(form).features, first.features)
    assert extractor.extract(_colour(1)).channel_repeat == 1


def test_case_r57_an_undeclared_range_is_refused(extractor: InceptionExtractor) -> None:
    unit = _colour(1) / 255.0
    assert np.array_equal(extractor.extract(unit, "unit").features, extractor.extract(_colour(1)).features)
    with pytest.raises(DataError, match="undeclared"):
        extractor.extract(unit)


def test_both_kinds_of_file_and_both_kinds_of_weights(weights: Path, tmp_path: Path) -> None:
    state = torch.load(weights, weights_only=True)
    save_file(state, tmp_path / "same.safetensors")
    assert load_inception(tmp_path / "same.safetensors").digest == load_inception(weights).digest
    state |= {"fc.weight": torch.zeros(1000, 2048), "fc.bias": torch.zeros(1000)}
    save_file(state | {"AuxLogits.fc.bias": torch.zeros(3)}, tmp_path / "other.safetensors")
    other = load_inception(tmp_path / "other.safetensors")
    assert other.net.kind is InceptionKind.TORCHVISION
    assert other.digest != load_inception(weights).digest


def test_code_in_a_file_is_not_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    for name, write in (("plain", pickle.dump), ("zipped", torch.save)):
        with (tmp_path / f"{name}.pth").open("wb") as file:
            write({"fc.weight": Trap()}, file)
        with pytest.raises(DataError, match="not a file of plain weights"):
            load_inception(tmp_path / f"{name}.pth")
    assert not (tmp_path / "sprung").exists()


def test_other_files_are_refused_in_one_line(tmp_path: Path) -> None:
    torch.save({"fc.weight": torch.zeros(1008, 2048)}, tmp_path / "part.pth")
    torch.save({"weight": torch.zeros(3)}, tmp_path / "strange.pth")
    torch.save([1], tmp_path / "list.pth")
    (tmp_path / "empty.safetensors").touch()
    for name, rule in (
        ("none.pth", "no such file; get torch-fidelity's weights-inception-2015-12-05"),
        ("part.pth", "do not fit"),
        ("strange.pth", "1008 or 1000 outputs"),
        ("list.pth", "other things than weights"),
        ("empty.safetensors", "not a file of plain weights"),
    ):
        with pytest.raises(DataError, match=rule) as caught:
            load_inception(tmp_path / name)
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="64, 192, 768, 2048"):
        load_inception(tmp_path / "part.pth", layer=100)


def test_an_old_pytorch_gets_safetensors_only(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.torch, "__version__", "2.5.1+cpu")
    with pytest.raises(DataError, match=r"give \.safetensors"):
        load_inception(weights)


def test_weights_are_found_where_downloads_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.torch.hub, "get_dir", lambda: str(tmp_path))
    with pytest.raises(DataError, match=f"put it into {tmp_path}/checkpoints"):
        find_weights()
    (tmp_path / "checkpoints").mkdir()
    for name in reversed(module.KNOWN_FILES):
        (tmp_path / "checkpoints" / name).touch()
        assert find_weights().name == name
