"""How a network's pictures are prepared and its classes are called, by the library that it is from.

A repository or folder says so in ``config.json`` and ``preprocessor_config.json``; a network in memory in its attribute
``pretrained_cfg`` (timm) or ``config`` (transformers), which are read in the same way. transformers and torchvision
keep no preprocessing in a network: that of its family's published weights is assumed, and a note says so.
"""

import json
import math
import re
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from vit_demo.defaults import CropMode
from vit_demo.errors import PresetError
from vit_demo.sentences import sentence
from vit_demo.weights import limits
from vit_demo.weights.hub.json_fields import BOOLEAN, TEXT, Fields, choice, list_of, number, whole
from vit_demo.weights.imagenet import CLIP, IMAGENET_DEFAULT, IMAGENET_INCEPTION, IMAGENET_LABELS

INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic")
"""Indexed by Pillow's constants."""
RESAMPLE = choice(*range(len(INTERPOLATIONS)))
MEAN, STD = list_of(number(-10, 10), 3), list_of(number(1e-3, 100), 3)
"""Of the channels, for pixels in [0, 1]."""
LEAST_CROP = 0.25
"""The smallest crop fraction."""
SIZE = whole(1, limits.MAX_IMAGE_SIZE)
UNKNOWN = "This network does not say how its photos are prepared"


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """How a photo becomes the input, and what the outputs mean; the fields are those of ``Preset``.

    Without class names ``labels`` is empty. ``note`` says what had to be assumed, if anything was. ``problem_type`` is
    that of transformers; empty where it is not stated.
    """

    image_size: int = 224
    labels: tuple[str, ...] = ()
    mean: tuple[float, ...] = IMAGENET_DEFAULT["mean"]
    std: tuple[float, ...] = IMAGENET_DEFAULT["std"]
    crop_fraction: float = 1.0
    crop_mode: CropMode = "center"
    interpolation: str = "bicubic"
    problem_type: str = ""
    note: str = ""

    @property
    def is_known(self) -> bool:
        """Whether anything but the size is known."""
        return not self.note.startswith(UNKNOWN)


PREPARED = ("mean", "std", "crop_fraction", "crop_mode", "interpolation")
"""The fields that a ``Preset`` takes as they are."""

_SQUASHED = Preprocessing(crop_mode="squash", interpolation="bilinear", **IMAGENET_INCEPTION)
PUBLISHED = {
    **dict.fromkeys(("vit", "beit"), _SQUASHED),
    **dict.fromkeys(("vit_msn", "dinov3_vit"), replace(_SQUASHED, **IMAGENET_DEFAULT)),
    **dict.fromkeys(("siglip", "siglip_vision_model"), replace(_SQUASHED, interpolation="bicubic")),
    **dict.fromkeys(("clip", "clip_vision_model"), Preprocessing(crop_mode="floor", **CLIP)),
    **dict.fromkeys(("dinov2", "dinov2_with_registers"), Preprocessing(crop_mode="floor", crop_fraction=0.875)),
    "deit": Preprocessing(crop_fraction=0.875, crop_mode="squash"),
}
"""The preprocessing of the published weights of each ``model_type`` of transformers."""
ANY_SIZE = ("dinov2", "dinov2_with_registers", "dinov3_vit")
"""Those whose input has the size that the preprocessing gives it, whatever ``image_size`` they were trained with."""


def preprocessing_of(module: nn.Module) -> Preprocessing:
    """What a network in memory, or one within it, says of itself."""
    for part in module.modules():  # a wrapper says nothing
        known: Any = getattr(part, "pretrained_cfg", None)
        config: Any = getattr(part, "config", None)
        size = getattr(part, "image_size", getattr(config, "image_size", None))
        try:
            if isinstance(known, dict) and "input_size" in known:
                fixed = getattr(getattr(part, "patch_embed", None), "img_size", None)
                return _timm(_plain({"pretrained_cfg": known, "model_args": {"img_size": fixed} if fixed else {}}))
            if hasattr(config, "model_type") and hasattr(config, "to_dict"):
                return _transformers(_plain(config.to_dict()), None)
        except PresetError as error:
            return _unknown(size if isinstance(size, int) else Preprocessing.image_size, f" ({error})")
        if isinstance(size, int):
            return _torchvision(part) if type(part).__module__.startswith("torchvision.") else _unknown(size)
    return _unknown(Preprocessing.image_size)


def _plain(values: dict[str, Any]) -> Any:
    """As a JSON file has it."""
    return json.loads(json.dumps(values, default=str))


def _unknown(size: int, reason: str = "") -> Preprocessing:
    assumed = f": {size} pixels, the central square, bicubic, and ImageNet's mean and standard deviation are assumed"
    return Preprocessing(image_size=size, note=UNKNOWN + reason + assumed + ". Pass transform= if that is wrong.")


def _torchvision(module: Any) -> Preprocessing:
    """Told by the size: 384, 512 and 518 pixels are those of SWAG's weights, and so is ViT-H/14 at any size."""
    size, width = module.image_size, module.hidden_dim
    is_swag = size in (384, 512, 518) or width == 1280
    weights = "SWAG's weights" if is_swag else "IMAGENET1K_V1"
    found = Preprocessing(
        image_size=size, note=sentence("It does not say how its photos are prepared: as for {0}.", weights)
    )
    if is_swag:
        return found
    kept = 0.9256 if (width, module.patch_size) == (1024, 16) else 0.875  # 224 of 242 or 256 pixels
    return replace(found, crop_fraction=kept, interpolation="bilinear")


def parse_preprocessing(config: dict[str, Any], preprocessor: dict[str, Any] | None) -> Preprocessing:
    """Parses ``config.json`` and, for transformers, ``preprocessor_config.json`` if there is one."""
    return _timm(config) if "architecture" in config else _transformers(config, preprocessor)


def _timm(config: dict[str, Any]) -> Preprocessing:
    fields = Fields(config, "config.json", nullable=True)
    arguments, cfg = fields.nested("model_args", nullable=False), fields.nested("pretrained_cfg")
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
        crop_mode=cfg.get("crop_mode", choice("center", "squash", "border"), "center"),
        interpolation=cfg.get("interpolation", choice(*INTERPOLATIONS), "bicubic"),
        note="" if known else "Its config has no mean and standard deviation; 0.5 is assumed for both.",
    )


def _transformers(config: dict[str, Any], preprocessor: dict[str, Any] | None) -> Preprocessing:
    fields = Fields(config, "config.json")
    vision = fields.nested("vision_config") if "vision_config" in fields else fields
    kind, size = fields.get("model_type", TEXT, ""), _square(vision.sizes("image_size", 2, (224, 224)))
    usual = PUBLISHED.get(kind) or _unknown(size)
    found = Fields(preprocessor or {}, "preprocessor_config.json", nullable=True)
    rescale_factor = found.get("rescale_factor", number(0, 1e6), 1 / 255)
    if found.get("do_rescale", BOOLEAN, True) and abs(255 * rescale_factor - 1) > 1e-3:
        raise PresetError("this model is not supported, because its pixels are not scaled to the range 0 to 1.")
    if not found.get("do_resize", BOOLEAN, True):
        raise PresetError("this model is not supported, because its photos are not resized.")
    mode, side, fraction = usual.crop_mode, usual.image_size, usual.crop_fraction
    if preprocessor is not None:
        mode, side, fraction = _fit(found, usual)
    normalised = found.get("do_normalize", BOOLEAN, True)
    assumed = sentence(
        "It does not say how its photos are prepared: as for the published models of its type, {0}.", kind
    )
    return Preprocessing(
        image_size=side if kind in ANY_SIZE and side % vision.sizes("patch_size", 2, (16, 16))[0] == 0 else size,
        labels=fields.numbered_texts("id2label"),
        mean=tuple(found.get("image_mean", MEAN, usual.mean)) if normalised else (0.0, 0.0, 0.0),
        std=tuple(found.get("image_std", STD, usual.std)) if normalised else (1.0, 1.0, 1.0),
        crop_fraction=fraction,
        crop_mode=mode,
        interpolation=INTERPOLATIONS[found.get("resample", RESAMPLE, INTERPOLATIONS.index(usual.interpolation))],
        problem_type=Fields(config, "config.json", nullable=True).get("problem_type", TEXT, ""),
        note="" if preprocessor is not None else usual.note or assumed,
    )


def _fit(processor: Fields, usual: Preprocessing) -> tuple[CropMode, int, float]:
    """How a processor of transformers fits a photo: the mode, the side of its result, and the share that is kept."""
    size, resized, kept = processor.values.get("size"), _side(processor, "size"), _side(processor, "crop_size")
    mode: CropMode = usual.crop_mode
    if isinstance(size, dict):
        mode = "floor" if "shortest_edge" in size else "squash"
    if not processor.get("do_center_crop", BOOLEAN, False) or kept is None or resized is None or kept >= resized:
        return mode, resized or usual.image_size, 1.0
    if kept / resized < LEAST_CROP:
        raise PresetError(f"this model is not supported, because its crop keeps only {kept} of {resized} px.")
    share = kept / resized
    return mode, kept, share if int(kept / share) == resized else math.nextafter(share, 0)


def _side(processor: Fields, key: str) -> int | None:
    """A size given as a number, or as an object with ``shortest_edge`` or ``height``; None if it is missing."""
    if not processor.values.get(key) or isinstance(processor.values[key], int):
        return processor.get(key, SIZE, None)
    size = processor.nested(key)
    return size.get("shortest_edge" if "shortest_edge" in size else "height", SIZE)


def _square(size: tuple[int, ...]) -> int:
    """The side of a square input; no other is supported."""
    height, width = size
    if height != width:
        raise PresetError(f"this model is not supported, because its input is {height} x {width}, not a square.")
    return height
