"""What the page's menu says about each model, and the networks from which a visitor starts in the section Build."""

from typing import Any

from vit_demo.model import ViTConfig
from vit_demo.model.config import ANNOTATED_VIT, EINOPS_VIT, MNIST_FROM_SCRATCH, VIT_TINY
from vit_demo.weights import DEFAULT_PRESETS, PRESETS, Preset
from vit_demo.weights.accuracy import (
    EVERYDAY_PHOTOS,
    PUBLISHED_TOP1,
    accuracy_note,
    bundled_accuracy,
    resampling_note,
)
from vit_demo.weights.hub.repository import is_on_machine
from vit_demo.weights.limits import num_operations, num_tokens

BYTES_PER_PARAMETER = 4
"""The Hub's weights are float32."""

LARGE_PHOTO_PRESET = "vit-s16"
"""The model with 1,000 classes that the photo tab offers; the default there once it is on this machine."""

_NOTEBOOKS = {
    "ViT-Tiny": VIT_TINY,
    "MNIST from scratch": MNIST_FROM_SCRATCH,
    "einops ViT": EINOPS_VIT,
    "annotated ViT": ANNOTATED_VIT,
}
_DEFAULTS = ViTConfig().to_dict()


def default_photo_preset() -> str:
    """The photo tab's model when the page opens."""
    return LARGE_PHOTO_PRESET if is_on_machine(PRESETS[LARGE_PHOTO_PRESET]) else DEFAULT_PRESETS["photos"]


def menu_entries() -> list[dict[str, Any]]:
    """The presets of the table, as ``model_entry`` describes them, in the order of the menu."""
    return [model_entry(preset) for preset in PRESETS.values()]


def model_entry(preset: Preset, name: str = "") -> dict[str, Any]:
    """A model for the page's menu.

    Args:
        preset: The model.
        name: By which requests name it, if that is not the preset's own name.

    Returns:
        ``name``, ``title``, ``task``, ``on_machine`` (whether its weights need no download), ``megabytes`` (of the
        download), ``num_classes``, ``num_blocks``, ``default_patch_size``, ``summary`` (a sentence), and ``sizes``: a
        list of what each patch size trades (``describe_patch_size``), and ``test_set``: what its accuracy is about.
    """
    return {
        "name": name or preset.name,
        "title": preset.title,
        "task": preset.task,
        "on_machine": preset.source != "hub" or is_on_machine(preset),
        "megabytes": round(BYTES_PER_PARAMETER * preset.num_parameters / 1e6),
        "num_classes": len(preset.labels),
        "num_blocks": preset.num_blocks,
        "default_patch_size": preset.default_patch_size,
        "summary": " ".join((f"{preset.num_blocks} blocks · {preset.num_heads} heads.", preset.note)).rstrip(),
        "sizes": [describe_patch_size(preset, size) for size in preset.patch_sizes],
        "test_set": _test_set(preset),
    }


def describe_patch_size(preset: Preset, patch_size: int) -> dict[str, Any]:
    """What a patch size trades, for a square picture.

    Returns:
        ``size``; ``side``: patches along a side of the map; ``tokens``; ``operations``: multiplications with an
        addition in one pass; ``accuracy`` in %, None if it is not known; ``text``: parameters and tokens;
        ``accuracy_text``: sentences about the accuracy of centre crops.
    """
    tokens = num_tokens(preset.config, patch_size)
    published = PUBLISHED_TOP1.get(preset.name, {}).get(patch_size)
    return {
        "size": patch_size,
        "side": preset.image_size // patch_size,
        "tokens": tokens,
        "operations": num_operations(preset.config, patch_size, tokens),
        "accuracy": bundled_accuracy(preset, patch_size) if preset.source == "bundled" else published,
        "text": patch_size_summary(preset, patch_size),
        "accuracy_text": accuracy_note(preset, patch_size) if preset.source == "bundled" else "",
    }


def _test_set(preset: Preset) -> str:
    if preset.source != "bundled":
        return "ImageNet, published" if preset.name in PUBLISHED_TOP1 else ""
    return "everyday photos" if preset.name in EVERYDAY_PHOTOS else "MNIST test"


def patch_size_summary(preset: Preset, patch_size: int) -> str:
    """Parameters, and tokens of a square picture, at a patch size; *stars* make words bold."""
    count = preset.num_parameters_at(patch_size)
    side = preset.image_size // patch_size
    num_registers = preset.config.num_registers
    total = num_tokens(preset.config, patch_size)
    if preset.config.class_token and num_registers:
        tokens = f"{side} × {side} patches + class token + {num_registers} registers = *{total} tokens*."
    elif preset.config.class_token:
        tokens = f"{side} × {side} patches + class token = *{total} tokens*."
    elif num_registers:
        tokens = f"{side} × {side} patches + {num_registers} registers = *{total} tokens*."
    else:
        tokens = f"{side} × {side} patches = *{total} tokens*."
    parameters = f"{count / 1e6:.1f} M" if count >= 1e5 else f"{count:,}"
    sentences = [
        tokens,
        f"{parameters} parameters.",
        resampling_note(preset, patch_size),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def starting_points() -> dict[str, Any]:
    """The four notebooks and the presets of this package's network, and the defaults of ``ViTConfig``.

    Returns:
        ``{"defaults": all fields, "networks": [{"group", "title", "config", "patch_size"}, ...]}``, where ``config``
        holds the fields that differ from the defaults, which the page's code leaves out. The patch size is the one at
        which the network runs, which for a flexible preset is not that of its stored kernel.
    """
    notebooks = [_entry("Notebooks", title, config, config.patch_size) for title, config in _NOTEBOOKS.items()]
    presets = [
        _entry("Presets", preset.name, preset.config_at(preset.default_patch_size), preset.default_patch_size)
        for preset in PRESETS.values()
        if not preset.library
    ]
    return {"defaults": _DEFAULTS, "networks": [*notebooks, *presets]}


def _entry(group: str, title: str, config: ViTConfig, patch_size: int) -> dict[str, Any]:
    fields = {name: value for name, value in config.to_dict().items() if value != _DEFAULTS[name]}
    return {"group": group, "title": title, "config": fields, "patch_size": patch_size}
