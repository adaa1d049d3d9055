"""Attention of 17 tokens, as people write it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from benchmarks.variants_networks import Attend

BIAS = torch.linspace(-9, 9, 17 * 17).reshape(17, 17).sin()
FAR = (torch.arange(17)[:, None] - torch.arange(17)).abs() > 9
EXACT: dict[str, Tensor] = {"bias": BIAS, "band": torch.zeros(17, 17).masked_fill(FAR, float("-inf"))}


def one_query_at_a_time(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A loop over the heads."""
    heads = [(a @ b.mT * 8**-0.5).softmax(-1) @ c for a, b, c in zip(*(x.unbind(1) for x in (q, k, v)), strict=True)]
    return torch.stack(heads, 1)


def merged(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Batch and heads in one axis."""
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    return torch.baddbmm(torch.zeros(1), q, k.mT, beta=0, alpha=8**-0.5).softmax(-1).bmm(v).unflatten(0, (-1, 3))


def by_einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each axis by a letter."""
    shares = torch.einsum("bhid,bhjd->bhij", q, k).div(8**0.5).softmax(3)
    return torch.einsum("bhij,bhjd->bhid", shares, v)


def by_short_einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The last two axes by letters."""
    shares = torch.einsum("...id,...jd->...ij", q / 8**0.5, k).softmax(-1)
    return torch.einsum("...ij,...jd->...id", shares, v)


def by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A softmax of its parts."""
    scores = q @ k.mT * 8**-0.5
    shares = (scores - scores.amax(-1, keepdim=True)).exp()
    return shares / shares.sum(-1, keepdim=True) @ v


def flex(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The flexible attention of torch."""
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention(q, k, v)


SPELLINGS: dict[str, tuple[Attend, str]] = {
    "fused": (F.scaled_dot_product_attention, ""),
    "fused with dropout": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.0), ""),
    "fused, with a bias": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, BIAS), "bias"),
    "fused, of what is true": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, ~FAR), "band"),
    "fused, scaled keys": (lambda q, k, v: F.scaled_dot_product_attention(q, 0.5 * k, v, scale=2 * 8**-0.5), ""),
    "fused, of contiguous": (lambda q, k, v: F.scaled_dot_product_attention(*(x.contiguous() for x in (q, k, v))), ""),
    "einsum": (by_einsum, ""),
    "einsum of scaled queries": (by_short_einsum, ""),
    "baddbmm": (merged, ""),
    "scaled keys": (lambda q, k, v: (q @ (k * 8**-0.5).mT).softmax(-1) @ v, ""),
    "both scaled": (lambda q, k, v: ((q * 8**-0.25) @ (k * 8**-0.25).mT).softmax(-1) @ v, ""),
    "softmax in float32": (lambda q, k, v: F.softmax(q @ k.mT * 8**-0.5, -1, dtype=torch.float32).type_as(v) @ v, ""),
    "softmax in float64": (lambda q, k, v: ((q @ k.mT * 8**-0.5).double().softmax(-1).to(v) @ v), ""),
    "softmax by hand": (by_hand, ""),
    "exp of log_softmax": (lambda q, k, v: (q @ k.mT * 8**-0.5).log_softmax(-1).exp() @ v, ""),
    "dropout": (lambda q, k, v: F.dropout((q @ k.mT * 8**-0.5).softmax(-1), 0.3, training=False) @ v, ""),
    "a bias": (lambda q, k, v: (q @ k.mT * 8**-0.5 + BIAS).softmax(-1) @ v, "bias"),
    "a bias in place": (lambda q, k, v: (q @ k.mT).mul_(8**-0.5).add_(BIAS).softmax(-1) @ v, "bias"),
    "a mask": (lambda q, k, v: (q @ k.mT * 8**-0.5).masked_fill(FAR, -torch.inf).softmax(-1) @ v, "band"),
    "torch.where": (lambda q, k, v: torch.where(FAR, -torch.inf, q @ k.mT * 8**-0.5).softmax(-1) @ v, "band"),
    "transposed": (lambda q, k, v: (v.mT @ (k @ q.mT * 8**-0.5).softmax(-2)).mT, ""),
    "a sum of products": (lambda q, k, v: ((q[:, :, :, None] * k[:, :, None]).sum(-1) * 8**-0.5).softmax(-1) @ v, ""),
    "a loop over heads": (one_query_at_a_time, ""),
    "less the largest": (lambda q, k, v: ((s := q @ k.mT * 8**-0.5) - s.amax(-1, True)).softmax(-1) @ v, ""),
    "a temperature": (lambda q, k, v: ((q @ k.mT) / (8**0.5 * torch.ones(3, 1, 1))).softmax(-1) @ v, ""),
    "chunks of queries": (lambda q, k, v: torch.cat([by_einsum(one, k, v) for one in q.chunk(2, 2)], 2), ""),
    "checkpoint": (lambda q, k, v: checkpoint(F.scaled_dot_product_attention, q, k, v, use_reentrant=False), ""),
    "checkpoint of what is written out": (lambda q, k, v: checkpoint(by_einsum, q, k, v, use_reentrant=True), ""),
    "flex_attention": (flex, ""),
}  # fmt: skip
"""Attention, and what is added to its scores (of ``EXACT``)."""
