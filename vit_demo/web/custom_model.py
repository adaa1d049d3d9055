"""Custom models: the box below the model menu, which takes a repository of the Hub and never a folder of the server."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import gradio as gr

from vit_demo.errors import PresetError
from vit_demo.web import handlers, model_info, settings
from vit_demo.web.limits import MAX_NAME_LENGTH
from vit_demo.web.payload import empty
from vit_demo.weights import PRESETS
from vit_demo.weights.preset import Task

CUSTOM_CHOICE = "custom"
"""The value of the menu entry that opens the box; no preset has this name."""

MENU_ENTRY = ("Your own, from the Hub …", CUSTOM_CHOICE)
PROMPT = "Enter a Vision Transformer on the Hugging Face Hub, as org/name."
SUPPORTED = "A ViT, DeiT or DINOv2 of timm or transformers, with safetensors weights."

Updates = tuple[Any, ...]
"""Updates of the menu, the box, the patch sizes, the two hints and the stage."""


def task_of(name: str) -> Task:
    """The task, and so the tab, of a menu entry; custom models are for photos."""
    return PRESETS[name].task if name in PRESETS else "photos"


def menu_choices(task: Task) -> list[tuple[str, str]]:
    """Entries of the model menu for a task, custom models included: (title, name)."""
    custom = [MENU_ENTRY] if task == "photos" and settings.custom_models_allowed() else []
    return model_info.preset_choices(task) + custom


def parse_repository(text: Any) -> str:
    """The repository, given by its name or the URL of its page.

    Raises:
        PresetError: If the text is neither.
    """
    if not isinstance(text, str):
        raise PresetError(PROMPT)
    name = re.sub(r"^(https?://)?(www\.)?(huggingface\.co|hf\.co)/", "", text.strip()[:MAX_NAME_LENGTH]).rstrip("/")
    if name in PRESETS:
        raise PresetError(f"{name} is in the menu: choose it there.")
    if not settings.is_allowed_repository(name):
        raise PresetError(f"“{text.strip()[:80]}” is not the name of a model on the Hub: write it as org/name.")
    return name


def show_prompt(message: str = PROMPT) -> Updates:
    """The open box, and a message on the stage and, for phones where the stage is out of view, below the box."""
    hint = SUPPORTED if message == PROMPT else message
    return (
        gr.Dropdown(choices=menu_choices("photos"), value=CUSTOM_CHOICE),
        gr.Textbox(visible=True),
        gr.Radio(interactive=False),
        escape_markdown(hint),
        "",
        empty(message),
    )


def escape_markdown(text: str) -> str:
    """Text without any markup for a Markdown component; it may contain the name of a visitor's model."""
    return re.sub(r"([\\`*_{}\[\]()<>#+!|~$&:-])", r"\\\1", text)


async def load(text: Any, drawing: Any, photo: Any, fit: Any) -> AsyncIterator[Updates]:
    """Downloads a custom model, with status messages, and explains the photo with it; errors appear on the stage."""
    try:
        name = parse_repository(text)
        async for status in handlers.download_status(name):
            yield show_prompt(status)
        preset = await handlers.get_preset(name)
    except Exception as error:
        yield show_prompt(str(handlers.to_gradio_error(error).message))
        return
    stage = await handlers.explain_or_message(drawing, photo, name, preset.default_patch_size, fit)
    choices = [(preset.title, name), *menu_choices("photos")]
    yield gr.Dropdown(choices=choices, value=name), gr.Textbox(visible=True), *model_info.model_panel(preset), stage
