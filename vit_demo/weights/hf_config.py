"""What the two libraries' ``config.json`` say about a model, in our terms; what they leave out, and what we cannot do.

A network that its tensors do not betray, such as one with another activation, must be refused here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from vit_demo.errors import PresetError
from vit_demo.weights import limits
from vit_demo.weights.convert import Untold
from vit_demo.weights.hub_presets import HALF, IMAGENET_LABELS
from vit_demo.weights.json_fields import Fields
from vit_demo.weights.text import clean, quoted

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
INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic")
"""In the order in which Pillow numbers them."""
MODEL_TYPES = {"vit", "deit", "dinov2", "dinov2_with_registers"}
MEANS, STDS, CROPS = (-10.0, 10.0), (1e-3, 100.0), (0.25, 1.0)
"""What a channel's mean and deviation may be, for pixels from 0 to 1, and the share of a photo that a crop keeps."""


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
        PresetError: If the architecture is not a plain ViT, which the sentence names, or a field holds nonsense.
    """
    fields = Fields(config, "config.json", nullable=True)
    architecture = fields.text("architecture")
    plain = PLAIN.fullmatch(architecture)
    if plain is None:
        raise PresetError(
            f"timm's {clean(architecture, limits.MAX_QUOTE)} is not supported, because only its plain ViT, DeiT and "
            "FlexiViT are: see docs/models.md."
        )
    arguments = fields.section("model_args", nullable=False)
    cfg = fields.section("pretrained_cfg")
    unknown = set(arguments.values) - TOLD_BY_TENSORS - WITHOUT_EFFECT - {"num_heads", "img_size", "global_pool"}
    if unknown:
        made_with = clean(", ".join(sorted(unknown)), limits.MAX_QUOTE)
        raise PresetError(f"this {architecture} is not supported, because it was made with {made_with}.")
    pool = fields.text("global_pool", "") or arguments.text("global_pool", "") or "token"
    if pool not in ("token", "avg"):
        raise PresetError(f"this {architecture} is not supported, because it pools its tokens by {quoted(pool)}.")
    crop_mode = cfg.text("crop_mode", "center")
    if crop_mode not in ("center", "squash"):
        raise PresetError(f"this {architecture} is not supported, because its crop mode is {quoted(crop_mode)}.")
    size = arguments.sizes("img_size", 2, None) or cfg.sizes("input_size", 3, (3, 224, 224))[1:]
    num_classes = fields.whole("num_classes", 0, limits.MAX_CLASSES, None)
    if num_classes is None:
        num_classes = cfg.whole("num_classes", 0, limits.MAX_CLASSES, 0)
    labels = fields.names("label_names") or cfg.names("label_names")
    if len(labels) == 1000 and re.fullmatch(r"n\d{8}", labels[0]):
        labels = ()  # timm names ImageNet's classes by their WordNet numbers
    if not labels and num_classes == 1000:
        labels = IMAGENET_LABELS
    known = "mean" in cfg and "std" in cfg
    return Description(
        untold=Untold(
            num_heads=arguments.whole("num_heads", 1, limits.MAX_HEADS, HEADS[plain[1] or plain[2]]),
            image_size=_square(size),
            pool="mean" if pool == "avg" else "cls",
        ),
        labels=labels,
        mean=cfg.channels("mean", *MEANS, HALF),
        std=cfg.channels("std", *STDS, HALF),
        crop_fraction=cfg.number("crop_pct", *CROPS, 0.9),
        interpolation=cfg.choice("interpolation", INTERPOLATIONS, "bicubic"),
        note="" if known else "Its mean and standard deviation are not given, so 0.5 is assumed.",
    )


def describe_transformers(config: dict[str, Any], preprocessor: dict[str, Any] | None) -> Description:
    """Reads transformers' ``config.json`` and, where it is there, ``preprocessor_config.json``.

    Raises:
        PresetError: If the model is of another type, or has a part that is not supported, which the sentence names, or
            a field holds nonsense.
    """
    fields = Fields(config, "config.json")
    if "model_type" not in fields:
        raise PresetError("its config.json names neither timm's architecture nor transformers' model_type.")
    kind = fields.text("model_type")
    if kind not in MODEL_TYPES:
        raise PresetError(
            f"a model of type {quoted(kind)} is not supported, because only {', '.join(sorted(MODEL_TYPES))} of "
            "transformers and timm's plain ViTs are: see docs/models.md."
        )
    activation = fields.text("hidden_act", "gelu")
    if activation != "gelu":
        raise PresetError(f"this model is not supported, because its activation is {quoted(activation)}.")
    if fields.flag("use_swiglu_ffn", False):
        raise PresetError("this model is not supported, because its MLP is SwiGLU.")
    is_dino = kind.startswith("dinov2")
    classifies = any("Classification" in name for name in fields.names("architectures"))
    found = Fields(preprocessor or {}, "preprocessor_config.json", nullable=True)
    rescale_factor = found.number("rescale_factor", 0, 1e6, 1 / 255)
    if found.flag("do_rescale", True) and abs(255 * rescale_factor - 1) > 1e-3:
        raise PresetError("this model is not supported, because its pixels are not scaled to the range 0 to 1.")
    mean, std = found.channels("image_mean", *MEANS, HALF), found.channels("image_std", *STDS, HALF)
    normalised = found.flag("do_normalize", True)
    return Description(
        untold=Untold(
            num_heads=fields.whole("num_attention_heads", 1, limits.MAX_HEADS, 12),
            image_size=_square(fields.sizes("image_size", 2, (224, 224))),
            norm_eps=fields.number("layer_norm_eps", 0, 0.1, 1e-6 if is_dino else 1e-12),
            pool="cls+mean" if is_dino and classifies else "cls",
        ),
        labels=fields.numbered_names("id2label"),
        mean=mean if normalised else (0.0, 0.0, 0.0),
        std=std if normalised else (1.0, 1.0, 1.0),
        crop_fraction=_crop_fraction(found),
        interpolation=INTERPOLATIONS[found.choice("resample", range(len(INTERPOLATIONS)), 2)],
        note="" if preprocessor else "It has no preprocessor_config.json, so a mean and deviation of 0.5 are assumed.",
    )


def _crop_fraction(preprocessor: Fields) -> float:
    """What a centre crop keeps of the resized photo's shorter side; all of it where nothing is cropped.

    Raises:
        PresetError: If the sizes are none, or it keeps too little.
    """
    kept, shorter = _shorter_side(preprocessor, "crop_size"), _shorter_side(preprocessor, "size")
    if not preprocessor.flag("do_center_crop", False) or kept is None or shorter is None:
        return 1.0
    if kept / shorter < CROPS[0]:
        raise PresetError(f"this model is not supported, because it sees only {kept} of a photo's {shorter} px.")
    return min(1.0, kept / shorter)


def _shorter_side(preprocessor: Fields, key: str) -> int | None:
    """A size that is a number, or an object with ``shortest_edge`` or ``height``; None where it is missing."""
    if key not in preprocessor or isinstance(preprocessor.values[key], int):
        return preprocessor.whole(key, 1, limits.MAX_IMAGE_SIZE, None)
    size = preprocessor.section(key)
    if not size.values:
        return None
    return size.whole("shortest_edge" if "shortest_edge" in size else "height", 1, limits.MAX_IMAGE_SIZE)


def _square(size: tuple[int, ...]) -> int:
    """The side of a square.

    Raises:
        PresetError: If it is none.
    """
    height, width = size
    if height != width:
        raise PresetError(f"this model is not supported, because its input is {height} x {width}, not a square.")
    return height
