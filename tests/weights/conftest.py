"""Random peers that stand in for public checkpoints: their structure, small random weights, no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import huggingface_hub
import pytest
import timm
import torch
from safetensors.torch import save
from torch import nn

from vit_demo.weights import custom_model

from .hub_server import HubServer


@pytest.fixture
def randomise() -> Callable[[nn.Module], nn.Module]:
    """Gives every parameter a value of its own, so that nothing is right by being zero or one, in eval mode."""

    def fill(model: nn.Module) -> nn.Module:
        with torch.no_grad():
            for name, parameter in sorted(model.named_parameters()):
                nn.init.normal_(parameter, mean=1.0 if parameter.ndim == 1 and "norm" in name else 0.0, std=0.05)
        return model.eval()

    return fill


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """A Hub on this machine, an empty cache, and nothing remembered of any other."""
    server = HubServer()
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)  # as a test of the page may have set it
    monkeypatch.setattr("time.sleep", lambda _: None)  # between one attempt and the next
    custom_model._read_repository.cache.clear()
    yield server
    server.close()


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
