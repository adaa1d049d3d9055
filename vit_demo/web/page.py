"""The page: what to look at on the left, what the model makes of it on the right."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any

import gradio as gr

from vit_demo.accelerator import device_name
from vit_demo.errors import InputError
from vit_demo.inference.engine import DEFAULT_PRESET, get_engine
from vit_demo.web import custom_model, handlers, model_info, requests
from vit_demo.web.api import add_endpoints
from vit_demo.web.components.model_view import ModelView
from vit_demo.web.components.pad import DigitPad
from vit_demo.web.components.stage import Stage
from vit_demo.web.map_requests import ask
from vit_demo.web.payload import empty, payload
from vit_demo.web.photo import PhotoInput
from vit_demo.web.security import Page
from vit_demo.weights import PRESETS, Preset
from vit_demo.weights.preset import Task

DEFAULT_PHOTO_PRESET = "photos-tiny"
_EXAMPLES = ("lion.jpg", "cheetah.jpg", "tower.jpg")
PHOTOS = [str(files("gradio") / "media_assets" / "images" / name) for name in _EXAMPLES]
"""Example photos; Gradio brings them along."""

HEADER = """
<header><h1>vit_demo</h1><p>See a Vision Transformer think</p><span class="badge">{device}</span></header>
"""
FITS = [("Centre", "crop"), ("Squashed", "squash"), ("Own shape", "keep")]


def build() -> gr.Blocks:
    """Lays out the page, an example already explained, and connects it.

    A preset whose weights cannot be used is said where it would be shown; all else works.
    """
    preset = PRESETS[DEFAULT_PRESET]
    with Page(title="vit_demo: see a Vision Transformer think", analytics_enabled=False) as page:
        add_endpoints()  # first, so that they get the plain names
        pad = DigitPad(example=7, elem_id="pad", render=False)
        example = opening(preset, pad.value)
        gr.HTML(HEADER.format(device=device_name(get_engine().device)), elem_id="header")
        with gr.Row(elem_id="columns"):
            with gr.Column(elem_id="inputs", min_width=260):
                with gr.Tabs(elem_id="tabs"):
                    with gr.Tab("Draw a digit", id="digits") as draw:
                        pad.render()
                    with gr.Tab("Photo", id="photos") as drop:
                        photo = PhotoInput(
                            PHOTOS[0],
                            type="filepath",
                            sources=["upload", "webcam", "clipboard"],
                            show_label=False,
                            label="Photo",
                            elem_id="photo",
                            height=178,
                            buttons=[],
                        )
                        examples = gr.Examples(PHOTOS, photo, label="Examples", elem_id="photos")
                        fit = gr.Radio(FITS, value="crop", label="What the model sees", elem_id="fit")
                        ModelView(elem_id="seen")
                with gr.Column(elem_id="model"):
                    name = gr.Dropdown(
                        model_info.presets_for("digits"),
                        value=preset.name,
                        label="Model",
                        elem_id="preset",
                        filterable=False,
                    )
                    box = gr.Textbox(
                        visible=False,
                        show_label=False,
                        label="Model on the Hub",
                        placeholder="org/name",
                        submit_btn="Load",
                        max_lines=1,
                        elem_id="own",
                    )
                    model_hint = gr.Markdown(model_info.about_model(preset), elem_classes="said")
                    size = gr.Radio(
                        [str(p) for p in preset.patch_sizes],
                        value=str(preset.default_patch_size),
                        label="Patch size",
                        elem_id="patch-size",
                    )
                    size_hint = gr.Markdown(
                        model_info.about_size(preset, preset.default_patch_size), elem_classes="said"
                    )
            with gr.Column(elem_id="result", min_width=320):
                stage = Stage(example, ask=ask, elem_id="stage")

        choices = [pad, photo, name, size, fit]
        card = [name, box, size, model_hint, size_hint, stage]

        # Private: the documented endpoints are those of ``web.api``. A newer stroke replaces one that still waits. What
        # is sent is checked by the handlers, not by Gradio, whose errors are no sentences; the jobs bound the work.
        quiet: dict[str, Any] = {
            "api_visibility": "private",
            "show_progress": "hidden",
            "trigger_mode": "always_last",
            "concurrency_limit": None,
            "preprocess": False,
        }
        pad.input(explain, choices, stage, **quiet)
        # Not ``change``: that fires while the tab is being shown, before its models are in the menu.
        photo.input(explain, choices, stage, **quiet)
        examples.load_input_event.then(explain, choices, stage, **quiet)
        fit.input(explain, choices, stage, **quiet)
        size.input(choose_size, choices, [size_hint, stage], **quiet)
        name.input(choose_preset, [pad, photo, name, fit], card, **quiet)
        box.submit(custom_model.load, [box, pad, photo, fit], card, **quiet)
        tasks: list[tuple[gr.Tab, Task, str]] = [
            (draw, "digits", preset.name),
            (drop, "photos", DEFAULT_PHOTO_PRESET),
        ]
        for tab, task, default in tasks:
            tab.select(choose_task(task, default), [pad, photo, name, fit], card, **quiet)
    return page


@handlers.in_words
async def explain(drawing: Any, photo: Any, name: Any, size: Any, fit: Any) -> dict[str, Any]:
    """A new drawing, photo or fit."""
    if name == custom_model.CUSTOM:
        return empty(custom_model.ASK)
    return await handlers.explain(drawing, photo, name, size, fit)


@handlers.in_words
async def choose_size(drawing: Any, photo: Any, name: Any, size: Any, fit: Any) -> tuple[Any, ...]:
    """Another patch size."""
    preset = await handlers.preset_of(requests.preset_name(name))
    said = model_info.about_size(preset, requests.check_size(preset, size))
    return said, await handlers.explain_anyway(drawing, photo, name, size, fit)


async def choose_preset(drawing: Any, photo: Any, name: Any, fit: Any) -> AsyncIterator[tuple[Any, ...]]:
    """Another model, downloaded first where it is not on this machine."""
    if name == custom_model.CUSTOM:
        yield custom_model.ask()
        return
    try:
        name = requests.preset_name(name)
        box = gr.skip(), gr.Textbox(visible=name not in PRESETS)
        async for said in handlers.fetching(name):
            known = model_info.card(PRESETS[name]) if name in PRESETS else (gr.skip(),) * 3
            yield *box, *known, empty(said)
        yield *box, *await at_first(drawing, photo, await handlers.preset_of(name), name, fit)
    except Exception as error:
        known = model_info.card(PRESETS[name]) if isinstance(name, str) and name in PRESETS else (gr.skip(),) * 3
        yield gr.skip(), gr.skip(), *known, empty(str(handlers.error_of(error).message))


async def at_first(drawing: Any, photo: Any, preset: Preset, name: str, fit: Any) -> tuple[Any, ...]:
    """The card of a preset, and the stage at its default patch size."""
    shown = await handlers.explain_anyway(drawing, photo, name, preset.default_patch_size, fit)
    return *model_info.card(preset), shown


def choose_task(task: Task, default: str) -> Any:
    """What a tab does when it is selected."""

    @handlers.in_words
    async def choose(drawing: Any, photo: Any, name: Any, fit: Any) -> tuple[Any, ...]:
        chosen = requests.text(name, "preset")
        if custom_model.task_of(chosen) == task:  # a tab is selected, too, when the page opens
            return (gr.skip(),) * 6
        menu = gr.Dropdown(choices=custom_model.menu(task), value=default)
        return menu, gr.Textbox(visible=False), *await at_first(drawing, photo, PRESETS[default], default, fit)

    return choose


def opening(preset: Preset, drawing: str) -> dict[str, Any]:
    """The stage that the page opens with: the example explained, or why it cannot be."""
    for name in (preset.name, DEFAULT_PHOTO_PRESET):
        try:
            get_engine().warm_up([name])
        except InputError as error:
            logging.getLogger(__name__).error("The preset %s cannot be used: %s", name, error)
    source = requests.drawing_source(drawing)
    request = requests.ResultRequest(source, preset.name, preset.default_patch_size, "crop")
    try:
        result = get_engine().explore_source(source, preset, preset.default_patch_size)
    except InputError as error:
        return empty(str(error))
    return payload(result, request)
