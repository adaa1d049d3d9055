"""Endpoints that analyse a picture in one call, for scripts and, as MCP tools, for agents."""

from __future__ import annotations

from typing import Any

from PIL import Image

from vit_demo.errors import InputError
from vit_demo.inference.exploration import Exploration
from vit_demo.methods import find_method
from vit_demo.web import requests
from vit_demo.web.api import Call
from vit_demo.web.endpoints import REQUIRED, Picture
from vit_demo.web.handlers import with_gradio_errors
from vit_demo.web.results import (
    Areas,
    BeforeAndAfter,
    Confidence,
    ExplainedImage,
    LogitLens,
    Prediction,
)

MAX_DROPPED = 10_000
"""Patches that one call of ``drop_patches`` may name."""


@with_gradio_errors
async def explain_image(
    image: Picture,
    preset: str = "",
    patch_size: int = 0,
    method: str = "relevance",
    label: str = "",
) -> tuple[ExplainedImage, Image.Image]:
    """Classifies a picture and shows which parts of it the prediction rests on, in one call.

    Args:
        image: The picture: a photo, or a drawing of one digit.
        preset: Name of the model, from presets, or a repository of the Hub as org/name; "" for "digits-small" if the
            picture is a drawing, else "photos-tiny".
        patch_size: Side of a patch in pixels; 0 for the model's default.
        method: "relevance", "attnlrp", "occlusion" and "local_surrogate" show the evidence for a class; "attention",
            "rollout" and "norm_attention" do not depend on the class.
        label: Class to explain; "" for the predicted one.

    Returns:
        The prediction and the map as numbers: {"label", "is_confident", "confidences": [{"label", "confidence"},
        ...], "preset", "labels", "explained", "method", "class_specific", "rows", "cols", "map"}, and the map
        over the picture as an image. "labels" are all classes that the model knows, if at most 100, because it takes
        anything else for one of them, sometimes with high confidence.
    """
    chosen = find_method(requests.short_string(method, "method"))
    name = requests.short_string(label or "", "label")
    call = await Call.parse(image, preset, patch_size)

    def work() -> tuple[ExplainedImage, Image.Image]:
        result = call.explore()
        values = result.heatmap(method, name or None)
        rows, cols = result.grid
        found: ExplainedImage = {
            **_prediction(result),
            "preset": result.preset.name,
            "labels": list(result.preset.few_labels),
            "explained": name or next((top for top, _ in result.top(1)), ""),
            "method": method,
            "class_specific": find_method(method).class_specific,
            "rows": rows,
            "cols": cols,
            "map": values.tolist(),
        }
        return found, result.overlay(values, method=method)

    return await call.run(work, slow=chosen.is_slow)


@with_gradio_errors
async def logit_lens(image: Picture, preset: str = "", patch_size: int = 0, patches: bool = False) -> LogitLens:
    """Predicts the class after each block of the network, of the whole picture or of each patch (logit lens).

    Args:
        image: The picture: a photo, or a drawing of one digit.
        preset: Name of the model, from presets; "" for "digits-small" if the picture is a drawing, else "photos-tiny".
        patch_size: Side of a patch in pixels; 0 for the model's default.
        patches: Whether to predict from the token of each patch alone, and not from the whole picture.

    Returns:
        One list before the first block and one after each, of the five most likely {"label", "confidence"}. With
        patches, each is a list of rows of the most likely {"label", "confidence"} of each patch.
    """
    call = await Call.parse(image, preset, patch_size)
    if patches:
        depths = await call.run(lambda: call.explore().logit_lens(patches=True))
        return [[[_confidences(patch[:1])[0] for patch in row] for row in depth] for depth in depths]
    rankings = await call.run(lambda: call.explore().logit_lens())
    return [_confidences(ranking[:5]) for ranking in rankings]


@with_gradio_errors
async def drop_patches(
    image: Picture, preset: str = "", patch_size: int = 0, patches: Any = REQUIRED
) -> BeforeAndAfter:
    """Predicts again with some patches removed from the sequence, to test what the prediction needs.

    Args:
        image: The picture: a photo, or a drawing of one digit.
        preset: Name of the model, from presets; "" for "digits-small" if the picture is a drawing, else "photos-tiny".
        patch_size: Side of a patch in pixels; 0 for the model's default.
        patches: The patches to drop, as a list of [row, col], from 0.

    Returns:
        {"before", "after"}, each {"label", "is_confident", "confidences": [{"label", "confidence"}, ...]}.
    """
    dropped = _patches(patches)
    call = await Call.parse(image, preset, patch_size)

    def work() -> BeforeAndAfter:
        result = call.explore()
        return {"before": _prediction(result), "after": _prediction(result.drop_patches(dropped))}

    return await call.run(work)


@with_gradio_errors
async def faithfulness(
    image: Picture,
    preset: str = "",
    patch_size: int = 0,
    method: str = "relevance",
    label: str = "",
) -> Areas:
    """Measures whether a heatmap is faithful, by deletion and insertion, beside random orders of the patches.

    Args:
        image: The picture: a photo, or a drawing of one digit.
        preset: Name of the model, from presets; "" for "digits-small" if the picture is a drawing, else "photos-tiny".
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
    found = await call.run(lambda: call.explore().faithfulness(method, label=name or None), slow=True)
    return {
        "deletion": found.deletion_area,
        "insertion": found.insertion_area,
        "random_deletion": found.random_deletion_area,
        "random_insertion": found.random_insertion_area,
    }


def _prediction(result: Exploration) -> Prediction:
    confidences = _confidences(result.top(5))
    return {
        "label": confidences[0]["label"] if confidences else "",
        "is_confident": result.is_confident,
        "confidences": confidences,
    }


def _confidences(pairs: list[tuple[str, float]]) -> list[Confidence]:
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
