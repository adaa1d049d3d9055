"""A tiny, seeded network for the tests of the network."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from vit_demo.model import ViTConfig


@pytest.fixture
def tiny() -> ViTConfig:
    """16 x 16 pixels as 4 x 4 patches, 24-d, 2 blocks of 3 heads."""
    return ViTConfig(image_size=16, patch_size=4, num_classes=5, embed_dim=24, depth=2, num_heads=3)


@pytest.fixture
def randomise() -> Callable[..., nn.Module]:
    """Adds noise to every parameter, so that no zero bias, unit scale or empty token can hide a mistake."""

    def add_noise(module: nn.Module, std: float = 0.2) -> nn.Module:
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=std)
        return module.eval()

    return add_noise
