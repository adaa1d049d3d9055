"""Class relevance (Chefer et al., 2021, https://arxiv.org/abs/2103.15679), without storing large attention matrices.

Each block propagates relevance by ``A_bar``, the mean over heads of ``(dA * A)^+``, where dA is the gradient of the
class's score with respect to the attention A. In a short sequence whole matrices are small, and autograd computes dA.
In a longer one, two things make it cheap and keep it exact:

- The backward of attention computes A and dA anyway, a few rows at a time; so it is written out here, and propagates
  relevance while both are at hand. The last block costs almost nothing, because only the tokens that the head reads
  have a gradient there; the first block's backward stops at A and dA.
- Of ``R = (I + A_bar_L) ... (I + A_bar_1)`` only the row that the head reads is needed: a row vector propagated
  backwards, ``r <- r + r A_bar``, in the order in which the gradients arrive.
"""

from dataclasses import dataclass, field
from typing import Any, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.methods.attention_rows import (
    attention_rows,
    attention_rows_into,
    batched_matmul,
    is_short,
    pad_keys,
    queries_per_chunk,
    weighted_head_mean,
)
from vit_demo.methods.chunking import current_budget, memory_budget
from vit_demo.methods.registry import Option, register
from vit_demo.methods.targets import Target, class_scores, forward_with_grad, pooling_weights
from vit_demo.model.resample import without_autocast
from vit_demo.trace import PassOptions, Trace, TracedViT
from vit_demo.trace.trace import to_grid

Gradients = tuple[Tensor, ...] | None  # those at q, k and v


@register(
    "relevance",
    title="Relevance",
    use="To see for a class which attention mattered to it.",
    class_specific=True,
    cost="backward",
    unit="logit",
    options=[Option(name="average_heads_first", kind="flag")],
)
def relevance(
    model: TracedViT,
    images: Tensor,
    target: Target = None,
    *,
    against: Target = None,
    average_heads_first: bool = False,
    **options: Unpack[PassOptions],
) -> Tensor:
    """The evidence for a class in each patch: the attention of all blocks, weighted by its positive gradients.

    ``average_heads_first`` takes the positive part of the heads' mean, not the mean of their positive parts: heads that
    disagree then cancel, which sharpens the map. Other parameters as in ``vit_demo.methods``. Values are at least 0; a
    patch's share in what the head reads itself, which is no logit, is left out.
    """
    together = model.calls_per_block  # of attention; more than one in parallel branches
    row, outputs, matrices = RelevanceRow(average_heads_first, together), list[Tensor](), list[Tensor]()

    def attention_fn(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if not is_short(q):
            outputs.append(row.attention_fn(q, k, v))
            return outputs[-1]
        with without_autocast(q.device):
            matrices.append(attention_rows(q, k))
            return (matrices[-1] @ v.float()).to(v.dtype)

    with torch.inference_mode(False), torch.enable_grad():
        logits, trace = forward_with_grad(model, images, attention_fn, **options)
        chosen = logits.argmax(1) if target is None else target
        score = class_scores(logits, chosen, against).sum()
        row.start(pooling_weights(model, trace, chosen, against), trace, score)
        # Samples do not mix, so one backward of the sum serves all of them. It ends at the first block's attention.
        gradients = torch.autograd.grad(score, matrices or outputs[:together])
    if matrices:
        for attention, gradient in zip(reversed(matrices), reversed(gradients), strict=True):
            row.add_block(attention, gradient)
    else:
        for q, k, v, gradient in zip(trace.q, trace.k, trace.v, gradients, strict=False):
            row.propagate(q, k, v, gradient)
    return to_grid(row.relevance, trace)


@dataclass
class RelevanceRow:
    """The row ``start R`` of the relevance R, without the shares, while a backward propagates it to the first block.

    Attributes:
        average_heads_first: As in ``relevance``.
        together: Attentions whose relevance is added, because they read the same tokens: those of a parallel block.
        relevance: The row so far, ``[B, N]``, prefix tokens included.
        weights: ``start + relevance``, of the blocks that are complete.
        budget: The ``memory_budget`` in force when it was created; on a GPU the backward runs in a thread of its own.
    """

    average_heads_first: bool
    together: int
    budget: float = field(default_factory=current_budget)

    def attention_fn(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention on the fused kernel, whose backward propagates relevance through the block."""
        return _AttentionWithRelevance.apply(q, k, v, self)

    def start(self, shares: Tensor, trace: Trace, score: Tensor) -> None:
        """Starts from the share ``[B, N]``, at least 0, that each last token has in what the head reads.

        And from the relevance of attention pooling, if the trace has any, to the sum of all scores.
        """
        self.relevance, self._passed = torch.zeros_like(shares), list[Tensor]()
        if trace.pooling is not None and trace.pooled is not None:
            values, out = trace.pooled
            (slope,) = torch.autograd.grad(score, out, retain_graph=True)
            slopes = (slope.detach().float() @ values.detach().float().mT)[:, :, 0]  # [B, P, N'] at the attention
            product = trace.pooling.detach() * F.pad(slopes, (shares.shape[1] - slopes.shape[2], 0))
            self.relevance += product.mean(1).relu() if self.average_heads_first else product.relu().mean(1)
        self.weights = shares + self.relevance

    def add_block(self, attention: Tensor, gradient: Tensor) -> None:
        """Propagates the row through one block, given its attention and the gradient there, ``[B, H, N, N]`` each."""
        with torch.no_grad():
            product = attention * gradient
            self._add(self._block_relevance(product, self.weights, product))

    def _add(self, passed: Tensor) -> None:
        self.relevance += passed
        self._passed.append(passed)
        if len(self._passed) == self.together:
            self.weights += sum(self._passed)
            self._passed.clear()

    def propagate(self, q: Tensor, k: Tensor, v: Tensor, d_o: Tensor, *, with_gradients: bool = False) -> Gradients:
        """Propagates the row through one block; returns the gradients of q, k and v, None without ``with_gradients``.

        They are ``[B, H, N, d]`` and ``[B, H, N, e]``, not scaled yet; ``d_o`` is the gradient at what attention gives.
        """
        with torch.no_grad(), without_autocast(q.device), memory_budget(self.budget):
            return self._propagate(q, k, v, d_o, with_gradients)

    def _propagate(self, q: Tensor, k: Tensor, v: Tensor, d_o: Tensor, with_gradients: bool) -> Gradients:
        batch, heads, n, d = q.shape
        queries = (q.float() * d**-0.5).reshape(-1, n, d).contiguous()  # [B * H, N, d]
        d_out = d_o.float().reshape(-1, n, d_o.shape[3]).contiguous()
        keys, values = pad_keys(k), pad_keys(v)  # [B * H, width, d]
        width = keys.shape[1]
        passed = self.relevance.new_zeros(batch, width)
        needed = d_out.any(2).any(0).nonzero()[:, 0]  # where no gradient arrives, A * dA is 0
        sparse = len(needed) < n
        of_rows = [tensor[:, needed] if sparse else tensor for tensor in (queries, d_out, self.weights)]
        d_q, d_k, d_v = torch.empty_like(of_rows[0]), torch.zeros_like(keys), torch.zeros_like(values)
        chunk = max(1, min(queries_per_chunk(q), len(needed)))
        # Three buffers of a chunk, reused: allocating costs as much as computing.
        buffers = queries.new_empty(3, batch * heads * chunk * width)
        for rows, d_rows, weights, d_q_rows in zip(*(t.split(chunk, 1) for t in (*of_rows, d_q)), strict=True):
            attention, product, positive = buffers[:, : rows.shape[:2].numel() * width].view(3, *rows.shape[:2], width)
            attention_rows_into(rows, keys, n, attention)
            batched_matmul(d_rows, values.mT, product)
            product.mul_(attention)  # dA * A
            passed += self._block_relevance(product.unflatten(0, (batch, heads)), weights, positive)
            if with_gradients:
                batched_matmul(attention.mT, d_rows, d_v, add=True)
                d_scores = product.addcmul_(attention, product.sum(2, keepdim=True), value=-1)
                batched_matmul(d_scores, keys, d_q_rows)
                batched_matmul(d_scores.mT, rows, d_k, add=True)
        self._add(passed[:, :n])
        if not with_gradients:
            return None
        of_queries = torch.zeros_like(queries)
        of_queries[:, needed] = d_q * d**-0.5
        return tuple(tensor.unflatten(0, (batch, heads)).to(q.dtype) for tensor in (of_queries, d_k[:, :n], d_v[:, :n]))

    def _block_relevance(self, product: Tensor, weights: Tensor, buffer: Tensor) -> Tensor:
        """``weights A_bar`` ``[B, N]`` of some rows, from their weights ``[B, c]`` and dA * A, ``[B, H, c, N]``.

        ``buffer`` ``[B * H, c, N]`` is overwritten.
        """
        if self.average_heads_first:
            return (weights[:, None] @ product.mean(1).relu_())[:, 0]
        positive = torch.clamp_min(product, 0, out=buffer.view(product.shape))
        return weighted_head_mean(weights, positive)


class _AttentionWithRelevance(torch.autograd.Function):
    """Attention, and the backward of ``RelevanceRow.propagate``."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, row: RelevanceRow) -> Tensor:
        ctx.save_for_backward(q, k, v)
        ctx.row = row
        return F.scaled_dot_product_attention(q, k, v)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        q, k, v = ctx.saved_tensors
        return *ctx.row.propagate(q, k, v, gradients[0], with_gradients=True), None
