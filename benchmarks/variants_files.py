"""Folders as libraries save them, and photos, each beside what its library makes of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import timm
import torch
import transformers
from PIL import Image, ImageOps
from timm.data import create_transform, resolve_model_data_config
from torch import nn

import vit_demo
from benchmarks.variants_check import CAT, DifferentError, Work, close, seeded

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

LEVELS = 2.02
"""Largest difference of pixels from what a library's own processor gives, of 255: filters round in other ways."""
CROP = {"do_center_crop": True, "crop_size": {"height": 224, "width": 224}}
EDGE, SQUARE = {"shortest_edge": 256}, {"height": 256, "width": 256}
PROCESSORS: dict[str, tuple[str, dict[str, Any]]] = {
    "ViT's by default": ("ViT", {}),
    "no class is named": ("", {"size": {"height": 224, "width": 224}, "resample": 3}),
    "an extractor": ("", {"feature_extractor_type": "ViTFeatureExtractor", "size": 224, "image_mean": [0.2] * 3}),
    "nearest": ("ViT", {"resample": 0}),
    "lanczos": ("ViT", {"resample": 1}),
    "resample 5": ("ViT", {"resample": 5}),
    "not rescaled": ("ViT", {"do_rescale": False, "do_normalize": False}),
    "not rescaled, mean of levels": ("ViT", {"do_rescale": False, "image_mean": [120] * 3, "image_std": [60] * 3}),
    "rescaled to 2": ("ViT", {"rescale_factor": 2 / 255, "image_mean": [1] * 3, "image_std": [1] * 3}),
    "rescaled by little": ("ViT", {"rescale_factor": 1e-4}),
    "not normalised": ("Bit", {"do_normalize": False, **CROP}),
    "not resized": ("ViT", {"do_resize": False}),
    "an edge of 256 and a crop": ("Bit", {"size": EDGE, **CROP}),
    "an edge of 225 and a crop": ("Bit", {"size": {"shortest_edge": 225}, **CROP}),
    "an edge below the crop": ("Bit", {"size": {"shortest_edge": 150}, **CROP}),
    "an edge, not cropped": ("Bit", {"size": EDGE, "do_center_crop": False}),
    "CLIP's by default": ("CLIP", {}),
    "CLIP's, without RGB": ("CLIP", {"do_convert_rgb": False}),
    "CLIP's, fast": ("CLIPFast", {"resample": 2}),
    "CLIP's, squashed": ("CLIP", {"default_to_square": True, "size": SQUARE}),
    "DeiT's by default": ("DeiT", {}),
    "DeiT's, not cropped": ("DeiT", {"do_center_crop": False, "size": 224}),
    "DeiT's, an odd size": ("DeiT", {"size": {"height": 231, "width": 231}}),
    "BEiT's by default": ("Beit", {}),
    "BEiT's, cropped": ("Beit", {"size": SQUARE, **CROP}),
    "SigLIP's by default": ("Siglip", {}),
    "SigLIP's, bilinear": ("Siglip", {"resample": 2}),
    "ConvNeXt's by default": ("ConvNext", {}),
    "ConvNeXt's, 224": ("ConvNext", {"size": {"shortest_edge": 224}}),
    "ConvNeXt's, a share of 0.6": ("ConvNext", {"size": 224, "crop_pct": 0.6}),
    "MobileViT's, blue first": ("MobileViT", {"size": EDGE, **CROP}),
    "MobileViT's, red first": ("MobileViT", {"size": EDGE, **CROP, "do_flip_channel_order": False}),
    "DINOv3's by default": ("DINOv3ViT", {}),
    "of another family": ("Levit", {}),
    "of tiles": ("LlavaNext", {}),
    "padded": ("ViT", {"do_pad": True, "pad_size": {"height": 256, "width": 256}}),
    "grey": ("ViT", {"do_grayscale": True}),
    "two numbers of the mean": ("ViT", {"image_mean": [0.5, 0.5]}),
    "one number of the mean": ("ViT", {"image_mean": 0.5, "image_std": 0.5}),
    "a deviation of 0": ("ViT", {"image_std": [0, 0, 0]}),
    "texts for numbers": ("ViT", {"rescale_factor": "1/255"}),
}  # fmt: skip
"""Class of the processor of a ViT of transformers, and the further fields of its ``preprocessor_config.json``."""
TIMM: dict[str, dict[str, Any]] = {
    "nothing": {},
    "mean and deviation": {"mean": [0.1, 0.2, 0.3], "std": [0.3, 0.2, 0.1]},
    "a mean alone": {"mean": [0.5, 0.5, 0.5]},
    **{f"crop_pct {share}": {"crop_pct": share} for share in (0.7, 0.9, 0.95, 1.0)},
    **{f"by {mode}, 0.9": {"crop_mode": mode, "crop_pct": 0.9} for mode in ("center", "squash", "border")},
    **{one: {"interpolation": one} for one in ("bilinear", "lanczos", "nearest", "random")},
    "another size for tests": {"test_input_size": [3, 96, 96], "test_crop_pct": 1.0},
    "fixed size": {"fixed_input_size": True, "crop_pct": 0.8, "interpolation": "bilinear"},
    "one channel": {"input_size": [1, 64, 64], "mean": [0.5], "std": [0.5]},
}  # fmt: skip
"""``pretrained_cfg`` of a network of timm."""
LABELS = ["ant", "bee", "crane", "crane", "eel"]
ID2LABEL: dict[str, Any] = {
    "texts": dict(enumerate(["ant", "bee", "cat", "dog", "eel"])),
    "numbers": {i: 10 * i for i in range(5)},
    "twice one name": dict(enumerate(LABELS)),
    "spaces around": {i: f"  {name} \t" for i, name in enumerate(["a", "b", "c", "d", "e"])},
    "long": {i: "word " * 100 + str(i) for i in range(5)},
    "from 1": {i + 1: name for i, name in enumerate("abcde")},
    "not in order": {i: "abcde"[i] for i in (3, 1, 4, 0, 2)},
    "a gap": {0: "a", 1: "b", 2: "c", 3: "d", 7: "e"},
    "too few": {0: "a", 1: "b"},
    "empty": {0: "", 1: "", 2: "", 3: "", 4: ""},
    "lists": {i: ["a", "b"] for i in range(5)},
    "true and false": {i: bool(i) for i in range(5)},
    "null": dict.fromkeys(range(5)),
    "LABEL_0": {i: f"LABEL_{i}" for i in range(5)},
    "numbers of other classes": {i: str(4 - i) for i in range(5)},
}
"""``id2label`` of a ViT of transformers with five classes."""


def vit(**options: Any) -> Any:
    """A small ViT of transformers."""
    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48}
    config = transformers.ViTConfig(**{"image_size": 224, "patch_size": 32, "num_labels": 5} | shape | options)
    return seeded(lambda: transformers.ViTForImageClassification(config))


def processors() -> Iterator[tuple[str, Work]]:
    """A folder of transformers, by its own processor and network."""

    def work(kind: str, fields: dict[str, Any]) -> str:
        if kind:
            name = kind.removesuffix("Fast")
            fields = {"image_processor_type": f"{name}ImageProcessor{kind.removeprefix(name)}"} | fields
        with TemporaryDirectory() as folder:
            vit().save_pretrained(folder)
            (Path(folder) / "preprocessor_config.json").write_text(json.dumps(fields))
            ex = vit_demo.explore(CAT, folder)
            module = transformers.AutoModelForImageClassification.from_pretrained(folder).eval()
            expected = transformers.AutoImageProcessor.from_pretrained(folder)(CAT, return_tensors="pt")["pixel_values"]
        if ex.preprocessing.note and ex.pixels.shape != expected.shape:
            return ex.preprocessing.note  # transformers refuses to run it
        return compare(ex, module, expected)

    for name, (kind, fields) in PROCESSORS.items():
        yield name, partial(work, kind, fields)


def compare(ex: Any, module: nn.Module, expected: torch.Tensor) -> str:
    """Compares the pixels of a result with those of a library, and what its network makes of them."""
    std = torch.tensor(ex.preprocessing.std)[:, None, None]
    if "nearest, a few pixels may differ" not in ex.preprocessing.note:
        close(255 * std * ex.pixels, 255 * std * expected, "pixels", LEVELS)
    with torch.no_grad():
        output = module(ex.pixels)
    close(ex.probabilities, getattr(output, "logits", output).softmax(1)[0], "probabilities")
    return ex.preprocessing.note


def configs() -> Iterator[tuple[str, Work]]:
    """A folder of timm, by its own transform and network."""
    shape = {"img_size": 64, "embed_dim": 24, "depth": 2, "num_heads": 3}

    def work(cfg: dict[str, Any]) -> str:
        with TemporaryDirectory() as folder:
            module = seeded(partial(timm.create_model, "vit_tiny_patch16_224", num_classes=5, **shape))
            timm.models.save_for_hf(module, folder, safe_serialization=True)
            config = {"architecture": "vit_tiny_patch16_224", "num_classes": 5, "model_args": shape}
            config["pretrained_cfg"] = {"input_size": [3, 64, 64]} | cfg
            (Path(folder) / "config.json").write_text(json.dumps(config))
            ex = vit_demo.explore(CAT, folder)
            theirs = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
        return compare(ex, theirs, create_transform(**resolve_model_data_config(theirs))(CAT)[None])

    for name, cfg in TIMM.items():
        yield name, partial(work, cfg)


def names() -> Iterator[tuple[str, Work]]:
    """What the class of a photo is called, by transformers."""

    def work(id2label: dict[Any, Any], in_memory: bool) -> str:
        with TemporaryDirectory() as folder:
            module = vit()
            module.save_pretrained(folder)
            config = json.loads((file := Path(folder) / "config.json").read_text())
            file.write_text(json.dumps(config | {"id2label": {str(i): name for i, name in id2label.items()}}))
            if in_memory:
                module.config.id2label = id2label
            ex = vit_demo.explore(CAT, module if in_memory else folder)
        with torch.no_grad():
            index = int(module(ex.pixels).logits.argmax())
        label, number = ex.top(1)[0][0], index + (min(id2label) == 1)
        words = " ".join(str(id2label.get(number, "")).split())
        found = " ".join(label.removesuffix(f" ({index})").split())
        if not words or words.startswith("LABEL_"):  # it has no name
            words = found if found in (str(index), f"class {index}") else words
        is_said = "they have numbers" in ex.preprocessing.note or "which have numbers" in ex.preprocessing.note
        if not is_said and (number not in id2label or not words.startswith(found.removesuffix("…"))):
            raise DifferentError(f"{label!r}, not {words!r}: {ex.preprocessing.note}")
        return ex.preprocessing.note.partition("It does not say how")[0]

    for name, id2label in ID2LABEL.items():
        yield f"{name}, in a folder", partial(work, id2label, False)
        yield f"{name}, in memory", partial(work, id2label, True)


@cache
def of_timm(interpolation: str) -> nn.Module:
    """A small network of timm that says how its photos are prepared."""
    make = partial(
        timm.create_model, "vit_tiny_patch16_224", img_size=64, embed_dim=24, depth=2, num_heads=3, num_classes=5
    )
    module = seeded(make)
    module.pretrained_cfg = {
        "input_size": (3, 64, 64),
        "mean": (0.5,) * 3,
        "std": (0.2,) * 3,
        "crop_pct": 0.9,
        "interpolation": interpolation,
    }
    return module


def encoded(picture: Image.Image, kind: str, **options: Any) -> bytes:
    """A picture's file."""
    picture.save(buffer := io.BytesIO(), kind, **options)
    return buffer.getvalue()


def turned(by: int) -> bytes:
    """A photo that says in its metadata how it must be turned."""
    exif = Image.Exif()
    exif[274] = by
    return encoded(CAT, "PNG", exif=exif)


def grey16() -> bytes:
    """A grey picture of 16 bits."""
    return encoded(Image.fromarray(np.asarray(CAT.convert("L")).astype(np.uint16) * 257), "PNG")


def see_through() -> bytes:
    """A photo on a transparent ground."""
    picture = CAT.convert("RGBA")
    picture.putalpha(Image.linear_gradient("L").resize(CAT.size))
    return encoded(picture, "PNG")


def over_white(file: bytes) -> Image.Image:
    """The photo of a file on white."""
    picture = Image.open(io.BytesIO(file)).convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")


def upright(file: bytes) -> Image.Image:
    """The photo of a file as people see it."""
    return ImageOps.exif_transpose(Image.open(io.BytesIO(file))).convert("RGB")


def from16(file: bytes) -> Image.Image:
    """The same of 16 bits."""
    return Image.fromarray((np.asarray(Image.open(io.BytesIO(file))) / 257).round().astype(np.uint8)).convert("RGB")


SIZES = (
    (333, 251), (101, 100), (64, 64), (31, 17), (16, 16), (15, 40), (900, 40), (40, 900), (2048, 60), (2049, 700),
    (3000, 2000), (2500, 17),
)  # fmt: skip
PHOTOS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], Image.Image]]] = {
    **{f"{w} x {h}": (partial(lambda w, h: encoded(CAT.resize((w, h)), "PNG"), w, h), upright) for w, h in SIZES},
    "grey": (lambda: encoded(CAT.convert("L"), "PNG"), upright),
    "two colours": (lambda: encoded(CAT.convert("1"), "PNG"), upright),
    "a palette": (lambda: encoded(CAT.convert("P"), "PNG"), upright),
    "CMYK": (lambda: encoded(CAT.convert("CMYK"), "JPEG"), upright),
    "opaque RGBA": (lambda: encoded(CAT.convert("RGBA"), "PNG"), upright),
    "transparent RGBA": (see_through, over_white),
    "transparent palette": (lambda: encoded(CAT.convert("P"), "GIF", transparency=3), over_white),
    "16 bits": (grey16, from16),
    **{f"EXIF {by}": (partial(turned, by), upright) for by in (2, 3, 5, 6, 8)},
    "JPEG": (lambda: encoded(CAT, "JPEG", quality=60), upright),
    "progressive WebP": (lambda: encoded(CAT, "WEBP"), upright),
}  # fmt: skip


def photos() -> Iterator[tuple[str, Work]]:
    """Files of photos, as Pillow reads them and timm prepares them."""

    def work(make: Callable[[], bytes], read: Callable[[bytes], Image.Image], interpolation: str) -> str:
        file, module = make(), of_timm(interpolation)
        expected = create_transform(**resolve_model_data_config(module))(read(file))[None]
        return compare(vit_demo.explore(file, module), module, expected)

    for name, (make, read) in PHOTOS.items():
        yield name, partial(work, make, read, "bicubic")
    for name in ("333 x 251", "3000 x 2000"):
        yield f"{name}, nearest", partial(work, *PHOTOS[name], "nearest")
