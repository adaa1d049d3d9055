"""The layout and the events of the page: inputs on the left, the result on the right."""

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
from vit_demo.web.analysis import add_analysis_endpoints
from vit_demo.web.api import add_endpoints
from vit_demo.web.components.model_view import ModelView
from vit_demo.web.components.pad import DigitPad
from vit_demo.web.components.stage import Stage
from vit_demo.web.map_requests import handle
from vit_demo.web.payload import empty, payload
from vit_demo.web.photo import PhotoInput
from vit_demo.web.security import SafeBlocks
from vit_demo.weights import PRESETS, Preset
from vit_demo.weights.preset import Task

DEFAULT_PHOTO_PRESET = "photos-tiny"
_EXAMPLES = ("lion.jpg", "cheetah.jpg", "tower.jpg")
EXAMPLE_PHOTOS = [str(files("gradio") / "media_assets" / "images" / name) for name in _EXAMPLES]
"""Example photos; they come with Gradio."""

HEADER = """
<header><h1>vit_demo</h1><p>See a Vision Transformer think</p><span class="badge">{device}</span></header>
"""
FIT_CHOICES = [("Centre", "crop"), ("Stretch", "squash"), ("Keep aspect ratio", "keep")]


def build_page() -> gr.Blocks:
    """Builds the page, with an example on the stage.

    If the weights of the example's preset cannot be used, the stage shows the reason, and everything else works.
    """
    preset = PRESETS[DEFAULT_PRESET]
    with SafeBlocks(title="vit_demo: see a Vision Transformer think", analytics_enabled=False) as page:
        add_endpoints()  # first, so that Gradio adds no suffix to their names
        add_analysis_endpoints()
        pad = DigitPad(example=7, elem_id="pad", render=False)
        example = initial_stage(preset, pad.value)
        gr.HTML(HEADER.format(device=device_name(get_engine().device)), elem_id="header")
        with gr.Row(elem_id="columns"):
            with gr.Column(elem_id="inputs", min_width=260):
                with gr.Tabs(elem_id="tabs"):
                    with gr.Tab("Draw a digit", id="digits") as draw:
                        pad.render()
                    with gr.Tab("Photo", id="photos") as drop:
                        photo = PhotoInput(
                            EXAMPLE_PHOTOS[0],
                            type="filepath",
                            sources=["upload", "webcam", "clipboard"],
                            show_label=False,
                            label="Photo",
                            elem_id="photo",
                            height=178,
                            buttons=[],
                        )
                        examples = gr.Examples(EXAMPLE_PHOTOS, photo, label="Examples", elem_id="photos")
                        fit = gr.Radio(FIT_CHOICES, value="crop", label="What the model sees", elem_id="fit")
                        ModelView(elem_id="model-view")
                with gr.Column(elem_id="model"):
                    name = gr.Dropdown(
                        model_info.preset_choices("digits"),
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
                        elem_id="custom-model",
                    )
                    model_hint = gr.Markdown(model_info.model_summary(preset), elem_classes="hint")
                    size = gr.Radio(
                        [str(p) for p in preset.patch_sizes],
                        value=str(preset.default_patch_size),
                        label="Patch size",
                        elem_id="patch-size",
                    )
                    size_hint = gr.Markdown(
                        model_info.patch_size_summary(preset, preset.default_patch_size), elem_classes="hint"
                    )
            with gr.Column(elem_id="result", min_width=320):
                stage = Stage(example, on_request=handle, elem_id="stage")

        choices = [pad, photo, name, size, fit]
        panel = [name, box, size, model_hint, size_hint, stage]

        # Private, because the documented endpoints are those of ``web.api``. With "always_last" a new stroke replaces
        # one that still waits. The handlers check the inputs, not Gradio, whose errors are not written for visitors.
        # The limits of the jobs bound the work.
        event_options: dict[str, Any] = {
            "api_visibility": "private",
            "show_progress": "hidden",
            "trigger_mode": "always_last",
            "concurrency_limit": None,
            "preprocess": False,
        }
        pad.input(explain, choices, stage, **event_options)
        # Not ``change``, which also fires when the tab is opened, before its models are in the menu.
        photo.input(explain, choices, stage, **event_options)
        examples.load_input_event.then(explain, choices, stage, **event_options)
        fit.input(explain, choices, stage, **event_options)
        size.input(choose_size, choices, [size_hint, stage], **event_options)
        name.input(choose_preset, [pad, photo, name, fit], panel, **event_options)
        box.submit(custom_model.load, [box, pad, photo, fit], panel, **event_options)
        tasks: list[tuple[gr.Tab, Task, str]] = [
            (draw, "digits", preset.name),
            (drop, "photos", DEFAULT_PHOTO_PRESET),
        ]
        for tab, task, default in tasks:
            tab.select(choose_task(task, default), [pad, photo, name, fit], panel, **event_options)
    return page


@handlers.with_gradio_errors
async def explain(drawing: Any, photo: Any, name: Any, size: Any, fit: Any) -> dict[str, Any]:
    """A new drawing, photo or fit."""
    if name == custom_model.CUSTOM_CHOICE:
        return empty(custom_model.PROMPT)
    return await handlers.explain(drawing, photo, name, size, fit)


@handlers.with_gradio_errors
async def choose_size(drawing: Any, photo: Any, name: Any, size: Any, fit: Any) -> tuple[Any, ...]:
    """Another patch size."""
    preset = await handlers.get_preset(requests.preset_name(name))
    hint = model_info.patch_size_summary(preset, requests.patch_size(preset, size))
    return hint, await handlers.explain_or_message(drawing, photo, name, size, fit)


async def choose_preset(drawing: Any, photo: Any, name: Any, fit: Any) -> AsyncIterator[tuple[Any, ...]]:
    """Another model, downloaded first if it is not on this machine."""
    if name == custom_model.CUSTOM_CHOICE:
        yield custom_model.show_prompt()
        return
    try:
        name = requests.preset_name(name)
        menu_and_box = gr.skip(), gr.Textbox(visible=name not in PRESETS)
        async for status in handlers.download_status(name):
            yield *menu_and_box, *panel_if_in_table(name), empty(status)
        yield *menu_and_box, *await panel_and_stage(drawing, photo, await handlers.get_preset(name), name, fit)
    except Exception as error:
        message = str(handlers.to_gradio_error(error).message)
        yield gr.skip(), gr.skip(), *panel_if_in_table(name), empty(message)


def panel_if_in_table(name: Any) -> tuple[Any, ...]:
    """The panel of a preset of the table; of a custom model nothing is known before it is downloaded."""
    if isinstance(name, str) and name in PRESETS:
        return model_info.model_panel(PRESETS[name])
    return (gr.skip(),) * 3


async def panel_and_stage(drawing: Any, photo: Any, preset: Preset, name: str, fit: Any) -> tuple[Any, ...]:
    """The panel of a preset, and the stage at its default patch size."""
    stage = await handlers.explain_or_message(drawing, photo, name, preset.default_patch_size, fit)
    return *model_info.model_panel(preset), stage


def choose_task(task: Task, default: str) -> Any:
    """The handler of a tab's selection, which brings its own models and its default preset."""

    @handlers.with_gradio_errors
    async def select_tab(drawing: Any, photo: Any, name: Any, fit: Any) -> tuple[Any, ...]:
        current = requests.short_string(name, "preset")
        if custom_model.task_of(current) == task:  # the event also fires when the page opens
            return (gr.skip(),) * 6
        menu = gr.Dropdown(choices=custom_model.menu_choices(task), value=default)
        return menu, gr.Textbox(visible=False), *await panel_and_stage(drawing, photo, PRESETS[default], default, fit)

    return select_tab


def initial_stage(preset: Preset, drawing: str) -> dict[str, Any]:
    """The stage when the page opens: the result for the example, or the reason why there is none."""
    for name in (preset.name, DEFAULT_PHOTO_PRESET):
        try:
            get_engine().warm_up([name])
        except InputError as error:
            logging.getLogger(__name__).error("The preset %s cannot be used: %s", name, error)
    source = requests.drawing_source(drawing)
    request = requests.ResultRequest(source, preset.name, preset.default_patch_size, "crop")

    def work() -> dict[str, Any]:
        return payload(get_engine().explore_source(source, preset, preset.default_patch_size), request)

    try:
        return get_engine().jobs.run(object(), work, preset.task)  # on ZeroGPU the main thread's tensors are emulated
    except InputError as error:
        return empty(str(error))
