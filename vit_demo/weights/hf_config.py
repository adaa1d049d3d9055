"""What the two libraries' ``config.json`` say about a model, in our terms; what they leave out, and what we cannot do.

A network that its tensors do not betray, such as one with another activation, must be refused here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from vit_demo.errors import PresetError
from vit_demo.weights.convert import Untold
from vit_demo.weights.hub_presets import HALF, IMAGENET_LABELS

HEADS = {"tiny": 3, "small": 6, "medium": 8, "base": 12, "large": 16, "huge": 16}
"""Of timm's plain ViTs, by size; a ``config.json`` of timm's names the architecture and leaves this out."""
PLAIN = re.compile(
    rf"(?:vit|deit|deit3)_({'|'.join(HEADS)})_(?:distilled_)?patch\d+_(?:reg\d_)?(?:\d+|dinov2)(?:_in21k)?"
    r"|flexivit_(small|base|large)"
)
"""The architectures of timm that are a ViT with GELU and an epsilon of 1e-6; other families differ unseen."""
TOLD_BY_TENSORS = {
    "patch_size", "embed_dim", "depth", "mlp_ratio", "in_chans", "num_classes", "init_values", "reg_tokens",
    "class_token", "no_embed_class", "qkv_bias", "fc_norm",
}  # fmt: skip
WITHOUT_EFFECT = {
    "dynamic_img_size", "dynamic_img_pad", "drop_rate", "pos_drop_rate", "patch_drop_rate", "proj_drop_rate",
    "attn_drop_rate", "drop_path_rate", "weight_init", "pretrained",
}  # fmt: skip
PIL_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
MODEL_TYPES = {"vit", "deit", "dinov2", "dinov2_with_registers"}


@dataclass(frozen=True, kw_only=True)
class Description:
    """What is known of a model besides its tensors; the fields are ``Preset``'s.

    Attributes:
        untold: Of the network.
        labels: As many as are named; none where they are not.
        mean: Of each channel.
        std: Of each channel.
        crop_fraction: Of the shorter side.
        interpolation: Of the resize.
        note: What had to be assumed, as a sentence; empty if nothing.
    """

    untold: Untold
    labels: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop_fraction: float
    interpolation: str
    note: str = ""


def describe_timm(config: dict[str, Any]) -> Description:
    """Reads the ``config.json`` that timm puts beside the weights it saves.

    Raises:
        PresetError: If the architecture is not a plain ViT; the sentence names it.
    """
    architecture = config["architecture"]
    plain = PLAIN.fullmatch(architecture)
    if plain is None:
        raise PresetError(
            f"timm's {architecture} is not supported, because only its plain ViT, DeiT and FlexiViT are: "
            "see docs/models.md."
        )
    arguments = dict(config.get("model_args") or {})
    cfg = config.get("pretrained_cfg") or {}
    unknown = set(arguments) - TOLD_BY_TENSORS - WITHOUT_EFFECT - {"num_heads", "img_size", "global_pool"}
    if unknown:
        raise PresetError(
            f"this {architecture} is not supported, because it was made with {', '.join(sorted(unknown))}."
        )
    pool = config.get("global_pool") or arguments.get("global_pool") or "token"
    if pool not in ("token", "avg"):
        raise PresetError(f"this {architecture} is not supported, because it pools its tokens by {pool!r}.")
    if cfg.get("crop_mode", "center") not in ("center", "squash"):
        raise PresetError(f"this {architecture} is not supported, because its crop mode is {cfg['crop_mode']!r}.")
    size = arguments.get("img_size") or cfg.get("input_size", (3, 224, 224))[1:]
    num_classes = config.get("num_classes", cfg.get("num_classes", 0))
    labels = tuple(config.get("label_names") or cfg.get("label_names") or ())
    if len(labels) == 1000 and re.fullmatch(r"n\d{8}", labels[0]):
        labels = ()  # timm names ImageNet's classes by their WordNet numbers
    if not labels and num_classes == 1000:
        labels = IMAGENET_LABELS
    known = "mean" in cfg and "std" in cfg
    return Description(
        untold=Untold(
            num_heads=arguments.get("num_heads") or HEADS[plain[1] or plain[2]],
            image_size=_square(size),
            pool="mean" if pool == "avg" else "cls",
        ),
        labels=labels,
        mean=tuple(cfg.get("mean", HALF)),
        std=tuple(cfg.get("std", HALF)),
        crop_fraction=float(cfg.get("crop_pct") or 0.9),
        interpolation=cfg.get("interpolation") or "bicubic",
        note="" if known else "Its mean and standard deviation are not given, so 0.5 is assumed.",
    )


def describe_transformers(config: dict[str, Any], preprocessor: dict[str, Any] | None) -> Description:
    """Reads transformers' ``config.json`` and, where it is there, ``preprocessor_config.json``.

    Raises:
        PresetError: If the model is of another type, or has a part that is not supported; the sentence names it.
    """
    kind = config.get("model_type")
    if kind not in MODEL_TYPES:
        raise PresetError(
            f"a model of type {kind!r} is not supported, because only {', '.join(sorted(MODEL_TYPES))} of transformers "
            "and timm's plain ViTs are: see docs/models.md."
        )
    if config.get("hidden_act", "gelu") != "gelu":
        raise PresetError(f"this model is not supported, because its activation is {config['hidden_act']!r}.")
    if config.get("use_swiglu_ffn"):
        raise PresetError("this model is not supported, because its MLP is SwiGLU.")
    is_dino = kind.startswith("dinov2")
    classifies = any("Classification" in name for name in config.get("architectures") or ())
    names = config.get("id2label") or {}
    labels = tuple(names[key] for key in sorted(names, key=int))
    found = preprocessor or {}
    if found.get("do_rescale", True) and abs(255 * found.get("rescale_factor", 1 / 255) - 1) > 1e-3:
        raise PresetError("this model is not supported, because its pixels are not scaled to the range 0 to 1.")
    normalised = found.get("do_normalize", True)
    return Description(
        untold=Untold(
            num_heads=config.get("num_attention_heads", 12),
            image_size=_square(config.get("image_size", 224)),
            norm_eps=config.get("layer_norm_eps", 1e-6 if is_dino else 1e-12),
            pool="cls+mean" if is_dino and classifies else "cls",
        ),
        labels=labels,
        mean=tuple(found.get("image_mean", HALF)) if normalised else (0.0, 0.0, 0.0),
        std=tuple(found.get("image_std", HALF)) if normalised else (1.0, 1.0, 1.0),
        crop_fraction=_crop_fraction(found),
        interpolation=PIL_FILTERS[found.get("resample", 2)],
        note="" if preprocessor else "It has no preprocessor_config.json, so a mean and deviation of 0.5 are assumed.",
    )


def _crop_fraction(preprocessor: dict[str, Any]) -> float:
    """What a centre crop keeps of the resized photo's shorter side; all of it where nothing is cropped."""
    crop, size = preprocessor.get("crop_size"), preprocessor.get("size")
    if not crop or not size or not preprocessor.get("do_center_crop"):
        return 1.0
    shorter = size if isinstance(size, int) else size.get("shortest_edge") or size["height"]
    kept = crop if isinstance(crop, int) else crop["height"]
    return min(1.0, kept / shorter)


def _square(size: int | list[int] | tuple[int, ...]) -> int:
    """The side of a square.

    Raises:
        PresetError: If it is none.
    """
    if isinstance(size, int):
        return size
    height, width = size
    if height != width:
        raise PresetError(f"this model is not supported, because its input is {height} x {width}, not a square.")
    return int(height)
