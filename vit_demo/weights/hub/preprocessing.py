"""What a ``config.json`` of timm or of transformers says beside the network: preprocessing and the names of classes."""

import re
from dataclasses import dataclass
from typing import Any

from vit_demo.errors import PresetError
from vit_demo.weights import limits
from vit_demo.weights.hub.json_fields import BOOLEAN, TEXT, Fields, choice, list_of, number, whole
from vit_demo.weights.hub.untrusted_text import quote
from vit_demo.weights.imagenet import IMAGENET_DEFAULT, IMAGENET_INCEPTION, IMAGENET_LABELS

INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic")
"""Indexed by Pillow's constants."""
MEAN, STD = list_of(number(-10, 10), 3), list_of(number(1e-3, 100), 3)
"""Of the channels, for pixels in [0, 1]."""
LEAST_CROP = 0.25
"""The smallest crop fraction."""
SIZE = whole(1, limits.MAX_IMAGE_SIZE)


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """How a photo becomes the input, and what the outputs mean; the fields are those of ``Preset``.

    Without class names ``labels`` is empty. ``note`` is one sentence about what had to be assumed, if anything was.
    """

    image_size: int = 224
    labels: tuple[str, ...] = ()
    mean: tuple[float, ...] = IMAGENET_DEFAULT["mean"]
    std: tuple[float, ...] = IMAGENET_DEFAULT["std"]
    crop_fraction: float = 1.0
    interpolation: str = "bicubic"
    note: str = ""


def parse_preprocessing(config: dict[str, Any], preprocessor: dict[str, Any] | None) -> Preprocessing:
    """Parses ``config.json`` and, for transformers, ``preprocessor_config.json`` if there is one."""
    return _timm(config) if "architecture" in config else _transformers(config, preprocessor)


def _timm(config: dict[str, Any]) -> Preprocessing:
    fields = Fields(config, "config.json", nullable=True)
    arguments, cfg = fields.nested("model_args", nullable=False), fields.nested("pretrained_cfg")
    crop_mode = cfg.get("crop_mode", TEXT, "center")
    if crop_mode not in ("center", "squash"):
        raise PresetError(f"this model is not supported, because its crop mode is {quote(crop_mode)}.")
    size = arguments.sizes("img_size", 2, None) or cfg.sizes("input_size", 3, (3, 224, 224))[1:]
    labels = fields.texts("label_names") or cfg.texts("label_names")
    if len(labels) == 1000 and re.fullmatch(r"n\d{8}", labels[0]):
        labels = IMAGENET_LABELS  # timm's names of ImageNet's classes are WordNet ids
    known = "mean" in cfg and "std" in cfg
    return Preprocessing(
        image_size=_square(size),
        labels=labels,
        mean=tuple(cfg.get("mean", MEAN, IMAGENET_INCEPTION["mean"])),
        std=tuple(cfg.get("std", STD, IMAGENET_INCEPTION["std"])),
        crop_fraction=cfg.get("crop_pct", number(LEAST_CROP, 1), 0.9),
        interpolation=cfg.get("interpolation", choice(*INTERPOLATIONS), "bicubic"),
        note="" if known else "Its config has no mean and standard deviation; 0.5 is assumed for both.",
    )


def _transformers(config: dict[str, Any], preprocessor: dict[str, Any] | None) -> Preprocessing:
    fields = Fields(config, "config.json")
    vision = fields.nested("vision_config") if "vision_config" in fields else fields
    found = Fields(preprocessor or {}, "preprocessor_config.json", nullable=True)
    rescale_factor = found.get("rescale_factor", number(0, 1e6), 1 / 255)
    if found.get("do_rescale", BOOLEAN, True) and abs(255 * rescale_factor - 1) > 1e-3:
        raise PresetError("this model is not supported, because its pixels are not scaled to the range 0 to 1.")
    mean = found.get("image_mean", MEAN, IMAGENET_INCEPTION["mean"])
    std = found.get("image_std", STD, IMAGENET_INCEPTION["std"])
    normalised = found.get("do_normalize", BOOLEAN, True)
    return Preprocessing(
        image_size=_square(vision.sizes("image_size", 2, (224, 224))),
        labels=fields.numbered_texts("id2label"),
        mean=tuple(mean) if normalised else (0.0, 0.0, 0.0),
        std=tuple(std) if normalised else (1.0, 1.0, 1.0),
        crop_fraction=_crop_fraction(found),
        interpolation=INTERPOLATIONS[found.get("resample", choice(*range(len(INTERPOLATIONS))), 2)],
        note="" if preprocessor else "It has no preprocessor_config.json; mean and standard deviation 0.5 are assumed.",
    )


def _crop_fraction(preprocessor: Fields) -> float:
    """Share of the resized photo's shorter side that the centre crop keeps; 1 if nothing is cropped."""
    kept, shorter = _shorter_side(preprocessor, "crop_size"), _shorter_side(preprocessor, "size")
    if not preprocessor.get("do_center_crop", BOOLEAN, False) or kept is None or shorter is None:
        return 1.0
    if kept / shorter < LEAST_CROP:
        raise PresetError(f"this model is not supported, because its crop keeps only {kept} of {shorter} px.")
    return min(1.0, kept / shorter)


def _shorter_side(preprocessor: Fields, key: str) -> int | None:
    """A size given as a number, or as an object with ``shortest_edge`` or ``height``; None if it is missing."""
    if key not in preprocessor or isinstance(preprocessor.values[key], int):
        return preprocessor.get(key, SIZE, None)
    size = preprocessor.nested(key)
    if not size.values:
        return None
    return size.get("shortest_edge" if "shortest_edge" in size else "height", SIZE)


def _square(size: tuple[int, ...]) -> int:
    """The side of a square input; no other is supported."""
    height, width = size
    if height != width:
        raise PresetError(f"this model is not supported, because its input is {height} x {width}, not a square.")
    return height
