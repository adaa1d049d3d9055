"""Any row, column or map of attention, computed from a trace when it is asked for.

With q, k of one block, ``attention[i, j] = softmax_j(q_i . k_j / sqrt(d))``: row i says where token i looks, column j
who looks at token j. Everything is float32, whatever the network ran in.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.methods.chunking import chunk_size
from vit_demo.model import Trace

CHUNK_VALUES = 1 << 21
"""Attention values made at once: 8 MB of float32, enough rows for fast products, few enough for a CPU's cache."""

LARGE = 1 << 24
"""Multiplications in a batch of products from which each of a few matrices is worth all of a CPU's threads."""

LINE = 16
"""Rows of a multiple of so many numbers start on a cache line of 64 bytes, which makes their products faster."""


def rows(q: Tensor, k: Tensor) -> Tensor:
    """Attention of some queries over all tokens.

    Args:
        q: ``[..., Q, d]``, not scaled yet.
        k: ``[..., N, d]``.

    Returns:
        ``[..., Q, N]`` float32; each row sums to 1.
    """
    scores = (q.float() * q.shape[-1] ** -0.5) @ k.float().mT
    return scores.softmax(-1)


def rows_at_once(q: Tensor) -> int:
    """How many queries of ``[B, H, N, d]`` may meet all keys at once."""
    batch, heads, n, _ = q.shape
    return chunk_size(CHUNK_VALUES, batch * heads * n)


def multiply(a: Tensor, b: Tensor, out: Tensor, *, add: bool = False) -> None:
    """``a @ b``, matrix by matrix of ``[M, ., .]``, put into ``out`` or added to it."""
    if a.device.type == "cpu" and len(a) < 8 and a.numel() * b.shape[2] > LARGE:
        # A CPU's threads take whole matrices of a batch: of three large ones, one thread gets two and the other one.
        for left, right, into in zip(a, b, out, strict=True):
            torch.addmm(into, left, right, beta=int(add), out=into)
    else:
        torch.baddbmm(out, a, b, beta=int(add), out=out)


def padded(keys: Tensor) -> Tensor:
    """``[B, H, N, d]`` as float32 ``[B * H, width, d]``, zeros after the N-th row up to a multiple of ``LINE``."""
    n, d = keys.shape[2:]
    return F.pad(keys.float().reshape(-1, n, d), (0, 0, 0, -n % LINE))


def rows_into(queries: Tensor, keys: Tensor, n: int, out: Tensor) -> None:
    """Attention of scaled queries ``[M, c, d]`` over the first ``n`` of padded keys, put into ``[M, c, width]``."""
    multiply(queries, keys.mT, out)
    out[..., n:] = float("-inf")
    torch.softmax(out, 2, out=out)


def mean_of_heads(weights: Tensor, chunk: Tensor) -> Tensor:
    """``[B, N]``: some rows ``[B, H, c, N]``, weighted by ``[B, c]`` and added up, the mean over the heads."""
    heads = chunk.shape[1]
    every = (weights / heads).repeat(1, heads)[:, None]  # [B, 1, H * c]: one product, not one a head
    return (every @ chunk.flatten(1, 2))[:, 0]


def row_chunks(q: Tensor, k: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """All rows of one block's attention, a few queries at a time, so that no N x N matrix is ever held.

    Args:
        q: ``[B, H, N, d]``.
        k: ``[B, H, N, d]``.

    Yields:
        Which queries, and their attention ``[B, H, chunk, N]``, in memory that the next chunk overwrites.
    """
    batch, heads, n, d = q.shape
    queries, keys = (q.float() * d**-0.5).reshape(-1, n, d), padded(k)  # [B * H, N, d], [B * H, width, d]
    width, step = keys.shape[1], min(rows_at_once(q), n)
    space = queries.new_empty(batch * heads * step * width)  # fresh memory would cost as much as what is computed in it
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        some = queries[:, part]
        attention = space[: some.shape[:2].numel() * width].view(*some.shape[:2], width)
        rows_into(some, keys, n, attention)
        yield part, attention[..., :n].unflatten(0, (batch, heads))


def attention_from(trace: Trace, layer: int, query: int | None) -> Tensor:
    """Where one token looks.

    Args:
        trace: Of one pass.
        layer: Block, counted from 0; negative from the end.
        query: Index of the token in the sequence, prefix tokens first; None for the mean over all tokens.

    Returns:
        ``[B, H, N]`` float32, summing to 1 over N.
    """
    q, k = trace.q[layer], trace.k[layer]
    if query is None:
        return torch.stack([chunk.sum(2) for _, chunk in row_chunks(q, k)]).sum(0) / q.shape[2]
    return rows(q[:, :, query : query + 1], k)[:, :, 0]


def attention_to(trace: Trace, layer: int, key: int | None) -> Tensor:
    """Who looks at one token: the attention that every token gives to it. Arguments as in ``attention_from``.

    Returns:
        ``[B, H, N]`` float32, each value in [0, 1]; it does not sum to 1. For None every token gives 1 / N.
    """
    chunks = (chunk for _, chunk in row_chunks(trace.q[layer], trace.k[layer]))
    return torch.cat([chunk.mean(3) if key is None else chunk[..., key].clone() for chunk in chunks], dim=2)


def attention_matrix(trace: Trace, layer: int) -> Tensor:
    """The whole map of a block, ``[B, H, N, N]`` float32: H N^2 numbers, so meant for short sequences."""
    return rows(trace.q[layer], trace.k[layer])


def log_normalisers(q: Tensor, k: Tensor) -> Tensor:
    """The logarithm of each row's softmax denominator, made in chunks like ``row_chunks``.

    With it, one value needs one dot product: ``attention[i, j] = exp(q_i . k_j / sqrt(d) - log_normaliser[i])``.

    Args:
        q: ``[B, H, N, d]``, not scaled yet.
        k: ``[B, H, N, d]``.

    Returns:
        ``[B, H, N]`` float32.
    """
    q, k = q.float() * q.shape[-1] ** -0.5, k.float()
    return torch.cat([(part @ k.mT).logsumexp(-1) for part in q.split(rows_at_once(q), dim=2)], dim=2)


def to_grid(values: Tensor, trace: Trace) -> Tensor:
    """Cuts the prefix tokens off ``[..., N]`` and lays the rest out as ``[..., rows, cols]``.

    A patch that was dropped has no token: nothing looks at it and it looks nowhere, so its true value is 0.
    """
    return lay_out(values[..., trace.num_prefix :], trace.grid, trace.keep)


def lay_out(values: Tensor, grid: tuple[int, int], keep: Tensor | None) -> Tensor:
    """Puts one value for each patch of the sequence at its place.

    Args:
        values: ``[..., K]``, with the batch first where ``keep`` has more than one row.
        grid: Rows and columns.
        keep: ``[B, K]``: the patches of the sequence; None for all, row by row.

    Returns:
        ``[..., rows, cols]``, 0 where a patch is not in the sequence.
    """
    if keep is None:
        return values.unflatten(-1, grid)
    if len(keep) == 1:
        index = keep[0].expand(values.shape)
    else:
        index = keep.reshape(len(keep), *[1] * (values.ndim - 2), -1).expand(values.shape)
    full = values.new_zeros(*values.shape[:-1], grid[0] * grid[1])
    return full.scatter(-1, index, values).unflatten(-1, grid)
