"""Endpoints about the tokens of the patches; the page computes the same from one reply (``requests.tokens``)."""

from __future__ import annotations

import numpy as np

from vit_demo.features import norm_outliers
from vit_demo.inference.exploration import Exploration
from vit_demo.web.api.endpoints import endpoint
from vit_demo.web.api.parameters import Block, Col, NumSegments, OtherPicture, RemoveBackground, Row
from vit_demo.web.api.schemas import Components, Lengths, Segments, Values


@endpoint
def similarity(
    result: Exploration,
    block: Block = -1,
    row: Row = 0,
    col: Col = 0,
    other: OtherPicture = None,
) -> Values:
    """Compares the token of one patch with those of all patches, by cosine similarity.

    Returns:
        {"map": rows of cosines, -1 to 1, "rows", "cols"}, of the second picture if there is one.
    """
    return _on_grid(result.similarity((row, col), block, other))


@endpoint
def pca(
    result: Exploration,
    block: Block = -1,
    remove_background: RemoveBackground = False,
    other: OtherPicture = None,
) -> Components:
    """Computes the first three principal components of the patches' tokens, often shown as red, green and blue.

    Returns:
        {"map": rows of [first, second, third], or null where the background was removed, "rows", "cols"}.
    """
    components = min(3, result.preset.config.embed_dim)
    values = result.pca(block, components, other, remove_background=remove_background)
    patches = [[None if np.isnan(patch).any() else patch.tolist() for patch in line] for line in values]
    return {"map": patches, "rows": values.shape[0], "cols": values.shape[1]}


@endpoint
def kmeans(result: Exploration, block: Block = -1, k: NumSegments = 5) -> Segments:
    """Divides a picture into segments of patches with similar tokens, by k-means.

    Returns:
        {"map": rows of segments, from 0, "rows", "cols"}.
    """
    values = result.kmeans(k, block)
    return {"map": values.tolist(), "rows": values.shape[0], "cols": values.shape[1]}


@endpoint
def norms(result: Exploration, block: Block = -1) -> Lengths:
    """Measures the length of each patch's token, and finds those that are far longer than the rest.

    Returns:
        {"map": rows of lengths, "rows", "cols", "outliers": [[row, col], ...]}.
    """
    values = result.norms(block)
    return {**_on_grid(values), "outliers": np.argwhere(norm_outliers(values)).tolist()}


def _on_grid(values: np.ndarray) -> Values:
    rows, cols = values.shape
    return {"map": values.tolist(), "rows": rows, "cols": cols}
