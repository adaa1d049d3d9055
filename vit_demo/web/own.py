"""A visitor's own model, named in a box under the menu: only repositories of the Hub, never folders of this server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from vit_demo.errors import PresetError
from vit_demo.inference.engine import Fit
from vit_demo.web import events
from vit_demo.web.payload import empty
from vit_demo.weights import PRESETS, find_preset
from vit_demo.weights.preset import Task

OWN = "own"
"""The entry of the menu that opens the box; no preset has this name."""

ENTRY = ("Your own, from the Hub …", OWN)
ASK = "Name a Vision Transformer on the Hugging Face Hub, as org/name."
ABOUT = "A ViT, DeiT or DINOv2 of timm or transformers whose weights are kept as safetensors."

NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?(@[\w.-]+)?")
"""Of a preset, or of a repository of the Hub, ``org/name`` or ``org/name@revision``."""

Card = tuple[Any, ...]
"""What the menu, the box, the patch sizes, the two hints and the stage become."""


def is_allowed(name: str) -> bool:
    """Whether a stranger may name this: a folder of this server is none of their business, nor whether it exists."""
    return name in PRESETS or (NAME.fullmatch(name) is not None and not Path(name).exists())


def task_of(name: str) -> Task:
    """Which tab a choice of the menu belongs to; models of visitors see photos."""
    return PRESETS[name].task if name in PRESETS else "photos"


def menu(task: Task) -> list[tuple[str, str]]:
    """Choices of the model menu, (title, name)."""
    return events.presets_for(task) + ([ENTRY] if task == "photos" else [])


def hub_name(text: str) -> str:
    """The repository that a visitor means by a name or by a link to its page.

    Raises:
        PresetError: If it cannot be one.
    """
    name = re.sub(r"^(https?://)?(www\.)?(huggingface\.co|hf\.co)/", "", text.strip()).rstrip("/")
    if name in PRESETS:
        raise PresetError(f"{name} is in the menu already: choose it there.")
    if "/" not in name or not is_allowed(name):
        raise PresetError(f"“{text.strip()[:80]}” is not the name of a model on the Hub: write it as org/name.")
    return name


def ask(said: str = ASK) -> Card:
    """The box, open, and a sentence on the stage; a phone shows the hint under the box, but not the stage with it."""
    hint = ABOUT if said == ASK else said
    return (
        gr.Dropdown(choices=menu("photos"), value=OWN),
        gr.Textbox(visible=True),
        gr.Radio(interactive=False),
        hint,
        "",
        empty(said),
    )


def load(text: str, drawing: str | None, photo: str | None, fit: Fit) -> Iterator[Card]:
    """Fetches a model, saying how far it is, and explains the photo with it; a failure is one sentence on the stage."""
    try:
        name = hub_name(text)
        for said in events.fetching(name):
            yield ask(said)
        preset = find_preset(name)
    except ValueError as error:
        yield ask(str(error))
        return
    shown = events.explain_anyway(drawing, photo, name, preset.default_patch_size, fit)
    choices = [(preset.title, name), *menu("photos")]
    yield gr.Dropdown(choices=choices, value=name), gr.Textbox(visible=True), *events.choose_preset(name), shown
