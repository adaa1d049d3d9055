"""Small networks of other libraries, in the layouts that these have."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import timm
import torchvision
import transformers
from torch import nn


def timm_vit(name: str = "VisionTransformer", **options: Any) -> nn.Module:
    """A small network of timm's file of that class."""
    file, _, kind = name.rpartition(".")
    shape = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "num_classes": 5}
    return getattr(getattr(timm.models, file or "vision_transformer"), kind)(**shape | options)


def transformers_vit(kind: str, **options: Any) -> nn.Module:
    """A small network of transformers."""
    shape = {
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 48,
        "num_labels": 5,
    }
    attention = options.pop("attention", "sdpa")
    config = getattr(transformers, f"{kind}Config")(**{"image_size": 32, "patch_size": 8} | shape | options)
    config._attn_implementation = attention
    return getattr(transformers, f"{kind}ForImageClassification")(config)


def vit_pytorch(file: str, name: str, **options: Any) -> nn.Module:
    """A small network of vit-pytorch."""
    shape = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 24, "depth": 2, "heads": 3, "mlp_dim": 48}
    return getattr(importlib.import_module(f"vit_pytorch.{file}"), name)(**shape, dim_head=8, **options)


MEAN, SCALING = {"global_pool": "avg"}, timm.models.vision_transformer
TIMM_SHAPES: dict[str, dict[str, Any]] = {
    "token": {}, "mean": MEAN, "mean, no class token": MEAN | {"class_token": False},
    "attention pooling": {"global_pool": "map", "class_token": False}, "mean and largest": {"global_pool": "avgmax"},
    "largest": {"global_pool": "max"}, "registers": {"reg_tokens": 4}, "registers and mean": MEAN | {"reg_tokens": 4},
    "all in the mean": MEAN | {"pool_include_prefix": True, "reg_tokens": 2},
    "registers, no class token": MEAN | {"class_token": False, "reg_tokens": 4, "pool_include_prefix": True},
    "registers, no position": {"reg_tokens": 4, "no_embed_class": True}, "any size": {"dynamic_img_size": True},
    "parallel": {"block_fn": SCALING.ParallelScalingBlock}, "two branches": {"block_fn": SCALING.ParallelThingsBlock},
    "norm behind": {"block_fn": SCALING.ResPostBlock}, "norm first": {"pre_norm": True},
    "norm of queries": {"qk_norm": True}, "layer scale": {"init_values": 0.3}, "no bias": {"qkv_bias": False},
}  # fmt: skip
THEIRS: dict[str, Callable[[], nn.Module]] = {
    **{f"timm, {name}": partial(timm_vit, **options) for name, options in TIMM_SHAPES.items()},
    "timm, distilled": partial(timm_vit, "deit.VisionTransformerDistilled"),
    "timm, EVA": partial(timm_vit, "eva.Eva", use_rot_pos_emb=True, swiglu_mlp=True),
    "timm, EVA with registers": partial(timm_vit, "eva.Eva", num_reg_tokens=3, global_pool="token"),
    "timm, BEiT": partial(timm_vit, "beit.Beit", use_rel_pos_bias=True),
    "timm, relative positions": partial(timm_vit, "vision_transformer_relpos.VisionTransformerRelPos"),
    "timm, a Sequential of two": lambda: nn.Sequential(nn.Identity(), timm_vit()),
    **{f"transformers, {kind}": partial(transformers_vit, kind)
       for kind in ("ViT", "DeiT", "Dinov2", "Beit", "ViTMSN")},
    "transformers, ViT eager": partial(transformers_vit, "ViT", attention="eager"),
    "transformers, registers": partial(transformers_vit, "Dinov2WithRegisters", num_register_tokens=3),
    "transformers, BEiT eager": partial(transformers_vit, "Beit", attention="eager", use_relative_position_bias=True),
    "transformers, BEiT of the class token": partial(transformers_vit, "Beit", use_mean_pooling=False),
    "torchvision": lambda: torchvision.models.VisionTransformer(32, 8, 2, 3, 24, 48, num_classes=5),
    "vit-pytorch": partial(vit_pytorch, "vit", "ViT"),
    "vit-pytorch, mean": partial(vit_pytorch, "vit", "ViT", pool="mean"),
    "vit-pytorch, simple": partial(vit_pytorch, "simple_vit", "SimpleViT"),
    "vit-pytorch, registers behind": partial(vit_pytorch, "simple_vit_with_register_tokens", "SimpleViT"),
    "vit-pytorch, dropped patches": partial(vit_pytorch, "vit_with_patch_dropout", "ViT", patch_dropout=0.5),
    "vit-pytorch, talking heads": partial(vit_pytorch, "deepvit", "DeepViT"),
    "vit-pytorch, parallel": partial(vit_pytorch, "parallel_vit", "ViT"),
    "vit-pytorch, for small data": partial(vit_pytorch, "vit_for_small_dataset", "ViT"),
}  # fmt: skip
