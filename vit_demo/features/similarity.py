"""Cosine similarity of tokens, as in the figures of DINO (Caron et al., 2021) and DINOv3 (Siméoni et al., 2025)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def similarity(query: NDArray[np.floating], tokens: NDArray[np.floating]) -> NDArray[np.float32]:
    """The cosine of the angle between one token ``[D]`` and each of ``tokens`` ``[N, D]``.

    Returns:
        float32 ``[N]``, from -1 to 1; 0 for a token of length 0.
    """
    wide, query = tokens.astype(np.float64), query.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1) * np.linalg.norm(query)
    return np.clip(wide @ query / np.maximum(lengths, np.finfo(np.float64).tiny), -1, 1).astype(np.float32)
