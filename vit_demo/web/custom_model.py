"""A visitor's own model, named in a box under the menu: only repositories of the Hub, never folders of this server."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import gradio as gr

from vit_demo.errors import PresetError
from vit_demo.web import handlers, model_info, settings
from vit_demo.web.limits import NAME_LENGTH
from vit_demo.web.payload import empty
from vit_demo.weights import PRESETS
from vit_demo.weights.preset import Task

CUSTOM = "custom"
"""The entry of the menu that opens the box; no preset has this name."""

ENTRY = ("Your own, from the Hub …", CUSTOM)
ASK = "Name a Vision Transformer on the Hugging Face Hub, as org/name."
ABOUT = "A ViT, DeiT or DINOv2 of timm or transformers with safetensors weights."

Card = tuple[Any, ...]
"""What the menu, the box, the patch sizes, the two hints and the stage become."""


def task_of(name: str) -> Task:
    """Which tab a choice of the menu belongs to; models of visitors see photos."""
    return PRESETS[name].task if name in PRESETS else "photos"


def menu(task: Task) -> list[tuple[str, str]]:
    """Choices of the model menu, (title, name)."""
    return model_info.presets_for(task) + ([ENTRY] if task == "photos" and settings.custom_models() else [])


def hub_name(text: Any) -> str:
    """The repository that a visitor means by a name or by a link to its page.

    Raises:
        PresetError: If it cannot be one.
    """
    if not isinstance(text, str):
        raise PresetError(ASK)
    name = re.sub(r"^(https?://)?(www\.)?(huggingface\.co|hf\.co)/", "", text.strip()[:NAME_LENGTH]).rstrip("/")
    if name in PRESETS:
        raise PresetError(f"{name} is in the menu already: choose it there.")
    if not settings.is_repository(name):
        raise PresetError(f"“{text.strip()[:80]}” is not the name of a model on the Hub: write it as org/name.")
    return name


def ask(said: str = ASK) -> Card:
    """The box, open, and a sentence on the stage; a phone shows the hint under the box, but not the stage with it."""
    hint = ABOUT if said == ASK else said
    return (
        gr.Dropdown(choices=menu("photos"), value=CUSTOM),
        gr.Textbox(visible=True),
        gr.Radio(interactive=False),
        plain(hint),
        "",
        empty(said),
    )


def plain(text: str) -> str:
    """Text for a component that renders Markdown, in which nothing is markup: names of visitors' models stand in it."""
    return re.sub(r"([\\`*_{}\[\]()<>#+!|~$&:-])", r"\\\1", text)


async def load(text: Any, drawing: Any, photo: Any, fit: Any) -> AsyncIterator[Card]:
    """Fetches a model, saying how far it is, and explains the photo with it; a failure is one sentence on the stage."""
    try:
        name = hub_name(text)
        async for said in handlers.fetching(name):
            yield ask(said)
        preset = await handlers.preset_of(name)
    except Exception as error:
        yield ask(str(handlers.error_of(error).message))
        return
    shown = await handlers.explain_anyway(drawing, photo, name, preset.default_patch_size, fit)
    choices = [(preset.title, name), *menu("photos")]
    yield gr.Dropdown(choices=choices, value=name), gr.Textbox(visible=True), *model_info.card(preset), shown
