"""A tiny network of random weights, and a folder of pictures of its classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import vit_demo
from vit_demo.model import ViT, ViTConfig

LABELS = ["cat", "dog", "fish"]


@pytest.fixture
def explainer() -> vit_demo.Explainer:
    torch.manual_seed(1)
    model = ViT(ViTConfig(image_size=16, patch_size=4, num_classes=3, embed_dim=24, depth=2, num_heads=3)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return vit_demo.Explainer(model, labels=LABELS, transform=to_input)


def to_input(picture: Image.Image) -> torch.Tensor:
    """The picture in 16 x 16 pixels, from -1 to 1."""
    small = np.asarray(picture.resize((16, 16)), np.float32)
    return torch.from_numpy(small / 127.5 - 1).permute(2, 0, 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve pictures of noise, 16 x 16, in folders of three classes."""
    numbers = np.random.default_rng(0)
    for index in range(12):
        path = tmp_path / "pictures" / LABELS[index % 3] / f"{index:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(numbers.integers(0, 256, (16, 16, 3), np.uint8)).save(path)
    return tmp_path / "pictures"
