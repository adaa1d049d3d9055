"""The page: what to look at on the left, what the model makes of it on the right."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import gradio as gr

from vit_demo.inference.engine import DEFAULT_PRESET, Fit, explorer_on
from vit_demo.web import events, own
from vit_demo.web.api import add_endpoints
from vit_demo.web.components.model_view import SeenPart
from vit_demo.web.components.pad import DigitPad
from vit_demo.web.components.stage import Stage
from vit_demo.web.payload import empty, payload
from vit_demo.web.photo import PhotoInput
from vit_demo.web.questions import ask
from vit_demo.weights import PRESETS, find_preset
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

    Raises:
        CheckpointError: If the weights of the default preset cannot be used.
    """
    preset = find_preset(DEFAULT_PRESET)
    with gr.Blocks(title="vit_demo: see a Vision Transformer think", analytics_enabled=False) as page:
        add_endpoints()  # first, so that they get the plain names
        pad = DigitPad(example=7, elem_id="pad", render=False)
        explorer_on().warm_up([preset.name, DEFAULT_PHOTO_PRESET])
        example = explorer_on().explore(pad.value, preset.name, preset.default_patch_size)
        gr.HTML(HEADER.format(device=example.device), elem_id="header")
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
                        SeenPart(elem_id="seen")
                with gr.Column(elem_id="model"):
                    name = gr.Dropdown(
                        events.presets_for("digits"),
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
                    model_hint = gr.Markdown(events.about_model(preset.name), elem_classes="said")
                    size = gr.Radio(
                        [str(p) for p in preset.patch_sizes],
                        value=str(preset.default_patch_size),
                        label="Patch size",
                        elem_id="patch-size",
                    )
                    size_hint = gr.Markdown(
                        events.about_size(preset.name, preset.default_patch_size), elem_classes="said"
                    )
            with gr.Column(elem_id="result", min_width=320):
                stage = Stage(payload(example), block_trace=events.block_trace, ask=ask, elem_id="stage")

        choices = [pad, photo, name, size, fit]

        def explain(drawing: str | None, picture: str | None, name: str, size: str, fit: Fit) -> dict[str, Any]:
            return empty(own.ASK) if name == own.OWN else events.explain(drawing, picture, name, int(size), fit)

        def at_first(drawing: str | None, picture: str | None, name: str, fit: Fit) -> tuple[Any, ...]:
            default = find_preset(name).default_patch_size
            return *events.choose_preset(name), events.explain_anyway(drawing, picture, name, default, fit)

        def choose_preset(drawing: str | None, picture: str | None, name: str, fit: Fit) -> Iterator[tuple[Any, ...]]:
            if name == own.OWN:
                yield own.ask()
                return
            first = gr.skip(), gr.Textbox(visible=name not in PRESETS)
            for said in events.fetching(name):
                yield *first, *events.choose_preset(name), empty(said)
            yield *first, *at_first(drawing, picture, name, fit)

        def choose_size(drawing: str | None, picture: str | None, name: str, size: str, fit: Fit) -> tuple[Any, ...]:
            said = events.about_size(name, int(size))
            return said, events.explain_anyway(drawing, picture, name, int(size), fit)

        def choose_task(task: Task, default: str) -> Any:
            def choose(drawing: str | None, picture: str | None, name: str, fit: Fit) -> tuple[Any, ...]:
                if own.task_of(name) == task:  # a tab is selected, too, when the page opens
                    return (gr.skip(),) * len(card)
                menu = gr.Dropdown(choices=own.menu(task), value=default)
                return menu, gr.Textbox(visible=False), *at_first(drawing, picture, default, fit)

            return choose

        # Private: the documented endpoints are those of ``web.api``. A newer stroke replaces one that still waits.
        quiet: dict[str, Any] = {
            "api_visibility": "private",
            "show_progress": "hidden",
            "trigger_mode": "always_last",
            "concurrency_limit": 2,
        }
        pad.input(explain, choices, stage, **quiet)
        # Not ``change``: that fires while the tab is being shown, before its models are in the menu.
        photo.input(explain, choices, stage, **quiet)
        examples.load_input_event.then(explain, choices, stage, **quiet)
        fit.input(explain, choices, stage, **quiet)
        size.input(choose_size, choices, [size_hint, stage], **quiet)
        card = [name, box, size, model_hint, size_hint, stage]
        name.input(choose_preset, [pad, photo, name, fit], card, **quiet)
        box.submit(own.load, [box, pad, photo, fit], card, **quiet)
        tasks: list[tuple[gr.Tab, Task, str]] = [
            (draw, "digits", preset.name),
            (drop, "photos", DEFAULT_PHOTO_PRESET),
        ]
        for tab, task, default in tasks:
            tab.select(choose_task(task, default), [pad, photo, name, fit], card, **quiet)
    return page
