"""Attention weighted by the values it transports (Kobayashi et al., 2020, https://arxiv.org/abs/2004.10102)."""

from typing import Unpack

import torch
from torch import Tensor

from vit_demo.methods.attention_rows import CHUNK_VALUES, attention_rows, iter_attention_rows
from vit_demo.methods.chunking import chunk_size
from vit_demo.methods.registry import BLOCK, QUERY, register
from vit_demo.trace import PassOptions, Trace, TracedViT
from vit_demo.trace.trace import to_grid


@register(
    "norm_attention",
    title="Norm-based",
    use="To see what patches hand over, not only how much attention they get.",
    class_specific=False,
    cost="forward",
    unit="length of a vector",
    options=[BLOCK, QUERY],
    docs="Norm-based attention",
)
@torch.no_grad()
def norm_attention(
    model: TracedViT, images: Tensor, block: int = -1, query: int | None = 0, **options: Unpack[PassOptions]
) -> Tensor:
    """The length of the vector that each token adds to one token through a block's attention.

    An attention weight means little where the value is near zero. This is the norm
    ``|| sum_h A_h[i, j] v_h[j] W_h ||`` with W the output projection (and block scale), of what token j
    adds to token i. Only H x H products of the projected values are kept for each token,
    ``G[h, g] = <v_h W_h, v_g W_g>``, so that all queries are computed in chunks: the squared length is
    ``sum_hg A_h G[h, g] A_g``.

    ``query`` is the index of the token i in the sequence, None for the mean over all tokens; ``block`` counts from 0,
    negative from the end. Other parameters as in ``vit_demo.methods``.

    Returns:
        Values of at least 0, in the unit of the tokens.
    """
    model(images, trace := Trace(), **options)
    q, k, output = trace.q[block], trace.k[block], model.output_projection(block).float()  # [H, d, D]
    batch, heads = q.shape[:2]
    grams = []
    for part in trace.v[block].split(chunk_size(CHUNK_VALUES, batch * heads * output.shape[2]), dim=2):
        values = part.float() @ output  # [B, H, c, D]
        grams.append(torch.einsum("bhnd,bgnd->bhgn", values, values))
    gram = torch.cat(grams, dim=3)  # [B, H, H, N]

    def lengths(attention: Tensor) -> Tensor:  # [B, H, c, N] -> [B, c, N]
        mixed = torch.einsum("bhgn,bgcn->bhcn", gram, attention)
        return (mixed * attention).sum(1).clamp_(min=0).sqrt_()

    if query is not None:
        return to_grid(lengths(attention_rows(q[:, :, query].unsqueeze(2), k))[:, 0], trace)
    total = torch.stack([lengths(chunk).sum(1) for _, chunk in iter_attention_rows(q, k)]).sum(0)
    return to_grid(total / q.shape[2], trace)
