"""Attention maps: any row or column of a block's attention, computed from a trace on request."""

import torch
from torch import Tensor

from vit_demo.methods.attention_rows import attention_rows, iter_attention_rows
from vit_demo.methods.registry import BLOCK, DIRECTION, HEAD, QUERY, register
from vit_demo.trace import Trace


@register(
    "attention",
    title="Attention",
    use="To see what one token attends to, in one block and one head.",
    class_specific=False,
    cost="trace",
    unit="share of attention",
    recommended="Attention",
    options=[BLOCK, HEAD, QUERY, DIRECTION],
)
def attention(
    trace: Trace, block: int = -1, head: int | None = None, query: int | None = 0, direction: str = "from"
) -> Tensor:
    """The attention of one block between one token and every other, of one head or the mean of all.

    Args:
        trace: That of one pass.
        block: Block, counted from 0; negative from the end.
        head: From 0; None for the mean of all.
        query: Index of the token in the sequence, prefix tokens first; None for the mean over all tokens, and in the
            last block for the query of attention pooling, if the head reads the tokens through one.
        direction: ``"from"``: what the token attends to. ``"to"``: which tokens attend to it.

    Returns:
        ``[B, N]`` float32.

    Raises:
        InputError: If there is no such direction.
    """
    DIRECTION.check(direction)
    values = (attention_from if direction == "from" else attention_to)(trace, block, query)
    return values.mean(1) if head is None else values[:, head]


@torch.no_grad()
def attention_from(trace: Trace, block: int, query: int | None) -> Tensor:
    """What a token attends to in a block, ``[B, H, N]`` float32, summing to 1 over N; ``query`` as in ``attention``."""
    q, k = trace.q[block], trace.k[block]
    if query is None and trace.pooling is not None and block in (-1, trace.num_blocks - 1):
        # With another number of heads, no head of the pooling belongs to one of the block.
        alike = trace.pooling.shape[1] == q.shape[1]
        return trace.pooling if alike else trace.pooling.mean(1, keepdim=True).expand(-1, q.shape[1], -1)
    if query is None:
        return torch.stack([chunk.sum(2) for _, chunk in iter_attention_rows(q, k)]).sum(0) / q.shape[2]
    return attention_rows(q[:, :, query].unsqueeze(2), k)[:, :, 0]


@torch.no_grad()
def attention_to(trace: Trace, block: int, key: int | None) -> Tensor:
    """How much each token attends to one, ``[B, H, N]``; for None every token gives 1 / N. See ``attention_from``."""
    chunks = (chunk for _, chunk in iter_attention_rows(trace.q[block], trace.k[block]))
    return torch.cat([chunk.mean(3) if key is None else chunk[..., key].clone() for chunk in chunks], dim=2)


def attention_matrix(trace: Trace, block: int) -> Tensor:
    """The full attention of a block, ``[B, H, N, N]`` float32: H N^2 numbers, so for short sequences only."""
    return attention_rows(trace.q[block], trace.k[block])
