"""The documented endpoints, for ``gradio_client``, plain HTTP and, with the extra installed, MCP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr
import numpy as np
from gradio.components import Component
from numpy.typing import NDArray
from PIL import Image

from vit_demo.inference.engine import DEFAULT_PRESET, explorer_on
from vit_demo.inference.exploration import Exploration
from vit_demo.methods import METHODS, find_method
from vit_demo.web.own import is_allowed
from vit_demo.weights import PRESETS

CLASS_SPECIFIC = {name: method.class_specific for name, method in METHODS.items()}
"""The methods of ``/explain``, and whether a map of each depends on the class."""


def presets() -> list[dict[str, Any]]:
    """Lists the models: name, title, task, labels, image and patch sizes, size of the network.

    Returns:
        One object a preset.
    """
    return [
        {
            "name": preset.name,
            "title": preset.title,
            "task": preset.task,
            "labels": list(preset.labels),
            "image_size": preset.image_size,
            "patch_sizes": list(preset.patch_sizes),
            "default_patch_size": preset.default_patch_size,
            "num_parameters": preset.num_parameters,
            "num_blocks": preset.num_blocks,
            "num_heads": preset.num_heads,
            "source": preset.source,
            "flexible": preset.flexible,
        }
        for preset in PRESETS.values()
    ]


def predict(image: str, preset: str, patch_size: int) -> dict[str, Any]:
    """Classifies a picture with a Vision Transformer.

    Args:
        image: The picture file; for digits a drawing of one digit.
        preset: Name of the model, from /presets, or a repository of the Hub as org/name.
        patch_size: Side of a patch in pixels; 0 for the model's default.

    Returns:
        {"label", "confidences": [{"label", "confidence"}, ...], "grid": [rows, cols]}; a model without classes answers
        "" and no confidences.
    """
    result = _explore(image, preset, patch_size)
    top = [{"label": label, "confidence": probability} for label, probability in result.top(5)]
    return {"label": top[0]["label"] if top else "", "confidences": top, "grid": list(result.grid)}


def explain(
    image: str, preset: str, patch_size: int, method: str, layer: int, head: int, row: int, col: int, label: str
) -> dict[str, Any]:
    """Computes one heatmap over the patches of a picture.

    Args:
        image: The picture file; for digits a drawing of one digit.
        preset: Name of the model, from /presets, or a repository of the Hub as org/name.
        patch_size: Side of a patch in pixels; 0 for the model's default.
        method: "attention", "rollout", "value_weighted", "relevance", "attnlrp", "occlusion" or "patch_dropping".
        layer: Block, from 0; -1 for the last. Attention only.
        head: From 0; -1 for the mean of all. Attention only.
        row: Row of the patch that asks, from 0; -1 for the class token. Attention and rollout only.
        col: Its column; -1 for the class token.
        label: Class to explain; "" for the predicted one. The first three methods do not depend on it.

    Returns:
        {"map": rows of true values, "rows", "cols", "method", "class_specific", "label"}.
    """
    result = _explore(image, preset, patch_size)
    values = _map(result, method, layer, head, row, col, label)
    rows, cols = result.grid
    return {
        "map": values.tolist(),
        "rows": rows,
        "cols": cols,
        "method": method,
        "class_specific": CLASS_SPECIFIC[method],
        "label": label or next((name for name, _ in result.top(1)), ""),
    }


def overlay(
    image: str, preset: str, patch_size: int, method: str, layer: int, head: int, row: int, col: int, label: str
) -> Image.Image:
    """Draws one heatmap over the picture as the model saw it; arguments as in /explain.

    Returns:
        An image file, the map scaled to its own maximum.
    """
    result = _explore(image, preset, patch_size)
    return result.overlay(_map(result, method, layer, head, row, col, label))


def add_endpoints() -> None:
    """Adds the endpoints to the page being built; their parameters are components that are never shown."""
    image = gr.File(type="filepath", visible=False, label="image")
    preset = gr.Textbox(DEFAULT_PRESET, visible=False, label="preset")
    method = gr.Textbox("attention", visible=False, label="method")
    label = gr.Textbox("", visible=False, label="label")
    patch_size, layer, head, row, col = (
        gr.Number(default, precision=0, visible=False, label=name)
        for name, default in {"patch_size": 0, "layer": -1, "head": -1, "row": -1, "col": -1}.items()
    )
    answer = gr.JSON(visible=False, label="answer")
    picture = gr.Image(visible=False, label="picture", format="png")

    def add(function: Callable[..., Any], inputs: list[Any], output: Component = answer) -> None:
        gr.Button(visible=False).click(function, inputs, output, api_name=function.__name__, concurrency_limit=2)

    everything = [image, preset, patch_size, method, layer, head, row, col, label]
    add(presets, [])
    add(predict, [image, preset, patch_size])
    add(explain, everything)
    add(overlay, everything, picture)


@contextmanager
def _in_words() -> Iterator[None]:
    """Turns a ``ValueError`` into the ``gr.Error`` that carries its sentence to the caller."""
    try:
        yield
    except ValueError as error:
        raise gr.Error(str(error), print_exception=False) from error


def _map(
    result: Exploration, method: str, layer: int, head: int, row: int, col: int, label: str
) -> NDArray[np.float32]:
    """The map that /explain and /overlay are asked for."""
    query = None if row == col == -1 else (int(row), int(col))
    with _in_words():
        find_method(method)
        if label:
            result.target(label)  # refused even where the map does not depend on it
        if method == "rollout":
            return result.rollout(query)
        if method == "attention":
            return result.attention(int(layer), None if head == -1 else int(head), query)
        return result.heatmap(method, label or None)


def _explore(image: str | None, preset: str, patch_size: int | None) -> Exploration:
    with _in_words():
        if not image:
            raise ValueError("There is no picture: send a picture file as `image`.")
        if not is_allowed(preset):
            raise ValueError(f"There is no preset {preset!r}: see /presets, or name a repository of the Hub.")
        return explorer_on().explore(image, preset, int(patch_size) if patch_size else None)
