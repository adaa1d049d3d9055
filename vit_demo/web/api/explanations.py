"""The endpoints about models, methods, predictions and heatmaps."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_demo.inference.exploration import Exploration
from vit_demo.methods import METHODS, find_method
from vit_demo.web.api.endpoints import REQUIRED, endpoint
from vit_demo.web.api.parameters import (
    Against,
    Block,
    ByPatch,
    DroppedPatches,
    Head,
    Label,
    MethodName,
    PresetName,
    QueryCol,
    QueryRow,
)
from vit_demo.web.api.schemas import (
    Areas,
    BeforeAndAfter,
    Classified,
    Confidence,
    Explained,
    ExplainedImage,
    Heatmap,
    LogitLens,
    MethodEntry,
    Predicted,
    Prediction,
    PresetEntry,
)
from vit_demo.web.catalog.visitor_presets import get_preset
from vit_demo.web.requests import parse
from vit_demo.weights import PRESETS

OPTIONS = ("block", "head", "query")
"""The options of a method that /explain and /overlay take; the query as row and col."""


@endpoint
def presets() -> list[PresetEntry]:
    """Lists the models: name, title, task, classes, image and patch sizes, size of the network.

    Returns:
        One object for each; "labels" are its classes if these are at most 100, otherwise see labels.
    """
    fields = [name for name in PresetEntry.__annotations__ if name not in ("labels", "num_labels", "patch_sizes")]
    return [
        cast(
            PresetEntry,
            {
                **{name: getattr(preset, name) for name in fields},
                "num_labels": len(preset.labels),
                "labels": list(preset.few_labels),
                "patch_sizes": list(preset.patch_sizes),
            },
        )
        for preset in PRESETS.values()
    ]


@endpoint
async def labels(preset: PresetName) -> list[str]:
    """Lists all classes of a model, also of one that knows more than 100.

    Returns:
        The names of the classes, in the order of the network's outputs.
    """
    name = parse.preset_name(preset)
    return list((PRESETS.get(name) or await get_preset(name)).labels)


@endpoint
def methods() -> list[MethodEntry]:
    """Lists the explanation methods: name, title, whether they are class-specific, cost, unit, options of explain.

    Returns:
        One object a method.
    """
    return [
        cast(MethodEntry, {**method.to_dict(), "options": [o.to_dict() for o in method.options if o.name in OPTIONS]})
        for method in METHODS.values()
    ]


@endpoint
def predict(result: Exploration) -> Predicted:
    """Classifies a picture with a Vision Transformer.

    Returns:
        {"label", "is_confident", "confidences": [{"label", "confidence"}, ...], "preset", "labels", "grid": [rows,
        cols]}; "labels" are all classes that the model knows, if at most 100, because it takes anything else for one of
        them. A model without classes answers "" and no confidences.
    """
    return {**_predicted(result), "grid": list(result.grid)}


@endpoint
def explain(
    result: Exploration,
    method: MethodName = "attention",
    block: Block = -1,
    head: Head = -1,
    row: QueryRow = -1,
    col: QueryCol = -1,
    label: Label = "",
    against: Against = "",
) -> Heatmap:
    """Computes one heatmap over the patches of a picture.

    Block, head, row and column are ignored by methods without these options.

    Returns:
        {"map": rows of true values, "rows", "cols", "preset", "method", "class_specific", "label"}.
    """
    values = _map(result, method, block, head, row, col, label, against)
    return {**_heatmap(result, method, values), "preset": result.preset.name, "label": label or _first(result)}


@endpoint
def overlay(
    result: Exploration,
    method: MethodName = "attention",
    block: Block = -1,
    head: Head = -1,
    row: QueryRow = -1,
    col: QueryCol = -1,
    label: Label = "",
    against: Against = "",
) -> Image.Image:
    """Draws one heatmap over the picture as the model saw it; see explain.

    Returns:
        An image file, the map scaled by its largest value.
    """
    return result.overlay(_map(result, method, block, head, row, col, label, against), method=method)


@endpoint
def explain_image(
    result: Exploration, method: MethodName = "relevance", label: Label = ""
) -> tuple[ExplainedImage, Image.Image]:
    """Classifies a picture and shows which parts of it the prediction rests on, in one call.

    Returns:
        The prediction and the map as numbers: {"label", "is_confident", "confidences": [{"label", "confidence"},
        ...], "preset", "labels", "explained", "method", "class_specific", "rows", "cols", "map"}, and the map
        over the picture as an image. "labels" are all classes that the model knows, if at most 100, because it takes
        anything else for one of them, sometimes with high confidence.
    """
    values = result.heatmap(method, label)
    found: ExplainedImage = {
        **_predicted(result),
        **_heatmap(result, method, values),
        "explained": label or _first(result),
    }
    return found, result.overlay(values, method=method)


@endpoint
def logit_lens(result: Exploration, patches: ByPatch = False) -> LogitLens:
    """Predicts the class after each block of the network, of the whole picture or of each patch (logit lens).

    Returns:
        One list before the first block and one after each, of the five most likely {"label", "confidence"}. With
        patches, each is a list of rows of the most likely {"label", "confidence"} of each patch.
    """
    if not patches:
        return [_confidences(ranking[:5]) for ranking in result.logit_lens()]
    depths = result.logit_lens(patches=True)
    return [[[_confidences(patch[:1])[0] for patch in row] for row in depth] for depth in depths]


@endpoint
def drop_patches(result: Exploration, patches: DroppedPatches = REQUIRED) -> BeforeAndAfter:
    """Predicts again with some patches removed from the sequence, to test what the prediction needs.

    Returns:
        {"before", "after"}, each {"label", "is_confident", "confidences": [{"label", "confidence"}, ...]}.
    """
    return {"before": _prediction(result), "after": _prediction(result.drop_patches(patches))}


@endpoint(slow=True)
def faithfulness(
    result: Exploration, method: MethodName = "relevance", label: Label = "", against: Against = ""
) -> Areas:
    """Measures whether a heatmap is faithful, by deletion and insertion, beside random orders of the patches.

    Returns:
        Areas under the deletion curve (lower is better) and the insertion curve (higher is better), and the same of
        random orders: {"deletion", "insertion", "random_deletion", "random_insertion"}.
    """
    found = result.faithfulness(method, label=label, against=against)
    return {
        "deletion": found.deletion_area,
        "insertion": found.insertion_area,
        "random_deletion": found.random_deletion_area,
        "random_insertion": found.random_insertion_area,
    }


def _map(
    result: Exploration,
    method: str,
    block: int,
    head: int,
    row: int,
    col: int,
    label: str | None,
    against: str | None,
) -> NDArray[np.float32]:
    """The map that /explain and /overlay are asked for."""
    options = {
        "block": block,
        "head": None if head == -1 else head,
        "query": None if (row, col) == (-1, -1) else (row, col),
    }
    chosen = find_method(method)
    offered: dict[str, Any] = {option: value for option, value in options.items() if chosen.offers(option)}
    return result.heatmap(method, label, against=against, **offered)


def _heatmap(result: Exploration, method: str, values: NDArray[np.float32]) -> Explained:
    rows, cols = result.grid
    return {
        "map": values.tolist(),
        "rows": rows,
        "cols": cols,
        "method": method,
        "class_specific": find_method(method).class_specific,
    }


def _first(result: Exploration) -> str:
    """The predicted class; "" for a model without classes."""
    return next((label for label, _ in result.top(1)), "")


def _prediction(result: Exploration) -> Prediction:
    confidences = _confidences(result.top(5))
    return {"label": _first(result), "is_confident": result.is_confident, "confidences": confidences}


def _predicted(result: Exploration) -> Classified:
    return {**_prediction(result), "preset": result.preset.name, "labels": list(result.preset.few_labels)}


def _confidences(pairs: list[tuple[str, float]]) -> list[Confidence]:
    return [{"label": label, "confidence": probability} for label, probability in pairs]
