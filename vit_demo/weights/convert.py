"""Converts the state dict of a ViT of timm, transformers or torchvision to this package's names, which are timm's.

Width, depth, registers, layer scale and biases are inferred from names and shapes. What these do not determine (number
of heads, epsilon of the norms, pooling) comes in ``ConfigHints``.
"""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

import torch
from torch import Size, Tensor

from vit_demo.errors import CheckpointError
from vit_demo.model import ViT, ViTConfig
from vit_demo.weights.limits import MAX_QUOTE_LENGTH, check_network
from vit_demo.weights.untrusted_text import quote, sanitize

Tensors = dict[str, Tensor]


class ConfigHints(NamedTuple):
    """The parts of a config that cannot be inferred from a state dict.

    Attributes:
        num_heads: Attention heads of a block.
        image_size: Side of the square input, in pixels.
        norm_eps: Epsilon of every LayerNorm.
        pool: What the head reads, as in ``ViTConfig.pool``. Ignored for a distilled model, recognised by its two heads.
    """

    num_heads: int
    image_size: int
    norm_eps: float = 1e-6
    pool: Literal["cls", "mean", "cls+mean"] = "cls"


UNSUPPORTED = {
    r"mlp\.(w12|weights_in|gate_proj|fc1_g|w3)\b": "its MLP is SwiGLU",
    r"(\bq_norm|\bk_norm|norm_q|norm_k)\b": "it normalises queries and keys",
    r"rel_pos|relative_position": "its attention has a relative position bias",
    r"rope|rotary": "its positions are rotary",
    r"patch_embed\.backbone|embeddings\.(backbone|.*convolution)|conv_proj\.conv|patch_embed\.conv": (
        "its patches come from a hybrid convolutional stem"
    ),
    r"^(norm_pre|pre_layr?norm)\b": "it has a norm before the first block",
    r"attn_pool|^head\.probe": "it pools its tokens by attention",
    r"\.(attns|ffns)\.|\.in_proj\.": "attention and MLP of a block run in parallel",
    r"attn\.(q_bias|v_bias)": "its keys have no bias while its queries have one",
    r"pre_logits": "its head has a hidden layer",
    r"(attn|mlp)\.norm\.": "it has norms inside attention or MLP",
    r"lora_": "its weights are kept as adapters",
}
"""Networks similar to a plain ViT: a pattern of a tensor's name that identifies them, and the reason to refuse them."""

TORCHVISION = {
    r"^conv_proj\.": "patch_embed.proj.",
    r"^class_token$": "cls_token",
    r"^encoder\.pos_embedding$": "pos_embed",
    r"^encoder\.layers\.encoder_layer_(\d+)\.": r"blocks.\1.",
    r"\.ln_(\d)\.": r".norm\1.",
    r"\.self_attention\.in_proj_": ".attn.qkv.",
    r"\.self_attention\.out_proj\.": ".attn.proj.",
    r"\.mlp\.(linear_1|0)\.": ".mlp.fc1.",
    r"\.mlp\.(linear_2|3)\.": ".mlp.fc2.",
    r"^encoder\.ln\.": "norm.",
    r"^heads\.head\.": "head.",
}
TRANSFORMERS = {
    r"^(vit|deit|dinov2|dinov2_with_registers)\.": "",
    r"^embeddings\.patch_embeddings\.projection\.": "patch_embed.proj.",
    r"^embeddings\.cls_token$": "cls_token",
    r"^embeddings\.(register_tokens|distillation_token)$": "reg_token",
    r"^embeddings\.position_embeddings$": "pos_embed",
    r"^(encoder\.)?layers?\.(\d+)\.": r"blocks.\2.",
    r"\.(layernorm_before|norm1)\.": ".norm1.",
    r"\.(layernorm_after|norm2)\.": ".norm2.",
    r"\.attention\.(attention\.query|q_proj)\.": ".attn.q.",
    r"\.attention\.(attention\.key|k_proj)\.": ".attn.k.",
    r"\.attention\.(attention\.value|v_proj)\.": ".attn.v.",
    r"\.attention\.(output\.dense|o_proj)\.": ".attn.proj.",
    r"\.intermediate\.dense\.": ".mlp.fc1.",
    r"\.output\.dense\.": ".mlp.fc2.",
    r"\.layer_scale(\d)\.lambda1$": r".ls\1.gamma",
    r"^layernorm\.": "norm.",
    r"^(cls_)?classifier\.": "head.",
    r"^distillation_classifier\.": "head_dist.",
}
TIMM = {r"^dist_token$": "reg_token", r"^register_tokens$": "reg_token"}
IGNORED = re.compile(r"(^|\.)(mask_token$|pooler\.)")
"""Tensors that only training needs, or that no prediction depends on."""


def convert(tensors: Tensors, hints: ConfigHints) -> tuple[ViTConfig, Tensors]:
    """The config and the state dict of this package's ``ViT`` for a state dict of another library.

    Args:
        tensors: State dict of timm, transformers or torchvision; on the meta device if only the shapes are needed.
        hints: What cannot be inferred from it.

    Returns:
        The config, and the state dict that ``ViT(config).load_state_dict`` takes.

    Raises:
        CheckpointError: If the network is of another kind; the message names the part that is not supported.
        PresetError: If the network is larger than ``limits.check_network`` allows.
    """
    ours = _rename_tensors(tensors)
    _refuse_unsupported(ours)
    pool: Literal["cls", "mean", "cls+mean", "cls+next"] = hints.pool
    if "head_dist.weight" in ours:
        ours, pool = _merge_distilled_heads(ours), "cls+next"
    _merge_qkv(ours)
    config = _read(ours, hints, pool)
    check_network(config)
    if not config.pos_embed_prefix and "cls_token" in ours:
        _fold_class_token_position(ours, config.stored_grid)
    _check(ours, config)
    return config, ours


def _rename_tensors(tensors: Tensors) -> Tensors:
    if any(name.startswith("conv_proj.") for name in tensors):
        table = TORCHVISION
    elif any("embeddings." in name for name in tensors):
        table = TRANSFORMERS
    else:
        table = TIMM
    ours = {}
    for name, tensor in tensors.items():
        if IGNORED.search(name):
            continue
        for pattern, replacement in table.items():
            name = re.sub(pattern, replacement, name)
        if name in ours:
            raise CheckpointError(
                f"These weights hold two tensors that map to {quote(name)}: use a file without duplicates."
            )
        ours[name] = tensor
    return ours


def _refuse_unsupported(tensors: Tensors) -> None:
    for pattern, what in UNSUPPORTED.items():
        if any(re.search(pattern, name) for name in tensors):
            raise CheckpointError(f"This network is not supported, because {what}: see docs/models.md for what is.")
    kernel = tensors.get("patch_embed.proj.weight")
    if kernel is None or kernel.ndim != 4 or "blocks.0.norm1.weight" not in tensors:
        raise CheckpointError("These are not the weights of a plain Vision Transformer: see docs/models.md.")
    if kernel.shape[2] != kernel.shape[3]:
        raise CheckpointError("This network is not supported, because its patches are not square.")


def _shape(tensors: Tensors, name: str, rank: int) -> Size:
    """The shape of a required tensor.

    Raises:
        CheckpointError: If it is missing or has another number of dimensions.
    """
    if name not in tensors:
        raise CheckpointError(f"This network is not supported: its {name} is missing.")
    if tensors[name].ndim != rank:
        raise CheckpointError(
            f"This network is not supported: its {name} has {tensors[name].ndim} dimensions, where a ViT has {rank}."
        )
    return tensors[name].shape


def _check_same_shape(tensors: Tensors, *names: str) -> None:
    """Checks that tensors can be concatenated.

    Raises:
        CheckpointError: If one is missing, or their shapes differ.
    """
    shapes = {_shape(tensors, name, 1 if name.endswith("bias") else 2) for name in names}
    if len(shapes) > 1:
        raise CheckpointError(f"This network is not supported: the shapes of {', '.join(map(quote, names))} differ.")


def _merge_distilled_heads(tensors: Tensors) -> Tensors:
    """Two heads on two tokens, their logits averaged, as one head on the concatenation of the two tokens."""
    _check_same_shape(tensors, "head.weight", "head_dist.weight")
    _check_same_shape(tensors, "head.bias", "head_dist.bias")
    weight = torch.cat([tensors["head.weight"], tensors["head_dist.weight"]], dim=1) / 2  # [K, 2 * D]
    bias = (tensors["head.bias"] + tensors["head_dist.bias"]) / 2
    others = {name: tensor for name, tensor in tensors.items() if not name.startswith("head_dist.")}
    return {**others, "head.weight": weight, "head.bias": bias}


def _merge_qkv(tensors: Tensors) -> None:
    for name in [name for name in tensors if ".attn.q." in name]:
        parts = [name.replace(".attn.q.", f".attn.{part}.") for part in "qkv"]
        if all(part in tensors for part in parts):
            _check_same_shape(tensors, *parts)
            tensors[name.replace(".attn.q.", ".attn.qkv.")] = torch.cat([tensors.pop(part) for part in parts])


def _read(tensors: Tensors, hints: ConfigHints, pool: Literal["cls", "mean", "cls+mean", "cls+next"]) -> ViTConfig:
    width, channels, patch_size, _ = tensors["patch_embed.proj.weight"].shape
    if 0 in (width, channels, patch_size):
        raise CheckpointError("This network is not supported, because its patches are empty.")
    depth = len({name.split(".")[1] for name in tensors if name.startswith("blocks.")})
    registers = _shape(tensors, "reg_token", 3)[1] if "reg_token" in tensors else 0
    hidden = _shape(tensors, "blocks.0.mlp.fc1.weight", 2)[0]
    positions = _shape(tensors, "pos_embed", 3)[1]
    grid, prefix = hints.image_size // patch_size, int("cls_token" in tensors) + registers
    # A position of the class token alone is added to that token later, so that no prefix token has a position.
    if positions not in (grid**2, grid**2 + prefix, grid**2 + 1):
        raise CheckpointError(
            f"This network is not supported, because it has {positions} positions, where an image of "
            f"{hints.image_size} px in patches of {patch_size} px needs {grid} x {grid}."
        )
    try:
        return ViTConfig(
            image_size=hints.image_size,
            patch_size=patch_size,
            in_channels=channels,
            num_classes=_shape(tensors, "head.weight", 2)[0] if "head.weight" in tensors else 0,
            embed_dim=width,
            depth=depth,
            num_heads=hints.num_heads,
            mlp_ratio=_mlp_ratio(hidden, width),
            pool=pool,
            pos_embed_prefix=prefix == 0 or positions == grid**2 + prefix,
            class_token="cls_token" in tensors,
            num_registers=registers,
            layer_scale=1e-5 if "blocks.0.ls1.gamma" in tensors else None,
            qkv_bias="blocks.0.attn.qkv.bias" in tensors,
            final_norm="norm.weight" in tensors or "fc_norm.weight" in tensors,
            norm_eps=hints.norm_eps,
        )
    except ValueError as error:
        raise CheckpointError(f"This network is not supported: {error}") from error


def _mlp_ratio(hidden: int, width: int) -> float:
    """The ratio for which ``int(width * ratio)`` is the hidden width, in spite of rounding."""
    ratio = hidden / width
    return ratio if int(width * ratio) == hidden else math.nextafter(ratio, math.inf)


def _fold_class_token_position(tensors: Tensors, grid: int) -> None:
    """Adds the position of the class token to the token itself, for models whose registers have no position."""
    positions = tensors["pos_embed"]
    if positions.shape[1] == grid**2 + 1:
        if tensors["cls_token"].shape != positions[:, :1].shape:
            raise CheckpointError("This network is not supported: its cls_token does not fit its pos_embed.")
        tensors["cls_token"] = tensors["cls_token"] + positions[:, :1]
        tensors["pos_embed"] = positions[:, 1:]


def _check(tensors: Tensors, config: ViTConfig) -> None:
    """Checks that a state dict has exactly the names and shapes of the network that was inferred from it.

    Raises:
        CheckpointError: Naming the first tensor that is missing, left over or of another shape.
    """
    with torch.device("meta"):
        wanted = {name: tensor.shape for name, tensor in ViT(config).state_dict().items()}
    found = {name: tensor.shape for name, tensor in tensors.items()}
    if "norm.weight" in found and "fc_norm.weight" in wanted:
        raise CheckpointError("This network is not supported, because it normalises its tokens before their mean.")
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            here = tuple(found[name]) if name in found else "missing"
            there = tuple(wanted[name]) if name in wanted else "no such part"
            raise CheckpointError(
                f"This network is not supported: its {sanitize(name, MAX_QUOTE_LENGTH)} is {here}, "
                f"where a ViT has {there}."
            )
