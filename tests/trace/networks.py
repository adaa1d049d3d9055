"""Tiny networks of other libraries, seeded, each with what the tests must know of it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model import ViT, ViTConfig


def randomize(module: nn.Module) -> nn.Module:
    """Gives every parameter a random value, since some libraries start with zeros."""
    generator = torch.Generator().manual_seed(1)
    for parameter in module.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape, generator=generator) / parameter.shape[-1] ** 0.5
    return module.eval()


def timm_network(kind: str, **options: Any) -> nn.Module:
    timm = pytest.importorskip("timm")
    size = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 3, "num_heads": 3, "num_classes": 5}
    module, _, name = kind.rpartition(".")
    torch.manual_seed(0)
    return randomize(getattr(getattr(timm.models, module), name)(**size | options))


def timm_vit(**options: Any) -> Callable[[], nn.Module]:
    return lambda: timm_network("vision_transformer.VisionTransformer", **options)


def eva(**options: Any) -> Callable[[], nn.Module]:
    return lambda: timm_network("eva.Eva", **options)


def transformers_network(name: str, **options: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        transformers = pytest.importorskip("transformers")
        config = getattr(transformers, name)(
            image_size=32, patch_size=8, hidden_size=24, num_hidden_layers=3, num_attention_heads=3,
            intermediate_size=48, attn_implementation="sdpa", **options,
        )  # fmt: skip
        torch.manual_seed(0)
        return randomize(getattr(transformers, CLASSES[name])(config))

    return make


CLASSES = {
    "ViTConfig": "ViTForImageClassification",
    "DeiTConfig": "DeiTForImageClassification",
    "Dinov2Config": "Dinov2ForImageClassification",
    "Dinov2WithRegistersConfig": "Dinov2WithRegistersForImageClassification",
    "DINOv3ViTConfig": "DINOv3ViTModel",
    "BeitConfig": "BeitForImageClassification",
    "CLIPVisionConfig": "CLIPVisionModelWithProjection",
    "SiglipVisionConfig": "SiglipVisionModel",
}


def torchvision_network() -> nn.Module:
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    return randomize(torchvision.models.VisionTransformer(32, 8, 3, 3, 24, 48, num_classes=5))


def simple_vit() -> nn.Module:
    vit_pytorch = pytest.importorskip("vit_pytorch")
    torch.manual_seed(0)
    return randomize(
        vit_pytorch.SimpleViT(  # whose heads together are wider than a token
            image_size=32, patch_size=8, num_classes=5, dim=20, depth=3, heads=3, mlp_dim=48, dim_head=8
        )
    )


class Own(nn.Module):
    """A network as one writes it in an afternoon."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.qkv, self.out = nn.LayerNorm(24), nn.Linear(24, 72), nn.Linear(24, 24)
            self.mlp = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 24))

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 3, 8)).permute(2, 0, 3, 1, 4)
            x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + self.mlp(x)

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.place = nn.Conv2d(3, 24, 8, 8), nn.Parameter(torch.randn(1, 16, 24))
        self.layers, self.head = nn.ModuleList([self.Layer() for _ in range(3)]), nn.Linear(24, 5)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).transpose(1, 2) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def of_this_package(**options: Any) -> Callable[[], nn.Module]:
    shape = {"image_size": 32, "patch_size": 8, "num_classes": 5, "embed_dim": 24, "depth": 3, "num_heads": 3}

    def make() -> nn.Module:
        torch.manual_seed(0)
        return randomize(ViT(ViTConfig(**shape | options)))

    return make


def own() -> nn.Module:
    torch.manual_seed(0)
    return Own().eval()


def plain(module: nn.Module, images: Tensor, **options: Any) -> Tensor:
    """What the network gives without any help."""
    output = module(images, **options)
    if isinstance(output, Tensor):
        return output
    return next(output[name] for name in ("logits", "image_embeds", "pooler_output") if name in output)


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "ours": of_this_package(num_registers=2, layer_scale=0.5),
    "ours per head, mean": of_this_package(projection="per_head", pos_embed="sincos", pool="mean", class_token=False),
    "timm vit": timm_vit(),
    "timm mean, registers": timm_vit(global_pool="avg", class_token=False, reg_tokens=2, fc_norm=True),
    "timm layer scale, qk norm": timm_vit(init_values=0.5, qk_norm=True),
    "timm siglip": timm_vit(global_pool="map", class_token=False),
    "timm pooling beside a class token": timm_vit(global_pool="map"),
    "timm clip": timm_vit(pre_norm=True, no_embed_class=True),
    "timm distilled": lambda: timm_network("deit.VisionTransformerDistilled"),
    "timm eva02": eva(use_rot_pos_emb=True, swiglu_mlp=True, scale_mlp=True, qkv_fused=False, mlp_ratio=2.0),
    "timm rope": eva(use_rot_pos_emb=True, use_abs_pos_emb=False, init_values=0.5, global_pool="token"),
    "timm beit": lambda: timm_network("beit.Beit", use_rel_pos_bias=True, use_abs_pos_emb=False, init_values=0.5),
    "timm relpos": lambda: timm_network("vision_transformer_relpos.VisionTransformerRelPos", class_token=True),
    "torchvision": torchvision_network,
    "vit-pytorch simple": simple_vit,
    "own": own,
} | {
    f"transformers {name.removesuffix('Config')}": transformers_network(name, **options)
    for name, options in {
        "ViTConfig": {"num_labels": 5},
        "DeiTConfig": {"num_labels": 5},
        "Dinov2Config": {"num_labels": 5},
        "Dinov2WithRegistersConfig": {"num_labels": 5, "num_register_tokens": 2},
        "DINOv3ViTConfig": {"num_register_tokens": 2},
        "BeitConfig": {"num_labels": 5, "use_relative_position_bias": True},
        "CLIPVisionConfig": {"projection_dim": 7},
        "SiglipVisionConfig": {},
    }.items()
}  # fmt: skip
