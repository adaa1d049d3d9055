"""Small models with random weights in the formats of timm and transformers, and a Hub on this machine."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import timm
import torch
import transformers
from safetensors.torch import save
from torch import nn

from .hub_server import HubServer, served
from .model_folder import PREPROCESSOR, WEIGHTS_FILE, write_files


@pytest.fixture
def randomise() -> Callable[[nn.Module], nn.Module]:
    """Gives every parameter a random value, so that no test passes because of zeros and ones; sets eval mode."""

    def fill(model: nn.Module) -> nn.Module:
        with torch.no_grad():
            for name, parameter in sorted(model.named_parameters()):
                nn.init.normal_(parameter, mean=1.0 if parameter.ndim == 1 and "norm" in name else 0.0, std=0.05)
        return model.eval()

    return fill


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """A Hub on this machine, with empty caches."""
    monkeypatch.setattr("huggingface_hub.utils._http.time", SimpleNamespace(sleep=lambda _: None))  # between attempts
    with served(tmp_path / "cache") as server:
        yield server


class Bundle(NamedTuple):
    """A small ViT as timm would publish it."""

    model: nn.Module
    files: dict[str, bytes]


@pytest.fixture
def published(randomise: Callable[[nn.Module], nn.Module]) -> Bundle:
    """timm's ViT-Ti/16 with one block, for images of 64 pixels and three classes."""
    arguments = {"img_size": 64, "depth": 1}
    model = randomise(timm.create_model("vit_tiny_patch16_224", num_classes=3, **arguments))
    config = {
        "architecture": "vit_tiny_patch16_224",
        "num_classes": 3,
        "global_pool": "token",
        "model_args": arguments,
        "pretrained_cfg": {
            "input_size": [3, 64, 64],
            "interpolation": "bilinear",
            "crop_pct": 0.8,
            "mean": [0.1, 0.2, 0.3],
            "std": [0.4, 0.5, 0.6],
        },
        "label_names": ["cat", "dog", "cat"],
    }
    return Bundle(model, {"config.json": json.dumps(config).encode(), "model.safetensors": save(model.state_dict())})


@pytest.fixture(scope="session")
def transformers_files():
    """A small transformers ViT, as ``save_pretrained`` writes it."""
    config = transformers.ViTConfig(
        hidden_size=24, num_hidden_layers=1, num_attention_heads=3, intermediate_size=48, image_size=32, patch_size=8,
        id2label={i: f"thing {i}" for i in range(4)},
    )  # fmt: skip
    model = transformers.ViTForImageClassification(config)
    return {
        "config.json": json.dumps(config.to_dict()).encode(),
        "preprocessor_config.json": json.dumps(PREPROCESSOR).encode(),
        WEIGHTS_FILE: save(model.state_dict()),
    }


@pytest.fixture
def timm_folder(tmp_path, published):
    return write_files(tmp_path, published.files)


@pytest.fixture
def transformers_folder(tmp_path, transformers_files):
    return write_files(tmp_path, transformers_files)


@pytest.fixture
def headless(tmp_path, randomise):
    """A folder with a model without a classifier head."""
    config = transformers.Dinov2WithRegistersConfig(
        hidden_size=48, num_hidden_layers=2, num_attention_heads=3, image_size=28, patch_size=7
    )
    randomise(transformers.Dinov2WithRegistersModel(config)).save_pretrained(tmp_path / "headless")
    return str(tmp_path / "headless")
