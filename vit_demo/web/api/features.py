"""Endpoints about the tokens of a picture's patches; the page computes the same from one reply (``token_requests``)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vit_demo.features import norm_outliers
from vit_demo.web.api.endpoints import Picture
from vit_demo.web.api.explain import Call
from vit_demo.web.api.handlers import with_gradio_errors
from vit_demo.web.api.schemas import Components, Lengths, Segments, Values
from vit_demo.web.requests import parse as requests


@with_gradio_errors
async def similarity(
    image: Picture,
    preset: str = "",
    patch_size: int = 0,
    block: int = -1,
    row: int = 0,
    col: int = 0,
    other: Picture = None,
) -> Values:
    """Compares the token of one patch with those of all patches, by cosine similarity.

    Args:
        image: The picture: a photo, or a drawing of one digit.
        preset: Name of the model, from presets; "" for "digits-small" if the picture is a drawing, else "photos-tiny".
        patch_size: Side of a patch in pixels; 0 for the model's default.
        block: Block, from 0; -1 for the last.
        row: Row of the patch, from 0.
        col: Its column.
        other: A second picture, whose patches are compared instead; none for the same picture.

    Returns:
        {"map": rows of cosines, -1 to 1, "rows", "cols"}, of the second picture if there is one.
    """
    block = requests.integer(block, "block", -1)
    patch = requests.integer(row, "row"), requests.integer(col, "column")
    call = await Call.parse(image, preset, patch_size)
    second = replace(call, source=requests.image_source(other)) if other else None

    def work() -> Values:
        return _map(call.explore().similarity(patch, block, second.explore() if second else None))

    return await call.run(work)


@with_gradio_errors
async def pca(
    image: Picture,
    preset: str = "",
    patch_size: int = 0,
    block: int = -1,
    remove_background: bool = False,
    other: Picture = None,
) -> Components:
    """Computes the first three principal components of the patches' tokens, often shown as red, green and blue.

    Args:
        image: The picture: a photo, or a drawing of one digit.
        preset: Name of the model, from presets; "" for "digits-small" if the picture is a drawing, else "photos-tiny".
        patch_size: Side of a patch in pixels; 0 for the model's default.
        block: Block, from 0; -1 for the last.
        remove_background: Whether to leave out the patches on one side of zero of the first component, and fit again.
        other: A second picture to which the components are fitted as well; none for the first alone.

    Returns:
        {"map": rows of [first, second, third], or null where the background was removed, "rows", "cols"}.
    """
    block = requests.integer(block, "block", -1)
    call = await Call.parse(image, preset, patch_size)
    second = replace(call, source=requests.image_source(other)) if other else None

    def work() -> Components:
        result = call.explore()
        beside = second.explore() if second else None
        components = min(3, result.preset.config.embed_dim)
        values = result.pca(block, components, beside, remove_background=bool(remove_background))
        patches = [[None if np.isnan(patch).any() else patch.tolist() for patch in line] for line in values]
        return {"map": patches, "rows": values.shape[0], "cols": values.shape[1]}

    return await call.run(work)


@with_gradio_errors
async def kmeans(image: Picture, preset: str = "", patch_size: int = 0, block: int = -1, k: int = 5) -> Segments:
    """Divides a picture into segments of patches with similar tokens, by k-means.

    Args:
        image: The picture: a photo, or a drawing of one digit.
        preset: Name of the model, from presets; "" for "digits-small" if the picture is a drawing, else "photos-tiny".
        patch_size: Side of a patch in pixels; 0 for the model's default.
        block: Block, from 0; -1 for the last.
        k: How many segments, 2 to 12.

    Returns:
        {"map": rows of segments, from 0, "rows", "cols"}.
    """
    block = requests.integer(block, "block", -1)
    count = requests.integer(k, "number of segments")
    call = await Call.parse(image, preset, patch_size)

    def work() -> Segments:
        values = call.explore().kmeans(count, block)
        return {"map": values.tolist(), "rows": values.shape[0], "cols": values.shape[1]}

    return await call.run(work)


@with_gradio_errors
async def norms(image: Picture, preset: str = "", patch_size: int = 0, block: int = -1) -> Lengths:
    """Measures the length of each patch's token, and finds those that are far longer than the rest.

    Args:
        image: The picture: a photo, or a drawing of one digit.
        preset: Name of the model, from presets; "" for "digits-small" if the picture is a drawing, else "photos-tiny".
        patch_size: Side of a patch in pixels; 0 for the model's default.
        block: Block, from 0; -1 for the last.

    Returns:
        {"map": rows of lengths, "rows", "cols", "outliers": [[row, col], ...]}.
    """
    block = requests.integer(block, "block", -1)
    call = await Call.parse(image, preset, patch_size)

    def work() -> Lengths:
        values = call.explore().norms(block)
        return {**_map(values), "outliers": np.argwhere(norm_outliers(values)).tolist()}

    return await call.run(work)


def _map(values: np.ndarray) -> Values:
    rows, cols = values.shape[:2]
    return {"map": values.tolist(), "rows": rows, "cols": cols}
