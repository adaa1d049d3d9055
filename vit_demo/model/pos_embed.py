"""Tables of sines and cosines: fixed positional embeddings, and the initial values of learned ones."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
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


def sincos_pos_embed_2d(side: int, dim: int, temperature: float = 100.0) -> Tensor:
    """Sines and cosines of row and column, in wavelengths from the grid's side to ``temperature`` times that.

    Returns:
        ``[1, side * side, dim]`` float32; what is left of ``dim`` beyond a multiple of 4 is zero.
    """
    frequencies = 2 * math.pi / temperature ** (torch.arange(dim // 4) / (dim // 4))
    angle = torch.arange(side)[:, None] / side * frequencies  # [side, dim // 4]
    wave = torch.cat([angle.sin(), angle.cos()], dim=1)  # [side, dim // 4 * 2]
    rows = wave[:, None].expand(side, side, -1)
    columns = wave[None].expand(side, side, -1)
    table = torch.cat([rows, columns], dim=2).reshape(1, side * side, -1)
    return F.pad(table, (0, dim - table.shape[2]))
