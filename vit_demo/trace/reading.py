"""What a network's head makes of each patch's token, as if that token were all that the head reads."""

import torch
from torch import Tensor

from vit_demo.model import ViT
from vit_demo.model.pooling import pooled_slices
from vit_demo.trace.traced_vit import TracedViT

READ_AT_ONCE = 64
"""Patches that an adapted network's head reads in one pass, each a sequence of its own."""


def read_patches(model: TracedViT, x: Tensor) -> Tensor:
    """The logits ``[N, K]`` of the patches among one image's last tokens ``[T, D]``, prefix included.

    A head that reads two vectors, the class token and another, gets the class token's own for the first.
    """
    prefix = model.config.num_prefix_tokens
    if isinstance(model.module, ViT):
        tokens = model.final_norm(x)
        pooled = tokens[prefix:]
        if len(pooled_slices(model.config.pool, prefix)) == 2:
            pooled = torch.cat([tokens[:1].expand(len(pooled), -1), pooled], dim=1)  # [N, 2 * D]
        return model.module.head(pooled)
    parts = x[prefix:, None].split(READ_AT_ONCE)  # the head reads each patch as if all tokens were this one
    return torch.cat([model.forward_head(part.expand(-1, prefix + 1, -1)) for part in parts])
