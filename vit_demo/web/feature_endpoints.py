"""Endpoints about the tokens of a picture's patches; the page computes the same from one reply (``token_requests``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gradio as gr
import numpy as np

from vit_demo.features import norm_outliers
from vit_demo.web import requests
from vit_demo.web.api import Call
from vit_demo.web.components.picture_parameter import picture_parameter
from vit_demo.web.handlers import with_gradio_errors


@with_gradio_errors
async def similarity(
    image: Any, preset: str, patch_size: int, layer: int, row: int, col: int, other: Any = None
) -> dict[str, Any]:
    """Compares the token of one patch with those of all patches, by cosine similarity.

    Args:
        image: The picture; for digits a drawing of one digit.
        preset: Name of the model, from presets.
        patch_size: Side of a patch in pixels; 0 for the model's default.
        layer: Block, from 0; -1 for the last.
        row: Row of the patch, from 0.
        col: Its column.
        other: A second picture, whose patches are compared instead; none for the same picture.

    Returns:
        {"map": rows of cosines, -1 to 1, "rows", "cols"}, of the second picture if there is one.
    """
    block = requests.integer(layer, "layer", -1)
    patch = requests.integer(row, "row"), requests.integer(col, "column")
    call = await Call.parse(image, preset, patch_size)
    second = replace(call, source=requests.image_source(other)) if other else None

    def work() -> dict[str, Any]:
        return _map(call.explore().similarity(patch, block, second.explore() if second else None))

    return await call.run(work, call.preset.task)


@with_gradio_errors
async def pca(
    image: Any, preset: str, patch_size: int, layer: int, remove_background: bool, other: Any = None
) -> dict[str, Any]:
    """Computes the first three principal components of the patches' tokens, often shown as red, green and blue.

    Args:
        image: The picture; for digits a drawing of one digit.
        preset: Name of the model, from presets.
        patch_size: Side of a patch in pixels; 0 for the model's default.
        layer: Block, from 0; -1 for the last.
        remove_background: Whether to leave out the patches on one side of zero of the first component, and fit again.
        other: A second picture to which the components are fitted as well; none for the first alone.

    Returns:
        {"map": rows of [first, second, third], or null where the background was removed, "rows", "cols"}.
    """
    block = requests.integer(layer, "layer", -1)
    call = await Call.parse(image, preset, patch_size)
    second = replace(call, source=requests.image_source(other)) if other else None

    def work() -> dict[str, Any]:
        result = call.explore()
        beside = second.explore() if second else None
        components = min(3, result.preset.config.embed_dim)
        values = result.pca(block, components, beside, remove_background=bool(remove_background))
        rows = [[None if np.isnan(patch).any() else patch.tolist() for patch in line] for line in values]
        return _map(values) | {"map": rows}

    return await call.run(work, call.preset.task)


@with_gradio_errors
async def kmeans(image: Any, preset: str, patch_size: int, layer: int, k: int) -> dict[str, Any]:
    """Divides a picture into segments of patches with similar tokens, by k-means.

    Args:
        image: The picture; for digits a drawing of one digit.
        preset: Name of the model, from presets.
        patch_size: Side of a patch in pixels; 0 for the model's default.
        layer: Block, from 0; -1 for the last.
        k: How many segments, 2 to 12.

    Returns:
        {"map": rows of segments, from 0, "rows", "cols"}.
    """
    block = requests.integer(layer, "layer", -1)
    count = requests.integer(k, "number of segments")
    call = await Call.parse(image, preset, patch_size)
    return await call.run(lambda: _map(call.explore().kmeans(count, block)), call.preset.task)


@with_gradio_errors
async def norms(image: Any, preset: str, patch_size: int, layer: int) -> dict[str, Any]:
    """Measures the length of each patch's token, and finds those that are far longer than the rest.

    Args:
        image: The picture; for digits a drawing of one digit.
        preset: Name of the model, from presets.
        patch_size: Side of a patch in pixels; 0 for the model's default.
        layer: Block, from 0; -1 for the last.

    Returns:
        {"map": rows of lengths, "rows", "cols", "outliers": [[row, col], ...]}.
    """
    block = requests.integer(layer, "layer", -1)
    call = await Call.parse(image, preset, patch_size)

    def work() -> dict[str, Any]:
        values = call.explore().norms(block)
        return _map(values) | {"outliers": np.argwhere(norm_outliers(values)).tolist()}

    return await call.run(work, call.preset.task)


def add_feature_endpoints() -> None:
    """Adds the endpoints to the page that is being built; their parameters are hidden components."""
    image, other = picture_parameter("image"), picture_parameter("other")
    preset = gr.Textbox("photos-tiny", visible=False, label="preset")
    patch_size, layer, row, col, k = (
        gr.Number(default, precision=0, visible=False, label=name)
        for name, default in {"patch_size": 0, "layer": -1, "row": 0, "col": 0, "k": 5}.items()
    )
    remove_background = gr.Checkbox(False, visible=False, label="remove_background")
    output = gr.JSON(visible=False, label="result")
    common = [image, preset, patch_size, layer]
    for function, inputs in (
        (similarity, [*common, row, col, other]),
        (pca, [*common, remove_background, other]),
        (kmeans, [*common, k]),
        (norms, common),
    ):
        gr.Button(visible=False).click(
            function, inputs, output, api_name=function.__name__, concurrency_limit=None, preprocess=False
        )


def _map(values: np.ndarray) -> dict[str, Any]:
    rows, cols = values.shape[:2]
    return {"map": values.tolist(), "rows": rows, "cols": cols}
