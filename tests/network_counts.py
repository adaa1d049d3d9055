"""Parameters and operations of networks, counted on the modules themselves, for the tests of the section Build."""

from dataclasses import replace
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import VIT_TINY
from vit_demo.web.catalog.menu import starting_points

CHANGES: tuple[dict[str, Any], ...] = (
    {"pool": "mean", "class_token": False, "pos_embed": "sincos"},
    {"pool": "cls+mean", "num_classes": 7, "depth": 3},
    {"pool": "all", "final_norm": False, "qkv_bias": False},
    {"pool": "cls+next", "num_registers": 1, "layer_scale": 0.1},
    {"num_registers": 4, "pos_embed_prefix": False, "num_classes": 0, "mlp_ratio": 2.7},
    {"image_size": 96, "patch_size": 8, "in_channels": 1, "embed_dim": 60, "num_heads": 5, "projection": "per_head"},
    {"pos_embed_grid": 20, "depth": 1},
)
"""Fields that differ from ViT-Tiny, so that every field is changed at least once."""

INVALID: tuple[dict[str, Any], ...] = (
    {"num_heads": 5},
    {"image_size": 225},
    {"patch_size": 15},
    {"class_token": False},
    {"pool": "cls+next"},
    {"depth": 0},
    {"num_classes": -1},
    {"in_channels": 1.5},
)


def counted(config: ViTConfig, patch_size: int) -> dict[str, int]:
    """Parameters, and multiply-accumulates of one pass: half of what torch counts, which counts both operations."""
    is_resampled = patch_size != config.patch_size
    with torch.device("cpu" if is_resampled else "meta"):
        model = ViT(config).eval()
        images = torch.zeros(1, config.in_channels, config.image_size, config.image_size)
    with torch.no_grad():
        if is_resampled:
            model.patch_embed.kernels.keep()
            model.pos_embeds.keep()
            model(images, patch_size=patch_size)  # resamples the kernel, which is no part of the passes that follow
        # Written out, because the counter does not know every fused kernel of attention.
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            model(images, patch_size=patch_size)
    flops = counter.get_total_flops()
    assert flops % 2 == 0
    tokens = config.num_prefix_tokens + (config.image_size // patch_size) ** 2
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "operations": flops // 2,
        "tokens": tokens,
        "attention_bytes": 4 * config.num_heads * tokens**2,
    }


def networks() -> dict[str, tuple[ViTConfig, int]]:
    """All starting points and other networks, by their titles, with their patch sizes."""
    start = starting_points()
    found = {
        entry["title"]: (ViTConfig(**{**start["defaults"], **entry["config"]}), entry["patch_size"])
        for entry in start["networks"]
    }
    changed = {str(changes): replace(VIT_TINY, **changes) for changes in CHANGES}
    return found | {title: (config, config.patch_size) for title, config in changed.items()}


def build_fixture() -> dict[str, Any]:
    """Networks, and fields that no network can have."""
    return {
        "startingPoints": starting_points(),
        "networks": [
            {"title": title, "config": config.to_dict(), "patchSize": size}
            for title, (config, size) in networks().items()
        ],
        "invalid": [{**VIT_TINY.to_dict(), **changes} for changes in INVALID],
    }
