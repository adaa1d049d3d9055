"""The endpoints: models and methods, predictions and heatmaps, the tokens of the patches."""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_demo.checks import read_heads
from vit_demo.defaults import DEFAULT_METHOD, NUM_CLASSES
from vit_demo.features import norm_outliers
from vit_demo.inference.exploration import Exploration
from vit_demo.methods import METHODS, find_method
from vit_demo.web.api import parameters, schemas
from vit_demo.web.api.registration import REQUIRED, endpoint
from vit_demo.web.catalog.visitor_presets import get_preset
from vit_demo.web.requests import parse
from vit_demo.weights import PRESETS

OPTIONS = ("block", "head", "query")  # the options that /explain and /overlay take, the query as row and col


@endpoint
def presets() -> list[schemas.PresetEntry]:
    """Lists the models: name, title, task, classes, image and patch sizes, size of the network.

    Returns:
        One object for each; "labels" are its classes if these are at most 100, otherwise see labels.
    """
    computed = ("labels", "num_labels", "patch_sizes")
    fields = [name for name in schemas.PresetEntry.__annotations__ if name not in computed]
    entries = [
        {
            **{name: getattr(preset, name) for name in fields},
            "num_labels": len(preset.labels),
            "labels": list(preset.few_labels),
            "patch_sizes": list(preset.patch_sizes),
        }
        for preset in PRESETS.values()
    ]
    return cast(list[schemas.PresetEntry], entries)


@endpoint
async def labels(preset: parameters.PresetName) -> list[str]:
    """Lists all classes of a model, also if there are more than 100.

    Returns:
        The names of the classes, in the order of the network's outputs.
    """
    name = parse.preset_name(preset)
    return list((PRESETS.get(name) or await get_preset(name)).labels)


@endpoint
def methods() -> list[schemas.MethodEntry]:
    """Lists the explanation methods: name, title, whether they are class-specific, cost, unit, options of explain.

    Returns:
        One object a method.
    """
    entries = [
        {**method.to_dict(), "options": [option.to_dict() for option in method.options if option.name in OPTIONS]}
        for method in METHODS.values()
    ]
    return cast(list[schemas.MethodEntry], entries)


@endpoint
def predict(result: Exploration) -> schemas.Predicted:
    """Classifies a picture with a Vision Transformer.

    Returns:
        {"label", "is_confident", "confidences": [{"label", "confidence"}, ...], "preset", "labels", "grid": [rows,
        cols]}; "labels" are all classes that the model knows, if at most 100, because it takes anything else for one of
        them. A model without classes answers "" and no confidences.
    """
    return {**_predicted(result), "grid": list(result.grid)}


def requested_map(
    result: Exploration,
    method: parameters.MethodName = "attention",
    block: parameters.Block = -1,
    head: parameters.Head = -1,
    row: parameters.QueryRow = -1,
    col: parameters.QueryCol = -1,
    label: parameters.Label = "",
    against: parameters.Against = "",
) -> NDArray[np.float32]:
    """The map that /explain and /overlay return."""
    query = None if (row, col) == (-1, -1) else (row, col)
    options: dict[str, Any] = {"block": block, "head": None if head == -1 else head, "query": query}
    offered = {name: value for name, value in options.items() if find_method(method).offers(name)}
    return _values(result, method, label, against=against, **offered)


def _values(result: Exploration, method: str, label: str | None, **options: Any) -> NDArray[np.float32]:
    """A map; a class is ignored by methods that do not depend on it, but must be one."""
    if label:
        result.target(label)
    return result.heatmap(method, label if find_method(method).class_specific else None, **options)


@endpoint(like=requested_map)
def explain(result: Exploration, method: str, label: str | None, **options: Any) -> schemas.Heatmap:
    """Computes one heatmap over the patches of a picture.

    Block, head, row and column are ignored by methods without these options.

    Returns:
        {"map": rows of true values, "rows", "cols", "preset", "method", "class_specific", "label"}.
    """
    values = requested_map(result, method, label=label, **options)
    return {**_heatmap(method, values), "preset": result.preset.name, "label": label or _first(result)}


@endpoint(like=requested_map)
def overlay(result: Exploration, method: str, **options: Any) -> Image.Image:
    """Draws one heatmap over the picture as the model saw it; see explain.

    Returns:
        An image file, the map scaled by its largest value.
    """
    return result.overlay(requested_map(result, method, **options), method=method)


@endpoint
def explain_image(
    result: Exploration, method: parameters.MethodName = DEFAULT_METHOD, label: parameters.Label = ""
) -> tuple[schemas.ExplainedImage, Image.Image]:
    """Classifies a picture and shows which parts of it the prediction rests on, in one call.

    Returns:
        The prediction and the map as numbers: {"label", "is_confident", "confidences": [{"label", "confidence"},
        ...], "preset", "labels", "explained", "method", "class_specific", "rows", "cols", "map"}, and the map
        over the picture as an image. "labels" are all classes that the model knows, if at most 100, because it takes
        anything else for one of them, sometimes with high confidence.
    """
    values = _values(result, method, label)
    explained = label or _first(result)
    numbers: schemas.ExplainedImage = {**_predicted(result), **_heatmap(method, values), "explained": explained}
    return numbers, result.overlay(values, method=method)


@endpoint
def logit_lens(result: Exploration, patches: parameters.ByPatch = False) -> schemas.LogitLens:
    """Predicts the class after each block of the network, of the whole picture or of each patch (logit lens).

    Returns:
        One list before the first block and one after each, of the most likely {"label", "confidence"}. With
        patches, each is a list of rows of the most likely {"label", "confidence"} of each patch.
    """
    if not patches:
        return [_confidences(ranking[:NUM_CLASSES]) for ranking in result.logit_lens()]
    depths = result.logit_lens(patches=True)
    return [[[_confidences(patch[:1])[0] for patch in row] for row in depth] for depth in depths]


@endpoint
def drop_patches(result: Exploration, patches: parameters.DroppedPatches = REQUIRED) -> schemas.BeforeAndAfter:
    """Predicts again with some patches removed from the sequence, to test what the prediction needs.

    Returns:
        {"before", "after"}, each {"label", "is_confident", "confidences": [{"label", "confidence"}, ...]}.
    """
    return {"before": _prediction(result), "after": _prediction(result.drop_patches(patches))}


@endpoint(slow=True)
def head_effects(
    result: Exploration,
    label: parameters.Label = "",
    against: parameters.Against = "",
    silent: parameters.SilentHeads = "",
) -> schemas.HeadEffects:
    """Measures what a class loses when each attention head alone is silent: which heads does this answer need?

    Returns:
        {"effects": for each block a list of what its heads are worth, in the unit of the logit, below 0 where the class
        gains, "label", "against", "prediction": with the heads of ``silent`` silent}. With ``against``, what the
        difference of both logits loses.
    """
    changed = result.without(heads=read_heads(silent))
    effects = changed.head_effects(label, against).tolist()
    prediction = _prediction(changed)
    return {"effects": effects, "label": label or _first(changed), "against": against or "", "prediction": prediction}


@endpoint(slow=True)
def faithfulness(
    result: Exploration,
    method: parameters.MethodName = DEFAULT_METHOD,
    label: parameters.Label = "",
    against: parameters.Against = "",
) -> schemas.Areas:
    """Measures whether a heatmap is faithful, by deletion and insertion, beside random orders of the patches.

    Returns:
        Areas under the deletion curve (lower is better) and the insertion curve (higher is better), and the same of
        random orders: {"deletion", "insertion", "random_deletion", "random_insertion"}. They are areas of the class's
        probability; of its logit, if that probability is below 0.1; with ``against``, of the difference of both logits.
    """
    measured = result.faithfulness(method, label=label, against=against)
    return {
        "deletion": measured.deletion_area,
        "insertion": measured.insertion_area,
        "random_deletion": measured.random_deletion_area,
        "random_insertion": measured.random_insertion_area,
    }


@endpoint
def similarity(
    result: Exploration,
    block: parameters.Block = -1,
    row: parameters.Row = 0,
    col: parameters.Col = 0,
    other: parameters.OtherPicture = None,
) -> schemas.Values:
    """Compares the token of one patch with those of all patches, by cosine similarity.

    Returns:
        {"map": rows of cosines, -1 to 1, "rows", "cols"}, of the second picture if there is one.
    """
    return _on_grid(result.similarity((row, col), block, other))


@endpoint
def pca(
    result: Exploration,
    block: parameters.Block = -1,
    remove_background: parameters.RemoveBackground = False,
    other: parameters.OtherPicture = None,
) -> schemas.Components:
    """Computes the first three principal components of the patches' tokens, often shown as red, green and blue.

    Returns:
        {"map": rows of [first, second, third], or null where the background was removed, "rows", "cols"}.
    """
    components = min(3, result.preset.config.embed_dim)
    values = result.pca(block, components, other, remove_background=remove_background)
    patches = [[None if np.isnan(patch).any() else patch.tolist() for patch in line] for line in values]
    return {"map": patches, "rows": values.shape[0], "cols": values.shape[1]}


@endpoint
def kmeans(result: Exploration, block: parameters.Block = -1, k: parameters.NumSegments = 5) -> schemas.Segments:
    """Divides a picture into segments of patches with similar tokens, by k-means.

    Returns:
        {"map": rows of segments, from 0, "rows", "cols"}.
    """
    values = result.kmeans(k, block)
    return {"map": values.tolist(), "rows": values.shape[0], "cols": values.shape[1]}


@endpoint
def norms(result: Exploration, block: parameters.Block = -1) -> schemas.Lengths:
    """Measures the length of each patch's token, and finds those that are far longer than the rest.

    Returns:
        {"map": rows of lengths, "rows", "cols", "outliers": [[row, col], ...]}.
    """
    values = result.norms(block)
    return {**_on_grid(values), "outliers": np.argwhere(norm_outliers(values)).tolist()}


def _heatmap(method: str, values: NDArray[np.float32]) -> schemas.Explained:
    return {**_on_grid(values), "method": method, "class_specific": find_method(method).class_specific}


def _on_grid(values: NDArray[np.floating]) -> schemas.Values:
    rows, cols = values.shape
    return {"map": values.tolist(), "rows": rows, "cols": cols}


def _first(result: Exploration) -> str:
    """The predicted class; "" for a model without classes."""
    return next((label for label, _ in result.top(1)), "")


def _prediction(result: Exploration) -> schemas.Prediction:
    confidences = _confidences(result.top())
    return {"label": _first(result), "is_confident": result.is_confident, "confidences": confidences}


def _predicted(result: Exploration) -> schemas.Classified:
    return {**_prediction(result), "preset": result.preset.name, "labels": list(result.preset.few_labels)}


def _confidences(pairs: list[tuple[str, float]]) -> list[schemas.Confidence]:
    return [{"label": label, "confidence": probability} for label, probability in pairs]
