"""Rows of attention from the queries and keys of one block, in chunks, so that no N x N matrix is ever held.

``attention[i, j] = softmax_j(q_i . k_j / sqrt(d))``: row i holds what token i attends to, column j who attends to
token j. Everything is float32, whatever the network ran in and whether the caller uses autocast.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.methods.chunking import chunk_size
from vit_demo.model.resample import without_autocast
from vit_demo.trace.attention_mode import attention_rows

CHUNK_VALUES = 1 << 21  # attention values in a chunk, 8 MB: fast products within a CPU's cache
WHOLE_VALUES = 1 << 18  # attention values of a block up to which whole matrices are faster: 295 tokens of 3 heads
LARGE_MATMUL = 1 << 24  # multiplications from which matrices run faster one after another, on all threads
CACHE_LINE = 16  # float32 values in a cache line: rows that start on one are multiplied faster


def queries_per_chunk(q: Tensor) -> int:
    """How many queries of ``[B, H, N, d]`` are multiplied with all keys at once."""
    batch, heads, n, _ = q.shape
    return chunk_size(CHUNK_VALUES, batch * heads * n)


def is_short(q: Tensor, blocks: int = 1) -> bool:
    """Whether whole matrices of ``[B, H, N, d]``, of all blocks together, fit and are faster than chunks."""
    batch, heads, n, _ = q.shape
    return chunk_size(WHOLE_VALUES, blocks * batch * heads * n) >= n


def batched_matmul(a: Tensor, b: Tensor, out: Tensor, *, add: bool = False) -> None:
    """Writes ``a @ b``, a batch of matrices ``[M, ., .]``, into ``out``, or adds it."""
    with without_autocast(a.device):
        if a.device.type == "cpu" and len(a) < 8 and a.numel() * b.shape[2] > LARGE_MATMUL:
            # CPU threads split a batch by whole matrices: of three large ones, one of two threads gets two.
            for left, right, target in zip(a, b, out, strict=True):
                torch.addmm(target, left, right, beta=int(add), out=target)
        else:
            torch.baddbmm(out, a, b, beta=int(add), out=out)


def pad_keys(keys: Tensor) -> Tensor:
    """``[B, H, N, d]`` as float32 ``[B * H, width, d]``, padded with zeros to a multiple of ``CACHE_LINE``."""
    n, d = keys.shape[2:]
    return F.pad(keys.float().reshape(-1, n, d), (0, 0, 0, -n % CACHE_LINE))


def attention_rows_into(queries: Tensor, keys: Tensor, n: int, out: Tensor) -> None:
    """Writes the attention of scaled queries ``[M, c, d]`` over the first ``n`` padded keys into ``[M, c, width]``."""
    batched_matmul(queries, keys.mT, out)
    out[..., n:] = float("-inf")
    torch.softmax(out, 2, out=out)


def weighted_head_mean(weights: Tensor, chunk: Tensor) -> Tensor:
    """The weighted sum over rows ``[B, H, c, N]`` with weights ``[B, c]``, averaged over the heads: ``[B, N]``."""
    heads = chunk.shape[1]
    per_head = (weights / heads).repeat(1, heads)[:, None]  # [B, 1, H * c]: one product, not one a head
    with without_autocast(chunk.device):
        return (per_head @ chunk.flatten(1, 2))[:, 0]


def iter_attention_rows(q: Tensor, k: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """The attention of queries ``[B, H, n, d]``, all or some, to keys ``[B, H, N, d]``, a few rows at a time.

    Yields:
        Which queries, and their attention ``[B, H, chunk, N]``, in memory that the next chunk overwrites.
    """
    batch, heads, n, d = q.shape
    num_keys = k.shape[2]
    if is_short(k) or not n:  # buffers and padding would cost more than they gain
        yield slice(0, n), attention_rows(q, k)
        return
    queries, keys = (q.float() * d**-0.5).reshape(-1, n, d), pad_keys(k)  # [B * H, n, d], [B * H, width, d]
    width, step = keys.shape[1], min(queries_per_chunk(k), n)
    buffer = queries.new_empty(batch * heads * step * width)  # reused: allocating costs as much as computing
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        some = queries[:, part]
        attention = buffer[: some.shape[:2].numel() * width].view(*some.shape[:2], width)
        attention_rows_into(some, keys, num_keys, attention)
        yield part, attention[..., :num_keys].unflatten(0, (batch, heads))


def logsumexp(q: Tensor, k: Tensor) -> Tensor:
    """The logarithm ``[B, H, N]`` of each row's softmax denominator, of unscaled queries and keys ``[B, H, N, d]``.

    With it, one value needs one dot product: ``attention[i, j] = exp(q_i . k_j / sqrt(d) - logsumexp[i])``.
    """
    q, k = q.float() * q.shape[-1] ** -0.5, k.float()
    with without_autocast(q.device):
        return torch.cat([(part @ k.mT).logsumexp(-1) for part in q.split(queries_per_chunk(q), dim=2)], dim=2)
