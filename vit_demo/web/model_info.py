"""What the page says about a model and about a patch size."""

from __future__ import annotations

from typing import Any

import gradio as gr

from vit_demo.weights import PRESETS, Preset
from vit_demo.weights.checkpoints import read_record
from vit_demo.weights.elsewhere import what_to_expect
from vit_demo.weights.preset import Task


def presets_for(task: Task) -> list[tuple[str, str]]:
    """Choices of the model menu, (title, name)."""
    return [(preset.title, preset.name) for preset in PRESETS.values() if preset.task == task]


def card(preset: Preset) -> tuple[Any, str, str]:
    """The patch sizes of a preset, and what to say about it and about its default size."""
    size = preset.default_patch_size
    sizes = gr.Radio(choices=[str(p) for p in preset.patch_sizes], value=str(size), interactive=True)
    return sizes, about_model(preset), about_size(preset, size)


def about_model(preset: Preset) -> str:
    """Size and kind of a model in one line."""
    count = preset.num_parameters
    parameters = f"{count / 1e6:.1f} M" if count >= 1e5 else f"{count:,}"
    return f"{parameters} parameters · {preset.num_blocks} blocks · {preset.num_heads} heads. {preset.note}"


def about_size(preset: Preset, patch_size: int) -> str:
    """What a patch size means: how many tokens, and how accurate the model is with it."""
    side = preset.image_size // patch_size
    prefix = preset.config.num_prefix
    extra = [part for part in ("class token" * preset.config.class_token, _registers(preset)) if part]
    text = " + ".join([f"{side} × {side} patches", *extra]) + f" = **{side * side + prefix} tokens**."
    text += f" {what_to_expect(preset, patch_size)}".rstrip()
    accuracy = read_record(preset, patch_size).get("test_accuracy", {}).get(str(patch_size))
    if accuracy is not None:
        what = "MNIST" if preset.task == "digits" else "its test photos"
        text += f" Test accuracy {100 * accuracy:.1f} % ({what})."
    return text


def _registers(preset: Preset) -> str:
    count = preset.config.num_registers
    return f"{count} registers" if count else ""
