"""Endpoints that analyse a picture in one call, for scripts and, as MCP tools, for agents."""

from __future__ import annotations

from typing import Any

import gradio as gr
from PIL import Image

from vit_demo.errors import InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.methods import METHODS, find_method
from vit_demo.web import requests
from vit_demo.web.api import Call
from vit_demo.web.components.picture_parameter import picture_parameter
from vit_demo.web.feature_endpoints import add_feature_endpoints
from vit_demo.web.handlers import with_gradio_errors

MAX_DROPPED = 10_000
"""Patches that one call of ``drop_patches`` may name."""


@with_gradio_errors
async def explain_image(
    image: Any, preset: str, patch_size: int, method: str, label: str
) -> tuple[dict[str, Any], Image.Image]:
    """Classifies a picture and shows which parts of it the prediction rests on, in one call.

    Args:
        image: The picture; for digits a drawing of one digit.
        preset: Name of the model: "photos-tiny" for photos, "digits-small" for a drawn digit, or another from presets.
        patch_size: Side of a patch in pixels; 0 for the model's default.
        method: "relevance", "attnlrp", "occlusion" and "patch_dropping" show the evidence for a class; "attention",
            "rollout" and "value_weighted" do not depend on the class.
        label: Class to explain; "" for the predicted one.

    Returns:
        The prediction and the map as numbers: {"label", "is_sure", "confidences": [{"label", "confidence"}, ...],
        "explained", "method", "class_specific", "rows", "cols", "map"}, and the map over the picture as an image.
    """
    chosen = find_method(requests.short_string(method, "method"))
    name = requests.short_string(label or "", "label")
    call = await Call.parse(image, preset, patch_size)

    def work() -> tuple[dict[str, Any], Image.Image]:
        result = call.explore()
        values = result.heatmap(method, name or None)
        rows, cols = result.grid
        found = _prediction(result) | {
            "explained": name or next((top for top, _ in result.top(1)), ""),
            "method": method,
            "class_specific": METHODS[method].class_specific,
            "rows": rows,
            "cols": cols,
            "map": values.tolist(),
        }
        return found, result.overlay(values, method=method)

    return await call.run(work, "slow" if chosen.is_slow else call.preset.task)


@with_gradio_errors
async def logit_lens(image: Any, preset: str, patch_size: int, patches: bool) -> list[list[Any]]:
    """Predicts the class after each block of the network, of the whole picture or of each patch (logit lens).

    Args:
        image: The picture; for digits a drawing of one digit.
        preset: Name of the model, from presets.
        patch_size: Side of a patch in pixels; 0 for the model's default.
        patches: Whether to predict from the token of each patch alone, and not from the whole picture.

    Returns:
        One list before the first block and one after each, of the five most likely {"label", "confidence"}. With
        patches, each is a list of rows of the most likely {"label", "confidence"} of each patch.
    """
    call = await Call.parse(image, preset, patch_size)
    if patches:
        depths = await call.run(lambda: call.explore().logit_lens(patches=True), call.preset.task)
        return [[[_confidences(patch[:1])[0] for patch in row] for row in depth] for depth in depths]
    rankings = await call.run(lambda: call.explore().logit_lens(), call.preset.task)
    return [_confidences(ranking[:5]) for ranking in rankings]


@with_gradio_errors
async def drop_patches(image: Any, preset: str, patch_size: int, patches: Any) -> dict[str, Any]:
    """Predicts again with some patches removed from the sequence, to test what the prediction needs.

    Args:
        image: The picture; for digits a drawing of one digit.
        preset: Name of the model, from presets.
        patch_size: Side of a patch in pixels; 0 for the model's default.
        patches: The patches to drop, as a list of [row, col], from 0.

    Returns:
        {"before", "after"}, each {"label", "is_sure", "confidences": [{"label", "confidence"}, ...]}.
    """
    dropped = _patches(patches)
    call = await Call.parse(image, preset, patch_size)

    def work() -> dict[str, Any]:
        result = call.explore()
        return {"before": _prediction(result), "after": _prediction(result.drop_patches(dropped))}

    return await call.run(work, call.preset.task)


@with_gradio_errors
async def faithfulness(image: Any, preset: str, patch_size: int, method: str, label: str) -> dict[str, Any]:
    """Measures whether a heatmap is faithful, by deletion and insertion, beside random orders of the patches.

    Args:
        image: The picture; for digits a drawing of one digit.
        preset: Name of the model, from presets.
        patch_size: Side of a patch in pixels; 0 for the model's default.
        method: Any method, as in explain_image.
        label: Class to explain; "" for the predicted one.

    Returns:
        Areas under the deletion curve (lower is better) and the insertion curve (higher is better), and the same of
        random orders: {"deletion", "insertion", "random_deletion", "random_insertion"}.
    """
    find_method(requests.short_string(method, "method"))
    name = requests.short_string(label or "", "label")
    call = await Call.parse(image, preset, patch_size)
    found = await call.run(lambda: call.explore().faithfulness(method, label=name or None), "slow")
    return {
        "deletion": found.deletion_area,
        "insertion": found.insertion_area,
        "random_deletion": found.random_deletion_area,
        "random_insertion": found.random_insertion_area,
    }


def add_analysis_endpoints() -> None:
    """Adds the endpoints to the page that is being built; their parameters are hidden components."""
    image = picture_parameter("image")
    preset = gr.Textbox("photos-tiny", visible=False, label="preset")
    patch_size = gr.Number(0, precision=0, visible=False, label="patch_size")
    method = gr.Textbox("relevance", visible=False, label="method")
    label = gr.Textbox("", visible=False, label="label")
    patches = gr.JSON(visible=False, label="patches")
    of_patches = gr.Checkbox(False, visible=False, label="patches")
    output = gr.JSON(visible=False, label="result")
    picture = gr.Image(visible=False, label="picture", format="png")
    for function, inputs, outputs in (
        (explain_image, [image, preset, patch_size, method, label], [output, picture]),
        (logit_lens, [image, preset, patch_size, of_patches], output),
        (drop_patches, [image, preset, patch_size, patches], output),
        (faithfulness, [image, preset, patch_size, method, label], output),
    ):
        gr.Button(visible=False).click(
            function, inputs, outputs, api_name=function.__name__, concurrency_limit=None, preprocess=False
        )
    add_feature_endpoints()


def _prediction(result: Exploration) -> dict[str, Any]:
    confidences = _confidences(result.top(5))
    return {
        "label": confidences[0]["label"] if confidences else "",
        "is_sure": result.is_sure,
        "confidences": confidences,
    }


def _confidences(pairs: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"label": label, "confidence": probability} for label, probability in pairs]


def _patches(value: Any) -> list[tuple[int, int]]:
    """Patches by row and column.

    Raises:
        InputError: If it is not a list of them.
    """
    pairs: list[Any] = value if isinstance(value, list) else []
    whole = 0 < len(pairs) <= MAX_DROPPED and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    if not whole:
        raise InputError("The patches are not a list of [row, col]: send one.")
    return [(requests.integer(row, "row"), requests.integer(col, "column")) for row, col in pairs]
