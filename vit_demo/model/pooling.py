"""What the head reads of the tokens: one token, a mean, or two such vectors side by side."""

import torch
from torch import Tensor

from vit_demo.model.config import Pool


def pooled_slices(pool: Pool, num_prefix_tokens: int) -> list[slice]:
    """The runs of tokens whose means are concatenated for the head; see ``ViTConfig.pool``."""
    patches = slice(num_prefix_tokens, None)
    return {
        "cls": [slice(0, 1)],
        "mean": [patches],
        "all": [slice(0, None)],
        "cls+mean": [slice(0, 1), patches],
        "cls+next": [slice(0, 1), slice(1, 2)],
    }[pool]


def pool_tokens(x: Tensor, pool: Pool, num_prefix_tokens: int) -> Tensor:
    """Tokens ``[B, N, D]`` to the vector that the head reads: ``[B, D]``, or ``[B, 2 * D]`` for a pair."""
    return torch.cat([x[:, tokens].mean(1) for tokens in pooled_slices(pool, num_prefix_tokens)], dim=1)
