"""Ranks and rank correlation, for maps without a common scale."""

import torch
from torch import Tensor


def ranks(values: Tensor) -> Tensor:
    """The rank of each value ``[n]``, float32 from 0 for the smallest to 1 for the largest; ties share their mean."""
    _, place, counts = values.unique(return_inverse=True, return_counts=True)
    last = counts.cumsum(0) - 1
    return (last - (counts - 1).float() / 2)[place] / max(1, len(values) - 1)


def spearman(first: Tensor, second: Tensor) -> float:
    """Spearman's rank correlation of two maps of the same shape, in [-1, 1]; 0 where one of them is constant."""
    pair = torch.stack([ranks(first.flatten()), ranks(second.flatten())]).cpu().double()
    pair = pair - pair.mean(1, keepdim=True)
    length = pair.norm(dim=1).prod()
    # Rounding may leave the interval by the last digit.
    return min(1.0, max(-1.0, float(pair[0] @ pair[1] / length))) if length > 0 else 0.0
