"""Parses the ``config.json`` of timm and of transformers, and refuses models that this package does not support.

Differences that leave no trace in the state dict, such as another activation, must be recognised here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from vit_demo.errors import PresetError
from vit_demo.weights import limits
from vit_demo.weights.convert import ConfigHints
from vit_demo.weights.hub_presets import IMAGENET_INCEPTION_MEAN, IMAGENET_INCEPTION_STD, IMAGENET_LABELS
from vit_demo.weights.json_fields import Fields
from vit_demo.weights.untrusted_text import quote, sanitize

NUM_HEADS = {"tiny": 3, "small": 6, "medium": 8, "base": 12, "large": 16, "huge": 16}
"""Attention heads of timm's plain ViTs by size, which timm's ``config.json`` does not contain."""
PLAIN_VIT = re.compile(
    rf"(?:vit|deit|deit3)_({'|'.join(NUM_HEADS)})_(?:distilled_)?patch\d+_(?:reg\d_)?(?:\d+|dinov2)(?:_in21k)?"
    r"|flexivit_(small|base|large)"
)
"""timm's architectures that are a ViT with GELU and an epsilon of 1e-6; others may differ in ways no tensor shows."""
INFERRED_FROM_TENSORS = {
    "patch_size", "embed_dim", "depth", "mlp_ratio", "in_chans", "num_classes", "init_values", "reg_tokens",
    "class_token", "no_embed_class", "qkv_bias", "fc_norm",
}  # fmt: skip
WITHOUT_EFFECT = {
    "dynamic_img_size", "dynamic_img_pad", "drop_rate", "pos_drop_rate", "patch_drop_rate", "proj_drop_rate",
    "attn_drop_rate", "drop_path_rate", "weight_init", "pretrained",
}  # fmt: skip
INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic")
"""Indexed by Pillow's constants."""
MODEL_TYPES = {"vit", "deit", "dinov2", "dinov2_with_registers"}
MEANS, STDS, CROPS = (-10.0, 10.0), (1e-3, 100.0), (0.25, 1.0)
"""Accepted ranges: mean and standard deviation of a channel, for pixels in [0, 1], and the crop fraction."""


@dataclass(frozen=True, kw_only=True)
class ParsedConfig:
    """What a ``config.json`` contains besides the architecture; the fields are those of ``Preset``.

    Attributes:
        hints: For ``convert``.
        labels: Class names; empty if the file has none.
        mean: Mean of each channel.
        std: Standard deviation of each channel.
        crop_fraction: Share of the shorter side that the centre crop keeps.
        interpolation: Filter of the resize.
        note: One sentence about what had to be assumed; empty if nothing was.
    """

    hints: ConfigHints
    labels: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop_fraction: float
    interpolation: str
    note: str = ""


def parse_timm_config(config: dict[str, Any]) -> ParsedConfig:
    """Parses the ``config.json`` that timm saves beside the weights.

    Raises:
        PresetError: If the architecture is not a plain ViT, or a field has an invalid value.
    """
    fields = Fields(config, "config.json", nullable=True)
    architecture = fields.string("architecture")
    plain = PLAIN_VIT.fullmatch(architecture)
    if plain is None:
        raise PresetError(
            f"timm's {sanitize(architecture, limits.MAX_QUOTE_LENGTH)} is not supported, because only its plain ViT, "
            "DeiT and FlexiViT are: see docs/models.md."
        )
    arguments = fields.nested("model_args", nullable=False)
    cfg = fields.nested("pretrained_cfg")
    unknown = set(arguments.values) - INFERRED_FROM_TENSORS - WITHOUT_EFFECT - {"num_heads", "img_size", "global_pool"}
    if unknown:
        arguments_text = sanitize(", ".join(sorted(unknown)), limits.MAX_QUOTE_LENGTH)
        raise PresetError(f"this {architecture} is not supported, because it was created with {arguments_text}.")
    pool = fields.string("global_pool", "") or arguments.string("global_pool", "") or "token"
    if pool not in ("token", "avg"):
        raise PresetError(f"this {architecture} is not supported, because it pools its tokens by {quote(pool)}.")
    crop_mode = cfg.string("crop_mode", "center")
    if crop_mode not in ("center", "squash"):
        raise PresetError(f"this {architecture} is not supported, because its crop mode is {quote(crop_mode)}.")
    size = arguments.sizes("img_size", 2, None) or cfg.sizes("input_size", 3, (3, 224, 224))[1:]
    num_classes = fields.integer("num_classes", 0, limits.MAX_CLASSES, None)
    if num_classes is None:
        num_classes = cfg.integer("num_classes", 0, limits.MAX_CLASSES, 0)
    labels = fields.strings("label_names") or cfg.strings("label_names")
    if len(labels) == 1000 and re.fullmatch(r"n\d{8}", labels[0]):
        labels = ()  # timm's names of ImageNet's classes are WordNet ids
    if not labels and num_classes == 1000:
        labels = IMAGENET_LABELS
    known = "mean" in cfg and "std" in cfg
    return ParsedConfig(
        hints=ConfigHints(
            num_heads=arguments.integer("num_heads", 1, limits.MAX_HEADS, NUM_HEADS[plain[1] or plain[2]]),
            image_size=_square(size),
            pool="mean" if pool == "avg" else "cls",
        ),
        labels=labels,
        mean=cfg.channels("mean", *MEANS, IMAGENET_INCEPTION_MEAN),
        std=cfg.channels("std", *STDS, IMAGENET_INCEPTION_STD),
        crop_fraction=cfg.number("crop_pct", *CROPS, 0.9),
        interpolation=cfg.choice("interpolation", INTERPOLATIONS, "bicubic"),
        note="" if known else "Its config has no mean and standard deviation; 0.5 is assumed for both.",
    )


def parse_transformers_config(config: dict[str, Any], preprocessor: dict[str, Any] | None) -> ParsedConfig:
    """Parses transformers' ``config.json`` and, if there is one, ``preprocessor_config.json``.

    Raises:
        PresetError: If the model is of another type or has an unsupported part, or a field has an invalid value.
    """
    fields = Fields(config, "config.json")
    if "model_type" not in fields:
        raise PresetError("its config.json has neither timm's architecture nor transformers' model_type.")
    kind = fields.string("model_type")
    if kind not in MODEL_TYPES:
        raise PresetError(
            f"a model of type {quote(kind)} is not supported, because only {', '.join(sorted(MODEL_TYPES))} of "
            "transformers and timm's plain ViTs are: see docs/models.md."
        )
    activation = fields.string("hidden_act", "gelu")
    if activation != "gelu":
        raise PresetError(f"this model is not supported, because its activation is {quote(activation)}.")
    if fields.boolean("use_swiglu_ffn", False):
        raise PresetError("this model is not supported, because its MLP is SwiGLU.")
    is_dino = kind.startswith("dinov2")
    classifies = any("Classification" in name for name in fields.strings("architectures"))
    found = Fields(preprocessor or {}, "preprocessor_config.json", nullable=True)
    rescale_factor = found.number("rescale_factor", 0, 1e6, 1 / 255)
    if found.boolean("do_rescale", True) and abs(255 * rescale_factor - 1) > 1e-3:
        raise PresetError("this model is not supported, because its pixels are not scaled to the range 0 to 1.")
    mean, std = (
        found.channels("image_mean", *MEANS, IMAGENET_INCEPTION_MEAN),
        found.channels("image_std", *STDS, IMAGENET_INCEPTION_STD),
    )
    normalised = found.boolean("do_normalize", True)
    return ParsedConfig(
        hints=ConfigHints(
            num_heads=fields.integer("num_attention_heads", 1, limits.MAX_HEADS, 12),
            image_size=_square(fields.sizes("image_size", 2, (224, 224))),
            norm_eps=fields.number("layer_norm_eps", 0, 0.1, 1e-6 if is_dino else 1e-12),
            pool="cls+mean" if is_dino and classifies else "cls",
        ),
        labels=fields.numbered_strings("id2label"),
        mean=mean if normalised else (0.0, 0.0, 0.0),
        std=std if normalised else (1.0, 1.0, 1.0),
        crop_fraction=_crop_fraction(found),
        interpolation=INTERPOLATIONS[found.choice("resample", range(len(INTERPOLATIONS)), 2)],
        note="" if preprocessor else "It has no preprocessor_config.json; mean and standard deviation 0.5 are assumed.",
    )


def _crop_fraction(preprocessor: Fields) -> float:
    """Share of the resized photo's shorter side that the centre crop keeps; 1 if nothing is cropped.

    Raises:
        PresetError: If a size is invalid, or the crop keeps too little.
    """
    kept, shorter = _shorter_side(preprocessor, "crop_size"), _shorter_side(preprocessor, "size")
    if not preprocessor.boolean("do_center_crop", False) or kept is None or shorter is None:
        return 1.0
    if kept / shorter < CROPS[0]:
        raise PresetError(f"this model is not supported, because its crop keeps only {kept} of {shorter} px.")
    return min(1.0, kept / shorter)


def _shorter_side(preprocessor: Fields, key: str) -> int | None:
    """A size given as a number, or as an object with ``shortest_edge`` or ``height``; None if it is missing."""
    if key not in preprocessor or isinstance(preprocessor.values[key], int):
        return preprocessor.integer(key, 1, limits.MAX_IMAGE_SIZE, None)
    size = preprocessor.nested(key)
    if not size.values:
        return None
    return size.integer("shortest_edge" if "shortest_edge" in size else "height", 1, limits.MAX_IMAGE_SIZE)


def _square(size: tuple[int, ...]) -> int:
    """The side of a square input.

    Raises:
        PresetError: If height and width differ.
    """
    height, width = size
    if height != width:
        raise PresetError(f"this model is not supported, because its input is {height} x {width}, not a square.")
    return height
