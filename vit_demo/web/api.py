"""The documented endpoints, for ``gradio_client``, plain HTTP and, with the extra installed, MCP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_demo.errors import ImageError
from vit_demo.inference.engine import Engine
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.inputs import Source, default_preset
from vit_demo.inference.limits import job_bytes
from vit_demo.inference.shared import get_engine
from vit_demo.methods import METHODS, find_method
from vit_demo.web import requests
from vit_demo.web.endpoints import Picture
from vit_demo.web.handlers import get_preset, with_gradio_errors
from vit_demo.web.results import Confidence, Heatmap, MethodEntry, Predicted, PresetEntry
from vit_demo.weights import DEFAULT_PRESETS, PRESETS, Preset

T = TypeVar("T")

OPTIONS = ("block", "head", "query")
"""The options of a method that /explain and /overlay take; the query as row and col."""


def presets() -> list[PresetEntry]:
    """Lists the models: name, title, task, classes, image and patch sizes, size of the network.

    Returns:
        One object for each; "labels" are its classes if these are at most 100, otherwise see labels.
    """
    return [
        {
            "name": preset.name,
            "title": preset.title,
            "task": preset.task,
            "num_labels": len(preset.labels),
            "labels": list(preset.few_labels),
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


@with_gradio_errors
async def labels(preset: str) -> list[str]:
    """Lists all classes of a model, also of one that knows more than 100.

    Args:
        preset: Name of the model, from presets, or a repository of the Hub as org/name.

    Returns:
        The names of the classes, in the order of the network's outputs.
    """
    name = requests.preset_name(preset)
    return list((PRESETS.get(name) or await get_preset(name)).labels)


def methods() -> list[MethodEntry]:
    """Lists the explanation methods: name, title, whether they are class-specific, cost, unit, options of explain.

    Returns:
        One object a method.
    """
    return [
        cast(MethodEntry, {**method.to_dict(), "options": [o.to_dict() for o in method.options if o.name in OPTIONS]})
        for method in METHODS.values()
    ]


@with_gradio_errors
async def predict(image: Picture, preset: str = "", patch_size: int = 0) -> Predicted:
    """Classifies a picture with a Vision Transformer.

    Args:
        image: The picture: a photo, or a drawing of one digit.
        preset: Name of the model, from presets, or a repository of the Hub as org/name; "" for "digits-small" if the
            picture is a drawing, else "photos-tiny".
        patch_size: Side of a patch in pixels; 0 for the model's default.

    Returns:
        {"label", "is_confident", "confidences": [{"label", "confidence"}, ...], "preset", "labels", "grid": [rows,
        cols]}; "labels" are all classes that the model knows, if at most 100, because it takes anything else for one of
        them. A model without classes answers "" and no confidences.
    """
    call = await Call.parse(image, preset, patch_size)
    result = await call.run(call.explore)
    top: list[Confidence] = [{"label": label, "confidence": probability} for label, probability in result.top(5)]
    return {
        "label": top[0]["label"] if top else "",
        "is_confident": result.is_confident,
        "confidences": top,
        "preset": result.preset.name,
        "labels": list(result.preset.few_labels),
        "grid": list(result.grid),
    }


@with_gradio_errors
async def explain(
    image: Picture,
    preset: str = "",
    patch_size: int = 0,
    method: str = "attention",
    block: int = -1,
    head: int = -1,
    row: int = -1,
    col: int = -1,
    label: str = "",
) -> Heatmap:
    """Computes one heatmap over the patches of a picture.

    Args:
        image: The picture: a photo, or a drawing of one digit.
        preset: Name of the model, from presets, or a repository of the Hub as org/name; "" for "digits-small" if the
            picture is a drawing, else "photos-tiny".
        patch_size: Side of a patch in pixels; 0 for the model's default.
        method: Name of the method, from /methods, such as "rollout" or "relevance".
        block: Block, from 0; -1 for the last. Ignored by methods without this option, as are head, row and col.
        head: From 0; -1 for the mean of all.
        row: Row of the patch that the map is about, from 0; -1 for the class token.
        col: Its column; -1 for the class token.
        label: Class to explain; "" for the predicted one. Only class-specific methods depend on it.

    Returns:
        {"map": rows of true values, "rows", "cols", "preset", "method", "class_specific", "label"}.
    """
    result, values = await _map(image, preset, patch_size, method, block, head, row, col, label)
    rows, cols = result.grid
    return {
        "map": values.tolist(),
        "rows": rows,
        "cols": cols,
        "preset": result.preset.name,
        "method": method,
        "class_specific": find_method(method).class_specific,
        "label": label or next((name for name, _ in result.top(1)), ""),
    }


@with_gradio_errors
async def overlay(
    image: Picture,
    preset: str = "",
    patch_size: int = 0,
    method: str = "attention",
    block: int = -1,
    head: int = -1,
    row: int = -1,
    col: int = -1,
    label: str = "",
) -> Image.Image:
    """Draws one heatmap over the picture as the model saw it.

    Args:
        image: The picture: a photo, or a drawing of one digit.
        preset: Name of the model, from presets, or a repository of the Hub as org/name; "" for "digits-small" if the
            picture is a drawing, else "photos-tiny".
        patch_size: Side of a patch in pixels; 0 for the model's default.
        method: As in explain.
        block: Block, from 0; -1 for the last. Ignored by methods without this option, like the next three.
        head: From 0; -1 for the mean of all.
        row: Row of the query patch, from 0; -1 for the class token.
        col: Its column; -1 for the class token.
        label: Class to explain; "" for the predicted one.

    Returns:
        An image file, the map scaled by its largest value.
    """
    result, values = await _map(image, preset, patch_size, method, block, head, row, col, label)
    return result.overlay(values, method=method)


@dataclass(frozen=True)
class Call:
    """The checked picture, preset and patch size of a call."""

    engine: Engine
    source: Source
    preset: Preset
    patch_size: int

    @classmethod
    async def parse(cls, image: Any, preset: Any, patch_size: Any) -> Call:
        """Checks what was sent, and fetches the preset if need be; without one the picture decides."""
        if not image:
            raise ImageError("There is no picture: send a picture file as `image`.")
        source, engine = requests.image_source(image), get_engine()
        if preset in (None, ""):
            lane = source.lane(PRESETS[DEFAULT_PRESETS["photos"]])
            picture = await engine.jobs.run_async(None, source.read, lane)
            source, preset = replace(source, read=lambda: picture, is_decoded=None), default_preset(picture)
        found = await get_preset(requests.preset_name(preset))
        return cls(engine, source, found, requests.patch_size(found, patch_size))

    def explore(self) -> Exploration:
        """The result, within a job."""
        return self.engine.explore_source(self.source, self.preset, self.patch_size)

    async def run(self, work: Callable[[], T], *, slow: bool = False) -> T:
        """Runs something as a job of its own; ``slow`` if it takes many passes."""
        lane = "slow" if slow else self.source.lane(self.preset)
        return await self.engine.jobs.run_async(None, work, lane, job_bytes(self.preset, self.patch_size, slow=slow))


async def _map(
    image: Any, preset: Any, patch_size: Any, method: Any, block: Any, head: Any, row: Any, col: Any, label: Any
) -> tuple[Exploration, NDArray[np.float32]]:
    """The result and the map that /explain and /overlay are asked for."""
    chosen = find_method(requests.short_string(method, "method"))
    block = requests.integer(block, "block", -1)
    head_or_mean = requests.integer(head, "head", -1)
    patch = requests.integer(row, "row", -1), requests.integer(col, "col", -1)
    name = requests.short_string(label or "", "label")
    call = await Call.parse(image, preset, patch_size)

    def work() -> tuple[Exploration, NDArray[np.float32]]:
        result = call.explore()
        options = {
            "block": block,
            "head": None if head_or_mean == -1 else head_or_mean,
            "query": None if patch == (-1, -1) else patch,
        }
        offered: dict[str, Any] = {option: value for option, value in options.items() if chosen.offers(option)}
        return result, result.heatmap(method, name or None, **offered)

    return await call.run(work, slow=chosen.is_slow)
