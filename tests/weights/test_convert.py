"""Converted weights of timm, transformers and torchvision give the logits and the attention of the original model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import timm
import torch
import transformers
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torchvision.models import VisionTransformer as TorchvisionViT
from vit_demo.weights.convert import ConfigHints, convert

from vit_demo.errors import CheckpointError
from vit_demo.methods import attention_from
from vit_demo.model import Trace, ViT
from vit_demo.weights import PRESETS

Randomise = Callable[[nn.Module], nn.Module]

TIMM = {
    "vit-ti16": ("vit_tiny_patch16_224", {}),
    "vit-s16": ("vit_small_patch16_224", {"depth": 2}),
    "vit-b16": ("vit_base_patch16_224", {"depth": 1}),
    "deit-ti16": ("deit_tiny_patch16_224", {"depth": 2}),
    "flexivit-s": ("flexivit_small", {"depth": 2}),
    "flexivit-b": ("flexivit_base", {"depth": 1}),
    "dinov2-s14": ("vit_small_patch14_reg4_dinov2", {"depth": 2, "num_classes": 0}),
}
"""Each preset's architecture in timm; the presets above the first are shortened, their widths and heads are not."""


def converted(tensors: dict[str, Tensor], hints: ConfigHints) -> ViT:
    config, converted = convert(tensors, hints)
    model = ViT(config)
    model.load_state_dict(converted)
    return model.eval()


def logits_and_attention(model: ViT, images: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Logits, and the attention of every block: ``[B, H, N, N]``."""
    trace = Trace()
    with torch.inference_mode():
        logits = model(images, trace)
        tokens = range(trace.num_tokens)
        if trace.num_tokens > 300:
            tokens = range(0, trace.num_tokens, 97)  # a whole matrix of 1,374 tokens is not needed to compare rows
        maps = [torch.stack([attention_from(trace, b, t) for t in tokens], 2) for b in range(trace.num_blocks)]
    return logits, maps


def timm_logits_and_attention(model: nn.Module, images: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Logits and attention of timm's model, from its unfused softmax."""
    maps: list[Tensor] = []
    for block in model.blocks:  # type: ignore[union-attr]
        block.attn.fused_attn = False
        block.attn.attn_drop.register_forward_hook(lambda _, __, output: maps.append(output))
    with torch.inference_mode():
        return model(images), maps


def assert_agree(mine: tuple[Tensor, list[Tensor]], theirs: tuple[Tensor, list[Tensor]]) -> None:
    torch.testing.assert_close(mine[0], theirs[0], atol=1e-4, rtol=0)
    assert theirs[0].std() > 0.01, "the logits must be large compared with the tolerance"
    assert len(mine[1]) == len(theirs[1]) > 0
    for here, there in zip(mine[1], theirs[1], strict=True):
        if here.shape != there.shape:
            there = there[:, :, ::97]
        torch.testing.assert_close(here, there, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", TIMM)
def test_presets_agree_with_timm(name: str, randomise: Randomise) -> None:
    architecture, changes = TIMM[name]
    preset = PRESETS[name]
    theirs = randomise(timm.create_model(architecture, **changes))
    model = converted(theirs.state_dict(), ConfigHints(preset.num_heads, preset.image_size))
    assert {**model.config.to_dict(), "depth": 12} == preset.config.to_dict()
    images = torch.randn(1, 3, preset.image_size, preset.image_size)
    assert_agree(logits_and_attention(model, images), timm_logits_and_attention(theirs, images))


@pytest.mark.parametrize("name", ["vit-ti16", "flexivit-s", "dinov2-s14"])
def test_weights_of_this_package_load_in_timm(name: str, randomise: Randomise) -> None:
    architecture, changes = TIMM[name]
    theirs = timm.create_model(architecture, **{"depth": 2, **changes})
    model, _ = convert(theirs.state_dict(), ConfigHints(PRESETS[name].num_heads, PRESETS[name].image_size))
    mine = randomise(ViT(model))
    theirs.load_state_dict(mine.state_dict(), strict=True)
    images = torch.randn(1, 3, model.image_size, model.image_size)
    with torch.inference_mode():
        torch.testing.assert_close(theirs.eval()(images), mine(images), atol=1e-4, rtol=0)


def test_the_distilled_deit_of_timm_averages_both_heads(randomise: Randomise) -> None:
    theirs = randomise(VisionTransformerDistilled(img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3))
    model = converted(theirs.state_dict(), ConfigHints(3, 32))
    assert model.config.pool == "cls+next" and model.config.num_registers == 1
    images = torch.randn(2, 3, 32, 32)
    assert_agree(logits_and_attention(model, images), timm_logits_and_attention(theirs, images))


def test_torchvisions_vit(randomise: Randomise) -> None:
    """``vit_b_16`` with one block and a smaller image."""
    theirs = randomise(TorchvisionViT(64, 16, num_layers=1, num_heads=12, hidden_dim=768, mlp_dim=3072))
    maps: list[Tensor] = []
    attend = theirs.encoder.layers[0].self_attention  # type: ignore[union-attr,index]
    attend.register_forward_pre_hook(
        lambda module, arguments: maps.append(
            nn.functional.multi_head_attention_forward(
                *(x.transpose(0, 1) for x in arguments), 768, 12, module.in_proj_weight, module.in_proj_bias, None,
                None, False, 0.0, module.out_proj.weight, module.out_proj.bias, training=False,
                average_attn_weights=False,
            )[1]
        )
    )  # fmt: skip
    images = torch.randn(1, 3, 64, 64)
    with torch.inference_mode():
        logits = theirs(images)
    assert_agree(logits_and_attention(converted(theirs.state_dict(), ConfigHints(12, 64)), images), (logits, maps))


TINY = {
    "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "image_size": 32, "patch_size": 8,
    "num_labels": 7, "attn_implementation": "eager",
}  # fmt: skip


def transformers_models() -> dict[str, tuple[Any, ConfigHints]]:
    vit = transformers.ViTConfig(intermediate_size=96, qkv_bias=True, layer_norm_eps=1e-3, **TINY)
    deit = transformers.DeiTConfig(intermediate_size=96, **TINY)
    dino = transformers.Dinov2WithRegistersConfig(mlp_ratio=3, num_register_tokens=4, **TINY)
    plain = transformers.Dinov2Config(mlp_ratio=3, **TINY)
    return {
        "vit": (lambda: transformers.ViTForImageClassification(vit), ConfigHints(3, 32, 1e-3)),
        "vit-without-classes": (lambda: transformers.ViTModel(vit), ConfigHints(3, 32, 1e-3)),
        "deit": (lambda: transformers.DeiTForImageClassification(deit), ConfigHints(3, 32, 1e-12)),
        "deit-distilled": (lambda: transformers.DeiTForImageClassificationWithTeacher(deit), ConfigHints(3, 32, 1e-12)),
        "dinov2-registers": (lambda: transformers.Dinov2WithRegistersModel(dino), ConfigHints(3, 32, 1e-6)),
        "dinov2-registers-classes": (
            lambda: transformers.Dinov2WithRegistersForImageClassification(dino),
            ConfigHints(3, 32, 1e-6, "cls+mean"),
        ),
        "dinov2": (lambda: transformers.Dinov2Model(plain), ConfigHints(3, 32, 1e-6)),
    }


@pytest.mark.parametrize("kind", transformers_models())
def test_transformers_models(kind: str, randomise: Randomise) -> None:
    make, hints = transformers_models()[kind]
    theirs = randomise(make())
    images = torch.randn(2, 3, 32, 32)
    with torch.inference_mode():
        answer = theirs(images, output_attentions=True)
    logits = answer.logits if "logits" in answer else answer.last_hidden_state[:, 0]
    assert_agree(logits_and_attention(converted(theirs.state_dict(), hints), images), (logits, list(answer.attentions)))


def test_transformers_older_names_mean_the_same(randomise: Randomise) -> None:
    """What the Hub holds was saved under names that transformers has since changed in memory."""
    theirs = randomise(transformers_models()["vit"][0]())
    renames = {
        "vit.layers.": "vit.encoder.layer.", ".attention.q_proj.": ".attention.attention.query.",
        ".attention.k_proj.": ".attention.attention.key.", ".attention.v_proj.": ".attention.attention.value.",
        ".attention.o_proj.": ".attention.output.dense.", ".mlp.fc1.": ".intermediate.dense.",
        ".mlp.fc2.": ".output.dense.",
    }  # fmt: skip
    old = {}
    for name, tensor in theirs.state_dict().items():
        for new, before in renames.items():
            name = name.replace(new, before)
        old[name] = tensor
    assert "vit.encoder.layer.1.attention.attention.query.weight" in old
    images = torch.randn(1, 3, 32, 32)
    with torch.inference_mode():
        torch.testing.assert_close(
            converted(old, ConfigHints(3, 32, 1e-3))(images), theirs(images).logits, atol=1e-4, rtol=0
        )


def small(**changes: Any) -> dict[str, Tensor]:
    with torch.device("meta"):
        return VisionTransformer(
            **{"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 1, "num_heads": 3, **changes}
        ).state_dict()


def renamed(old: str, new: str) -> dict[str, Tensor]:
    return {name.replace(old, new): tensor for name, tensor in small().items()}


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (small(mlp_layer=timm.layers.SwiGLU), "SwiGLU"),
        (small(qk_norm=True), "normalises queries and keys"),
        (small(pre_norm=True), "norm before the first block"),
        (small(global_pool="map"), "by attention"),
        (small(global_pool="avg", fc_norm=False), "before their mean"),
        (small() | {"blocks.0.attn.rel_pos.relative_position_bias_table": torch.empty(1)}, "relative position bias"),
        (small() | {"rope.freqs": torch.empty(1)}, "rotary"),
        (renamed("patch_embed.proj", "patch_embed.backbone.stem"), "hybrid convolutional stem"),
        (small() | {"blocks.0.attn.extra": torch.empty(2)}, r"blocks\.0\.attn\.extra is \(2,\)"),
        ({k: v for k, v in small().items() if k != "blocks.0.mlp.fc2.bias"}, r"fc2\.bias is missing"),
        ({"conv1.weight": torch.empty(8, 3, 3, 3)}, "not the weights of a plain Vision Transformer"),
        (small(img_size=40), "needs 4 x 4"),
    ],
)  # fmt: skip
def test_unsupported_networks_are_named(tensors: dict[str, Tensor], message: str) -> None:
    hints = ConfigHints(3, 32, pool="mean" if message == "before their mean" else "cls")
    with pytest.raises(CheckpointError, match=message):
        convert(tensors, hints)


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(CheckpointError, match="multiple of num_heads"):
        convert(small(), ConfigHints(5, 32))
