"""The entries of the page's menu of models, and the networks from which Build starts."""

from typing import Any

from huggingface_hub import constants

from vit_demo.defaults import LARGE_PHOTO_PRESET
from vit_demo.model import ViTConfig
from vit_demo.model.config import ANNOTATED_VIT, EINOPS_VIT, MNIST_FROM_SCRATCH, VIT_TINY
from vit_demo.sentences import Sentence, joined, marked, sentence
from vit_demo.training.small import DEFAULT_CONFIG
from vit_demo.weights import DEFAULT_PRESETS, PRESETS, Preset
from vit_demo.weights.checkpoints import read_record
from vit_demo.weights.costs import num_operations, num_tokens
from vit_demo.weights.hub.repository import is_on_machine
from vit_demo.weights.taught_heads import to_link

EVERYDAY_PHOTOS: dict[str, tuple[int, dict[int, float]]] = {
    "photos-tiny": (357, {10: 85.7, 12: 82.9, 15: 84.0, 20: 78.7}),
}
"""Number of everyday photos (whole scenes) and accuracy on them in % by patch size, for presets tested on several sets.

``checkpoints/README.md`` has the figures of every set.
"""

PUBLISHED_TOP1: dict[str, dict[int, float]] = {
    "vit-ti16": {8: 64.8, 12: 75.2, 14: 76.1, 16: 75.5, 20: 71.7, 24: 64.3, 28: 54.5, 32: 36.1, 48: 2.7},
    "vit-s16": {8: 76.3, 12: 81.6, 14: 81.9, 16: 81.4, 20: 78.9, 24: 73.6, 28: 67.0, 32: 51.4, 48: 4.0},
    "vit-b16": {8: 80.0, 12: 84.3, 14: 84.9, 16: 84.5, 20: 82.8, 24: 78.7, 28: 73.3, 32: 58.9, 48: 5.1},
}
"""Top-1 accuracy of Hub checkpoints on ImageNet's validation set in %, by patch size, at 224 px.

From the README of ``flexivit-pytorch`` (Conrad, https://github.com/bwconrad/flexivit), which applies the PI-resize of
FlexiViT (Beyer et al., 2022, https://arxiv.org/abs/2212.08013) to timm's checkpoints.
"""

BYTES_PER_PARAMETER = 4  # the Hub's weights are float32

_NOTEBOOKS = {
    "ViT-Tiny": VIT_TINY,
    "MNIST from scratch": MNIST_FROM_SCRATCH,
    "einops ViT": EINOPS_VIT,
    "annotated ViT": ANNOTATED_VIT,
}
_DEFAULTS = ViTConfig().to_dict()


def accuracy_note(preset: Preset, patch_size: int) -> str:
    """A sentence about the test accuracy at a patch size; empty if it was not measured."""
    accuracy = bundled_accuracy(preset, patch_size)
    if accuracy is None:
        return ""
    count, _ = EVERYDAY_PHOTOS.get(preset.name, (0, {}))
    if count:
        return sentence("Right on {0}\u00a0% of {1} everyday photos.", f"{accuracy:.1f}", count)
    return sentence("Right on {0}\u00a0% of MNIST’s test digits.", f"{accuracy:.1f}")


def bundled_accuracy(preset: Preset, patch_size: int) -> float | None:
    """The accuracy in % at a patch size, on everyday photos or on MNIST; None if it was not measured."""
    if preset.name in EVERYDAY_PHOTOS:
        return EVERYDAY_PHOTOS[preset.name][1].get(patch_size)
    accuracy = read_record(preset, patch_size).get("test_accuracy", {}).get(str(patch_size))
    return None if accuracy is None else round(100 * accuracy, 2)


def resampling_note(preset: Preset, patch_size: int) -> str:
    """A sentence about accuracy at a resampled patch size; empty for a size that the weights were trained for."""
    if not preset.is_resampled(patch_size):
        return ""
    native = preset.config.patch_size
    top1 = PUBLISHED_TOP1.get(preset.name, {})
    if patch_size in top1 and native in top1:
        resampled, trained = (f"{top1[size]}\u00a0%" for size in (patch_size, native))
        template = "Resampled from {0} px: ImageNet top-1 {1}, {2} at {3} px (published)."
        return sentence(template, native, resampled, trained, native)
    return sentence("Resampled from {0} px; accuracy at this size is not published.", native)


def default_photo_preset() -> str:
    """The model of the photo tab when the page opens."""
    return LARGE_PHOTO_PRESET if is_on_machine(PRESETS[LARGE_PHOTO_PRESET]) else DEFAULT_PRESETS["photos"]


def menu_entries() -> list[dict[str, Any]]:
    """The menu of presets; offline (``HF_HUB_OFFLINE``) only of those with weights on this machine.

    The sizes of a model that must be downloaded come with it: with all of them, each first visit would be 1 kB larger.
    """
    entries = [model_entry(preset) for preset in PRESETS.values()]
    here = [entry for entry in entries if entry["on_machine"]]
    away = [] if constants.HF_HUB_OFFLINE else [entry for entry in entries if not entry["on_machine"]]
    return here + [entry | {"sizes": [], "summary": ""} for entry in away]


def model_entry(preset: Preset, name: str = "") -> dict[str, Any]:
    """A model for the page's menu; ``name`` is that in requests, if it is not the preset's own.

    Returns:
        ``name``, ``title``, ``task``, ``on_machine`` (whether its weights need no download), ``megabytes`` (of the
        download), ``num_classes``, ``takes_words`` and ``words`` (its classes until others are chosen), ``num_blocks``,
        ``default_patch_size``, ``summary`` (a sentence) and ``sizes`` (a list of what ``describe_patch_size`` returns);
        of one that was taught ``base``, whose head it is not, ``first``, its first class, and ``link``, empty if it is
        too long for one.
    """
    taught = {"base": preset.base.name, "first": preset.labels[0], "link": to_link(preset)} if preset.base else {}
    return {
        "name": name or preset.name,
        "title": marked(preset.title),
        "task": preset.task,
        "on_machine": not preset.is_downloaded or is_on_machine(preset),
        "megabytes": round(BYTES_PER_PARAMETER * preset.num_parameters / 1e6),
        "num_classes": 0 if preset.takes_words else len(preset.labels),
        "takes_words": preset.takes_words,
        "words": list(preset.labels) if preset.takes_words else [],
        "num_blocks": preset.num_blocks,
        "default_patch_size": preset.default_patch_size,
        "summary": joined(sentence("{0} blocks · {1} heads.", preset.num_blocks, preset.num_heads), preset.note).marked,
        "sizes": [describe_patch_size(preset, size) for size in preset.patch_sizes],
        **taught,
    }


def describe_patch_size(preset: Preset, patch_size: int) -> dict[str, Any]:
    """The trade-off of a patch size, for a square picture.

    Returns:
        ``size``; ``side``: patches along a side of the map; ``tokens``; ``operations``: multiply-adds of a pass;
        ``accuracy`` in %, or None; ``text``: parameters and tokens; ``accuracy_text``: a sentence, or empty.
    """
    tokens = num_tokens(preset.config, patch_size)
    published = PUBLISHED_TOP1.get(preset.name, {}).get(patch_size)
    return {
        "size": patch_size,
        "side": preset.image_size // patch_size,
        "tokens": tokens,
        "operations": num_operations(preset.config, patch_size, tokens),
        "accuracy": bundled_accuracy(preset, patch_size) if preset.is_bundled else published,
        "text": patch_size_summary(preset, patch_size).marked,
        "accuracy_text": marked(accuracy_note(preset, patch_size)) if preset.is_bundled else "",
    }


def patch_size_summary(preset: Preset, patch_size: int) -> Sentence:
    """Parameters, and tokens of a square picture, at a patch size; *stars* make words bold."""
    count = preset.num_parameters_at(patch_size)
    side = preset.image_size // patch_size
    num_registers = preset.config.num_registers
    total = num_tokens(preset.config, patch_size)
    if preset.config.class_token and num_registers:
        template = "{0} × {1} patches + class token + {2} registers = *{3} tokens*."
        tokens = sentence(template, side, side, num_registers, total)
    elif preset.config.class_token:
        tokens = sentence("{0} × {1} patches + class token = *{2} tokens*.", side, side, total)
    elif num_registers:
        tokens = sentence("{0} × {1} patches + {2} registers = *{3} tokens*.", side, side, num_registers, total)
    else:
        tokens = sentence("{0} × {1} patches = *{2} tokens*.", side, side, total)
    parameters = f"{count / 1e6:.1f} M" if count >= 1e5 else f"{count:,}"
    return joined(tokens, sentence("{0} parameters.", parameters), resampling_note(preset, patch_size))


TRAINING_LIMITS = {"parameters": 1_000_000, "tokens": 200, "operations": 25_000_000, "depth": 16}
"""Limits of networks that visitors train; with so many operations a digit, a step takes about a second of one core."""


def starting_points() -> dict[str, Any]:
    """A network to train, those of four notebooks and of the presets, and the defaults of ``ViTConfig``.

    Returns:
        ``{"defaults": all fields, "networks": [{"group", "title", "config", "patch_size"}, ...], "limits":
        TRAINING_LIMITS}``; ``config`` has the fields that differ from the defaults.
    """
    notebooks = [_entry("Notebooks", title, config, config.patch_size) for title, config in _NOTEBOOKS.items()]
    presets = [
        _entry("Presets", preset.name, preset.config_at(preset.default_patch_size), preset.default_patch_size)
        for preset in PRESETS.values()
        if not preset.library
    ]
    first = _entry("To train", "A small ViT of digits", DEFAULT_CONFIG, DEFAULT_CONFIG.patch_size)
    return {"defaults": _DEFAULTS, "networks": [first, *notebooks, *presets], "limits": TRAINING_LIMITS}


def _entry(group: str, title: str, config: ViTConfig, patch_size: int) -> dict[str, Any]:
    fields = {name: value for name, value in config.to_dict().items() if value != _DEFAULTS[name]}
    return {"group": group, "title": title, "config": fields, "patch_size": patch_size}
