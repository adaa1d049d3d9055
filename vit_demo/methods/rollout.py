"""Attention rollout (Abnar and Zuidema, 2020, https://arxiv.org/abs/2005.00928), one row at a time."""

import torch
from torch import Tensor

from vit_demo.methods.attention_rows import attention_rows, is_short, iter_attention_rows, weighted_head_mean
from vit_demo.methods.registry import QUERY, register
from vit_demo.trace import Trace


@register(
    "rollout",
    title="Rollout",
    use="To follow attention through all blocks at once.",
    class_specific=False,
    cost="trace",
    unit="share of the input",
    options=[QUERY],
)
@torch.no_grad()
def rollout(trace: Trace, query: int | None = 0) -> Tensor:
    """How much of each input token reaches one output token, if attention and residual each contribute half.

    Rollout is the product ``(A_L + I)/2 ... (A_1 + I)/2`` of attention, the mean of all heads and of the branches of a
    parallel block. Only one of its rows is wanted, so a row vector is propagated backwards through the blocks,
    ``r <- (r A + r) / 2``, with A computed in chunks and never stored: O(N^2 d) time and O(N) memory beside one chunk,
    not O(N^3) and O(N^2).

    Args:
        trace: That of one pass.
        query: Index of the output token; None for what attention pooling reads of all of them, or their mean.

    Returns:
        ``[B, N]`` float32, prefix tokens included, summing to 1.
    """
    batch, _, n, _ = trace.q[0].shape
    row = torch.zeros(batch, n, dtype=torch.float32, device=trace.q[0].device)
    if query is None:
        row += 1 / n if trace.pooling is None else trace.pooling.mean(1)
    else:
        row[:, query] = 1.0
    if is_short(trace.q[0], trace.num_blocks) and len({q.shape for q in trace.q}) == 1:  # one product for all of them
        q, k = (torch.stack([x.float() for x in kept]) for kept in (trace.q, trace.k))
        heads = attention_rows(q, k).mean(2)  # [blocks, B, N, N]
        for matrix in reversed(heads.unflatten(0, (-1, trace.together)).mean(1)):
            row = ((row[..., None] * matrix).sum(1) + row) / 2
        return row
    for last in range(trace.num_blocks - 1, -1, -trace.together):
        mixed = torch.zeros_like(row)
        for block in range(last - trace.together + 1, last + 1):
            q, k = trace.q[block], trace.k[block]
            if last == trace.num_blocks - 1 and query is not None:
                mixed += attention_rows(q[:, :, query].unsqueeze(2), k).mean(1)[:, 0]  # only one row has any weight yet
                continue
            for part, chunk in iter_attention_rows(q, k):  # chunk [B, H, c, N]
                mixed += weighted_head_mean(row[:, part], chunk)
        row = (mixed / trace.together + row) / 2
    return row
