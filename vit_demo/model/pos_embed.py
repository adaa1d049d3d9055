"""A fixed table of positional embeddings."""

from __future__ import annotations

import torch
from torch import Tensor


def sincos_pos_embed(length: int, dim: int) -> Tensor:
    """The fixed table of Vaswani et al. (2017): ``sin(i / 10000^(j/D))`` where j is even, cosine where it is odd.

    Returns:
        ``[1, length, dim]`` float32.
    """
    i = torch.arange(length, dtype=torch.float64)[:, None]
    j = torch.arange(dim)[None, :]
    angle = i / 10000.0 ** ((j - j % 2) / dim)
    return torch.where(j % 2 == 0, angle.sin(), angle.cos()).float()[None]
