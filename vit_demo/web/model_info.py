"""The model menu, and the hints below it about the model and the patch size."""

from __future__ import annotations

from typing import Any

import gradio as gr

from vit_demo.weights import PRESETS, Preset
from vit_demo.weights.checkpoints import read_record
from vit_demo.weights.preset import Task
from vit_demo.weights.resampled_accuracy import resampling_note


def preset_choices(task: Task) -> list[tuple[str, str]]:
    """Presets of a task as entries of the model menu: (title, name)."""
    return [(preset.title, preset.name) for preset in PRESETS.values() if preset.task == task]


def model_panel(preset: Preset) -> tuple[Any, str, str]:
    """Updates of the patch sizes and of the two hints, for a preset at its default patch size."""
    size = preset.default_patch_size
    sizes = gr.Radio(choices=[str(p) for p in preset.patch_sizes], value=str(size), interactive=True)
    return sizes, model_summary(preset), patch_size_summary(preset, size)


def model_summary(preset: Preset) -> str:
    """Size and kind of a model in one line."""
    count = preset.num_parameters
    parameters = f"{count / 1e6:.1f} M" if count >= 1e5 else f"{count:,}"
    return f"{parameters} parameters · {preset.num_blocks} blocks · {preset.num_heads} heads. {preset.note}"


def patch_size_summary(preset: Preset, patch_size: int) -> str:
    """Number of tokens and test accuracy at a patch size."""
    side = preset.image_size // patch_size
    num_registers, num_prefix_tokens = preset.config.num_registers, preset.config.num_prefix_tokens
    parts = [f"{side} × {side} patches"]
    if preset.config.class_token:
        parts.append("class token")
    if num_registers:
        parts.append(f"{num_registers} registers")
    text = f"{' + '.join(parts)} = **{side * side + num_prefix_tokens} tokens**."
    text += f" {resampling_note(preset, patch_size)}".rstrip()
    accuracy = read_record(preset, patch_size).get("test_accuracy", {}).get(str(patch_size))
    if accuracy is not None:
        data = "MNIST" if preset.task == "digits" else "its test photos"
        text += f" Test accuracy {100 * accuracy:.1f} % ({data})."
    return text
