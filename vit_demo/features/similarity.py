"""Cosine similarity of tokens, as in the figures of DINO (Caron et al., 2021) and DINOv3 (Siméoni et al., 2025)."""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

MAX_ERROR = 0.005  # largest error of a cosine similarity computed from compressed vectors


def similarity(query: NDArray[np.floating], tokens: NDArray[np.floating]) -> NDArray[np.float32]:
    """The cosine ``[N]`` of the angle between one token ``[D]`` and each of ``tokens`` ``[N, D]``; 0 for length 0."""
    wide, query = tokens.astype(np.float64), query.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1) * np.linalg.norm(query)
    return np.clip(wide @ query / np.maximum(lengths, np.finfo(np.float64).tiny), -1, 1).astype(np.float32)


def compress(vectors: Tensor) -> Tensor:
    """Few numbers for each vector, float16 ``[n, r]`` of ``[n, D]``, whose products are the cosine similarities.

    They are scaled to length 1 and written in their leading singular directions, of which as few are kept as leave
    no similarity wrong by more than ``MAX_ERROR``.
    """
    unit = F.normalize(vectors.float(), dim=1)
    u, s, _ = torch.linalg.svd(unit, full_matrices=False)
    coordinates, wanted = u * s, unit @ unit.T
    rank = min(8, len(s))
    while True:
        kept = coordinates[:, :rank].half()
        error = (kept.float() @ kept.float().T - wanted).abs().max()
        if rank == len(s) or error <= MAX_ERROR:
            return kept
        rank = min(2 * rank, len(s))
