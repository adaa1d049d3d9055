"""Tokens in few bytes: principal components, from which similarity, PCA and k-means are computed again elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vit_demo.features.pca import signs

MAIN_COMPONENTS = 64
"""Principal components that k-means uses, and that are kept in any case."""

TOLERANCE = 5e-4
"""By how much leaving out components may change a cosine similarity. Half precision changes it by about as much."""

_TINY = np.finfo(np.float64).tiny


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
    """Reduces tokens ``[N, D]``, those of several pictures together.

    They are first divided by the length of the longest.
    """
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
