"""The same weights in timm and here: the same numbers, whichever way the state dict travels."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import timm
import torch
from timm.models.vision_transformer import Block as TimmBlock
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import VIT_TINY
from vit_demo.model.vit import Block

SMALL = {"img_size": 16, "patch_size": 4, "num_classes": 5, "embed_dim": 24, "depth": 2, "num_heads": 3}


@pytest.mark.parametrize("layer_scale", [None, 0.3])
def test_block_equals_timms(tiny: ViTConfig, randomise: Callable[..., nn.Module], layer_scale: float | None) -> None:
    norm = partial(nn.LayerNorm, eps=1e-6)
    theirs = randomise(TimmBlock(24, 3, qkv_bias=True, init_values=layer_scale, norm_layer=norm))
    ours = Block(replace(tiny, layer_scale=layer_scale)).eval()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 7, 24)
    with torch.inference_mode():
        torch.testing.assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layer_scale", [1e-5, 0.5])
def test_layer_scale_starts_at_its_initial_value(tiny: ViTConfig, layer_scale: float) -> None:
    block = Block(replace(tiny, layer_scale=layer_scale))
    assert torch.equal(block.ls1.gamma, torch.full((24,), layer_scale))
    assert torch.equal(block.ls2.gamma, torch.full((24,), layer_scale))


def norm_eps(model: nn.Module) -> dict[str, float]:
    return {name: module.eps for name, module in model.named_modules() if isinstance(module, nn.LayerNorm)}


@pytest.mark.parametrize("towards", ["ours", "timm"])
def test_whole_vit_tiny_equals_timms(randomise: Callable[..., nn.Module], towards: str) -> None:
    theirs = timm.create_model("vit_tiny_patch16_224", pretrained=False)
    ours = ViT(VIT_TINY)
    assert norm_eps(ours) == norm_eps(theirs), "too small to show in the logits below"
    source, target = (theirs, ours) if towards == "ours" else (ours, theirs)
    target.load_state_dict(randomise(source, std=0.05).state_dict())
    images = torch.randn(2, 3, 224, 224)
    with torch.inference_mode():
        expected = theirs.eval()(images)
        torch.testing.assert_close(ours.eval()(images), expected, atol=1e-4, rtol=0)
    assert expected.std() > 0.1, "the logits must be large beside the tolerance"


@pytest.mark.parametrize(
    ("timm_kwargs", "changes"),
    [
        ({"global_pool": "avg"}, {"pool": "mean"}),
        ({"global_pool": "avg", "class_token": False}, {"pool": "mean", "class_token": False}),
        ({"global_pool": "avg", "reg_tokens": 2}, {"pool": "mean", "num_registers": 2}),
        (
            {"init_values": 1e-5, "reg_tokens": 4, "no_embed_class": True},
            {"layer_scale": 1e-5, "num_registers": 4, "pos_embed_prefix": False},
        ),
        ({"reg_tokens": 3}, {"num_registers": 3}),
        ({"qkv_bias": False}, {"qkv_bias": False}),
        ({"num_classes": 0}, {"num_classes": 0}),
        ({"final_norm": False}, {"final_norm": False}),
    ],
    ids=["mean", "mean-no-class-token", "mean-registers", "dinov2-reg4", "registers", "no-bias", "headless", "no-norm"],
)
def test_variants_equal_timms(
    tiny: ViTConfig, randomise: Callable[..., nn.Module], timm_kwargs: dict[str, Any], changes: dict[str, Any]
) -> None:
    theirs = randomise(VisionTransformer(**{**SMALL, **timm_kwargs}))
    ours = ViT(replace(tiny, **changes)).eval()
    ours.load_state_dict(theirs.state_dict())
    images = torch.randn(2, 3, 16, 16)
    with torch.inference_mode():
        torch.testing.assert_close(ours(images), theirs(images), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("no_embed_class", [False, True])
def test_rectangular_images_equal_timms_dynamic_sizes(
    tiny: ViTConfig, randomise: Callable[..., nn.Module], no_embed_class: bool
) -> None:
    theirs = randomise(VisionTransformer(**SMALL, dynamic_img_size=True, no_embed_class=no_embed_class))
    ours = ViT(replace(tiny, pos_embed_prefix=not no_embed_class)).eval()
    ours.load_state_dict(theirs.state_dict())
    images = torch.randn(2, 3, 12, 32)
    with torch.inference_mode():
        torch.testing.assert_close(ours(images), theirs(images), atol=1e-4, rtol=1e-4)
