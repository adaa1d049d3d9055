"""How a network's pictures are prepared and its classes are called, by the library that it is from.

A repository or folder says so in ``config.json`` and in the file of its processor; a network in memory in its attribute
``pretrained_cfg`` (timm) or ``config`` (transformers). timm's own transform, or transformers' own processor, is made of
that, and what this package prepares is compared with what it gives of a probe picture. A network of open_clip has its
own ``preprocess_cfg``. transformers and torchvision keep no preprocessing in a network: that of its family's published
weights is assumed, and a note says so.
"""

import json
import math
import re
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from vit_demo.defaults import CropMode
from vit_demo.errors import PresetError
from vit_demo.images.photo_preprocess import MOST_CROP, preprocess
from vit_demo.images.rgb import MAX_SIDE
from vit_demo.sentences import joined, sentence
from vit_demo.weights import limits
from vit_demo.weights.hub.allowed import (
    ALLOWED_PROCESSORS,
    INTERPOLATIONS,
    LEAST_CROP,
    MEAN,
    PROCESSOR_FIELDS,
    PROCESSORS,
    STD,
    TIMM_CFG,
)
from vit_demo.weights.hub.json_fields import TEXT, Fields, choice
from vit_demo.weights.imagenet import CLIP, IMAGENET_DEFAULT, IMAGENET_INCEPTION, IMAGENET_LABELS
from vit_demo.weights.untrusted_text import quote, sanitize

LEVELS = 2.01  # largest difference from what a library prepares, of 255: its filters round in another way
NEAREST = "With its filter, nearest, a few pixels may differ from its library's, and many above {0} pixels."
MOST_PROVED = 1024  # side in pixels of the probe's input by timm, for little memory
NO_NAMES = "Its id2label does not name its classes one by one, so they have numbers."
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


PREPARED = ("mean", "std", "crop_fraction", "crop_mode", "interpolation")  # fields of ``Preset``, too

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
"""Models whose input has the size of the preprocessing, whatever ``image_size`` they were trained with."""


def preprocessing_of(module: nn.Module) -> Preprocessing:
    """What a network in memory, or one within it, says of itself."""
    for part in module.modules():  # a wrapper says nothing
        known: Any = getattr(part, "pretrained_cfg", None)
        config: Any = getattr(part, "config", None)
        size = getattr(part, "image_size", getattr(config, "image_size", None))
        if isinstance(size, tuple) and len({*size}) == 1:
            size = size[0]
        try:
            if isinstance(stated := getattr(part, "preprocess_cfg", None), dict):
                return _open_clip(json.loads(json.dumps(stated, default=str)))
            if isinstance(known, dict) and "input_size" in known:
                fixed = getattr(getattr(part, "patch_embed", None), "img_size", None)
                arguments = {"img_size": fixed} if fixed else {}
                return _parsed({"architecture": "", "pretrained_cfg": known, "model_args": arguments})
            if hasattr(config, "model_type") and hasattr(config, "to_dict"):
                return _of_config(module, config.to_dict())
        except PresetError as error:
            return _unknown(size if isinstance(size, int) else Preprocessing.image_size, f" ({error})")
        if isinstance(size, int):
            return _torchvision(part) if type(part).__module__.startswith("torchvision.") else _unknown(size)
    return _unknown(Preprocessing.image_size)


def _open_clip(values: dict[str, Any]) -> Preprocessing:
    """What a network's ``preprocess_cfg`` says: torchvision resizes the shorter side, or both, and crops."""
    fields = Fields(values, "preprocess_cfg", nullable=True)
    is_squashed = fields.get("resize_mode", choice("shortest", "squash"), "shortest") == "squash"
    return Preprocessing(
        image_size=_square(fields.sizes("size", 2, (224, 224))),
        mean=tuple(fields.get("mean", MEAN, CLIP["mean"])),
        std=tuple(fields.get("std", STD, CLIP["std"])),
        crop_mode="squash" if is_squashed else "center",
        interpolation=fields.get("interpolation", choice("bicubic", "bilinear"), "bicubic"),
    )


def _of_config(module: nn.Module, config: dict[str, Any]) -> Preprocessing:
    """What a config of transformers says, whether or not its names can be used."""
    if config["model_type"] == "timm_wrapper":
        inner = next(vars(one)["pretrained_cfg"] for one in module.modules() if "pretrained_cfg" in vars(one))
        return _parsed({**config, "pretrained_cfg": config.get("pretrained_cfg") or inner})
    try:
        return _parsed(config)
    except PresetError:
        found = _parsed({**config, "id2label": None})
        return replace(found, note=joined(found.note, NO_NAMES))


def _parsed(values: dict[str, Any]) -> Preprocessing:
    return _of_json(json.dumps(values, default=str))


@lru_cache(maxsize=64)
def _of_json(config: str) -> Preprocessing:
    """As a JSON file has it; kept, because networks in memory are asked again and again."""
    return parse_preprocessing(json.loads(config))


def _unknown(size: int, reason: str = "") -> Preprocessing:
    assumed = f": {size} pixels, the central square, bicubic, and ImageNet's mean and standard deviation are assumed"
    return Preprocessing(image_size=size, note=UNKNOWN + reason + assumed + ". Pass transform= if that is wrong.")


def _torchvision(module: Any) -> Preprocessing:
    """What the size tells: 384, 512 and 518 pixels are those of SWAG's weights, and so is ViT-H/14 at any size."""
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


def parse_preprocessing(config: dict[str, Any], processor: dict[str, Any] | None = None) -> Preprocessing:
    """Parses ``config.json`` and, for transformers, what the file of its processor says, if there is one."""
    try:
        with warnings.catch_warnings(action="ignore"), torch.device("cpu"):  # whatever the default device is
            return _timm(config) if "architecture" in config else _transformers(config, processor)
    except PresetError:
        raise
    except Exception as error:  # whatever a library raises for the arguments of a stranger
        reason = sanitize(str(error).strip().partition("\n")[0], limits.MAX_QUOTE_LENGTH)
        raise PresetError(f"this model is not supported, because its processor cannot be used ({reason}).") from error


def _timm(config: dict[str, Any]) -> Preprocessing:
    from timm.data import ImageNetInfo, create_transform, resolve_data_config  # importing them takes long

    fields = Fields(config, "config.json", nullable=True)
    cfg = fields.nested("pretrained_cfg") if "pretrained_cfg" in fields else fields  # flat, as older files are
    size = fields.nested("model_args", nullable=False).sizes("img_size", 2, None)
    side = _square(size or cfg.sizes("input_size", 3, (3, 224, 224))[1:])
    labels = fields.texts("label_names") or cfg.texts("label_names") or cfg.texts("labels")
    if labels and re.fullmatch(r"n\d{8}", labels[0]):  # timm's names of ImageNet's classes are WordNet ids
        known = dict(zip(ImageNetInfo().label_names(), IMAGENET_LABELS, strict=True))
        labels = tuple(known.get(label, label) for label in labels)
    stated = {key: cfg.get(key, kind) for key, kind in TIMM_CFG.items() if key in cfg}
    data = resolve_data_config({"img_size": min(side, MOST_PROVED)}, stated)  # its fields are shares of any side
    found = Preprocessing(
        image_size=side,
        labels=labels,
        mean=tuple(data["mean"]),
        std=tuple(data["std"]),
        crop_fraction=data["crop_pct"],
        crop_mode=data["crop_mode"],
        interpolation=data["interpolation"],
        note="" if {"mean", "std"} <= stated.keys() else "Its config has no mean and standard deviation: ImageNet's.",
    )
    return _proved(create_transform(**data)(_probe()), [found])


def _transformers(config: dict[str, Any], processor: dict[str, Any] | None) -> Preprocessing:
    fields = Fields(config, "config.json")
    vision = fields.nested("vision_config") if "vision_config" in fields else fields
    kind, size = fields.get("model_type", TEXT, ""), _square(vision.sizes("image_size", 2, (224, 224)))
    usual = PUBLISHED.get(kind) or _unknown(size)
    note = usual.note or sentence(
        "It does not say how its photos are prepared: as for the published models of its type, {0}.", kind
    )
    found = replace(usual, note=note) if processor is None else _processed(kind, processor, size)
    takes_any = kind in ANY_SIZE and found.image_size % vision.sizes("patch_size", 2, (16, 16))[0] == 0
    if not takes_any and found.image_size != size:
        if processor is not None:
            differs = "Its processor gives {0} pixels, its network takes {1}: the same part of the photo at that size."
            found = replace(found, note=joined(found.note, sentence(differs, found.image_size, size)))
        found = replace(found, image_size=size)
    return replace(
        found,
        labels=fields.numbered_texts("id2label"),
        problem_type=Fields(config, "config.json", nullable=True).get("problem_type", TEXT, ""),
    )


def _processed(kind: str, values: dict[str, Any], size: int) -> Preprocessing:
    """What transformers' own processor does for a network of a size, made by an allowed name of bounded values."""
    import transformers

    fields = Fields(values, "preprocessor_config.json", nullable=True)
    named = fields.get("image_processor_type", TEXT, fields.get("feature_extractor_type", TEXT, ""))
    default = PROCESSORS.get(kind.partition("_")[0], "ViT")
    name = re.sub(r"(ImageProcessor|FeatureExtractor)(Fast|Pil)?\Z", "", named) or default
    if name not in ALLOWED_PROCESSORS:
        raise PresetError(f"this model is not supported, because {quote(named)} prepares its photos.")
    made: Any = getattr(transformers, f"{name}ImageProcessor")
    kinds = {key: value for key, value in PROCESSOR_FIELDS.items() if key in made.valid_kwargs.__annotations__}
    # A null is handed on: it is not the default of the class.
    processor = made(**{key: fields.get(key, kind, None) for key, kind in kinds.items() if key in values})
    if not processor.do_resize:
        raise PresetError("this model is not supported, because its photos are not resized.")
    expected = processor(_probe(), return_tensors="pt")["pixel_values"][0]
    side = _square(expected.shape[1:], "its photos become")
    scale = 255 * processor.rescale_factor if processor.do_rescale else 255.0
    scale = 1.0 if abs(scale - 1) < 1e-9 else scale  # of pixels in [0, 1]
    mean, std = (processor.image_mean, processor.image_std) if processor.do_normalize else ((0.0,) * 3, (1.0,) * 3)
    resized = processor.size.shortest_edge or processor.size.height or side
    share = side / resized
    share = share if int(side / share) == resized else math.nextafter(share, 0)
    if not LEAST_CROP <= share <= MOST_CROP:
        raise PresetError(f"this model is not supported, because its crop keeps {side} of {resized} px.")
    usual = Preprocessing(
        image_size=side,
        mean=tuple(value / scale for value in mean),
        std=tuple(value / scale for value in std),
        crop_fraction=share,
        crop_mode="floor" if processor.size.shortest_edge else "squash",
        interpolation="bilinear" if processor.resample is None else INTERPOLATIONS[processor.resample],
    )
    candidates = [usual]
    if kept := getattr(processor, "crop_pct", None):  # which matters to small sizes alone
        candidates += [replace(usual, crop_mode="floor", crop_fraction=kept)]
        candidates += [replace(usual, crop_mode="squash", crop_fraction=1.0)]
    return _proved(expected, candidates)


@lru_cache(maxsize=1)
def _probe() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (301, 226, 3), np.uint8))


def _proved(expected: Tensor, candidates: list[Preprocessing]) -> Preprocessing:
    """The first candidate that gives what a library's own gives of the probe picture; ``PresetError`` if none does."""
    off = math.inf
    for known in candidates:
        options = {name: getattr(known, name) for name in PREPARED}
        found = preprocess(_probe(), image_size=expected.shape[2], patch_size=1, **options)[0][0]
        of_255 = 255 * expected.new_tensor(known.std)[:, None, None]
        as_it_is, swapped = (float(((one - expected).abs() * of_255).max()) for one in (found, found.flip(0)))
        if as_it_is <= LEVELS:
            said = sentence(NEAREST, f"{MAX_SIDE:,}") if known.interpolation == "nearest" else ""
            return replace(known, note=joined(known.note, said))
        if swapped <= LEVELS:
            raise PresetError("this model is not supported, because its channels are in the order blue, green, red.")
        off = min(off, as_it_is)
    raise PresetError(
        f"this model is not supported, because its processor prepares photos in a way of its own, {off:.0f} of 255 "
        "levels from ours."
    )


def _square(size: tuple[int, ...], what: str = "its input is") -> int:
    """The side of a square input; no other is supported."""
    if size[0] != size[1]:
        raise PresetError(f"this model is not supported, because {what} {size[0]} x {size[1]}, not a square.")
    return size[0]
