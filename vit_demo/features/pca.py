"""Principal components of patch tokens, and the foreground that the first of them separates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def pca(tokens: NDArray[np.floating], components: int, kept: NDArray[np.bool_] | None = None) -> NDArray[np.float32]:
    """The principal components of tokens (scores): the tokens, centred, in the directions in which they differ most.

    A component's sign is arbitrary, so it is chosen: the entry with the largest absolute value is positive. The tokens
    of several pictures are fitted together by passing them together.

    Args:
        tokens: ``[N, D]``.
        components: How many, at most; what exceeds the rank is 0.
        kept: ``[N]``: the tokens to fit and to project; all by default. The others get NaN.

    Returns:
        float32 ``[N, components]``, highest variance first.
    """
    chosen = np.ones(len(tokens), bool) if kept is None else kept
    scores = np.full((len(tokens), components), np.nan, np.float32)
    scores[chosen] = 0
    fitted = tokens[chosen].astype(np.float64)
    if len(fitted) > 1:
        u, lengths, _ = np.linalg.svd(fitted - fitted.mean(0), full_matrices=False)
        count = min(components, len(lengths))
        found = u[:, :count] * lengths[:count]
        scores[chosen, :count] = found * signs(found)
    return scores


def signs(scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """1 or -1 for each column of ``[N, K]``, by which its entry with the largest absolute value becomes positive."""
    largest = np.take_along_axis(scores, np.abs(scores).argmax(0)[None], 0)[0]  # [K]
    return np.where(largest < 0, -1, 1)


def foreground(scores: NDArray[np.floating], edges: Sequence[bool] | NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The tokens on one side of zero of the first principal component: those of the object, mostly.

    As the authors of DINOv2 remove the background (Oquab et al., 2023, https://arxiv.org/abs/2304.07193, figure 1).
    They choose the side by eye; here it is the one that holds the smaller share of the picture's edge, because objects
    are rarely cut off.

    Args:
        scores: First component ``[N]``.
        edges: ``[N]``: whether a patch lies on the edge of its picture.

    Returns:
        bool ``[N]``. All tokens if one side is empty.
    """
    positive, edge = scores > 0, np.asarray(edges, bool)
    if positive.all() or not positive.any():
        return np.ones(len(scores), bool)
    return positive if edge[positive].mean() <= edge[~positive].mean() else ~positive
