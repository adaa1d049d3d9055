"""Principal components of patch tokens: the foreground that the first separates, and tokens in few bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAIN_COMPONENTS = 64  # principal components that k-means uses, and that are kept in any case

TOLERANCE = 5e-4  # largest change of a cosine similarity by components that are left out: that of half precision

_TINY = np.finfo(np.float64).tiny


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
    """The tokens on one side of zero of the first principal component, bool ``[N]``: those of the object, mostly.

    As the authors of DINOv2 remove the background (Oquab et al., 2023, https://arxiv.org/abs/2304.07193, figure 1).
    They choose the side by eye; here it is the one that holds the smaller share of the picture's ``edges`` ``[N]``,
    because objects are rarely cut off. All tokens are kept if one side is empty.
    """
    positive, edge = scores > 0, np.asarray(edges, bool)
    if positive.all() or not positive.any():
        return np.ones(len(scores), bool)
    return positive if edge[positive].mean() <= edge[~positive].mean() else ~positive


@dataclass(frozen=True, eq=False)
class ReducedTokens:
    """N tokens x of D numbers in the basis of their principal components.

    The components are centred, as PCA and k-means need them. Cosine similarity needs the mean as well: the unit vector
    of a token is ``x / |x| = [components + mean, offset] / length``, where the offset is the token's part along the
    rest of the mean, which no component contains. What is left of the unit vectors is orthogonal to all of this, so
    without it the cosine of two tokens changes by the product of what is left of both, at most by the square of the
    longer. Enough components are kept for this to be at most ``TOLERANCE`` for every pair.

    Attributes:
        components: float32 ``[N, K]``, highest variance first; signs as in ``pca``.
        mean: float32 ``[K]``.
        offsets: float32 ``[N]``.
        lengths: float32 ``[N]``.
        shares: float32 ``[K]``: share of the total variance in each component.
        scale: What 1 in all of these stands for: the length of the longest token.
    """

    components: NDArray[np.float32]
    mean: NDArray[np.float32]
    offsets: NDArray[np.float32]
    lengths: NDArray[np.float32]
    shares: NDArray[np.float32]
    scale: float

    @property
    def main(self) -> NDArray[np.float32]:
        """The first components, of which k-means makes segments: float32 ``[N, at most 64]``."""
        return self.components[:, :MAIN_COMPONENTS]

    def unit_vectors(self) -> NDArray[np.float32]:
        """The tokens at length 1, float32 ``[N, K + 1]``; their products are the cosine similarities."""
        whole = np.concatenate([self.components + self.mean, self.offsets[:, None]], axis=1)
        return np.asarray(whole / np.maximum(self.lengths, 1e-30)[:, None], np.float32)


def reduce_tokens(tokens: NDArray[np.floating]) -> ReducedTokens:
    """Reduces tokens ``[N, D]``, those of several pictures together, divided by the length of the longest."""
    wide = tokens.astype(np.float64)
    scale = max(np.linalg.norm(wide, axis=1).max(), _TINY)
    wide /= scale
    lengths = np.linalg.norm(wide, axis=1)
    mean = wide.mean(0)
    u, spread, basis = np.linalg.svd(wide - mean, full_matrices=False)
    unit = wide / np.maximum(lengths, _TINY)[:, None]
    left = 1 - np.cumsum((unit @ basis.T) ** 2, axis=1) - _along_rest(unit, mean, basis) ** 2  # [N, rank]
    enough = np.flatnonzero((left <= TOLERANCE).all(0))
    count = min(len(basis), max(MAIN_COMPONENTS, 1 + (enough[0] if enough.size else len(basis))))
    basis = basis[:count] * signs(u[:, :count])[:, None]  # [K, D]
    centre = basis @ mean
    return ReducedTokens(
        components=((wide - mean) @ basis.T).astype(np.float32),
        mean=centre.astype(np.float32),
        offsets=(_along_rest(wide, mean, basis)[:, -1]).astype(np.float32),
        lengths=lengths.astype(np.float32),
        shares=(spread[:count] ** 2 / max((spread**2).sum(), _TINY)).astype(np.float32),
        scale=float(scale),
    )


def _along_rest(
    tokens: NDArray[np.float64], mean: NDArray[np.float64], basis: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Each token's part along the rest of the mean beyond the first 1, 2, ... K directions: ``[N, K]``."""
    inside, centre = tokens @ basis.T, basis @ mean  # [N, K], [K]
    lengths = np.sqrt(np.maximum(mean @ mean - np.cumsum(centre**2), 0))  # [K]
    products = (tokens @ mean)[:, None] - np.cumsum(inside * centre, axis=1)
    # A rest that is nothing but rounding has no direction.
    return np.where(lengths > 1e-9, products / np.maximum(lengths, 1e-9), 0)
