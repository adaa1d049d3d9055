"""Class relevance (Chefer et al., 2021, https://arxiv.org/abs/2103.15679), without one stored attention matrix.

Each block passes relevance on by ``A_bar``, the mean over heads of ``(dA * A)^+``, where dA is the gradient of the
class's score with respect to the attention A. Two things make it cheap and leave it exact:

- The backward of attention has to make A and dA anyway, a few rows at a time; so it is written out here, and passes
  relevance on while it has both. The last block's costs almost nothing, for only the tokens that the head reads have a
  gradient there; the first block's stops at A and dA.
- The whole ``R = (I + A_bar_L) ... (I + A_bar_1)`` is not wanted but only what the head reads of it, which is a row
  vector carried backwards, ``r <- r + r A_bar``, in the very order in which gradients come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.methods.attention import mean_of_heads, multiply, padded, rows_at_once, rows_into, to_grid
from vit_demo.methods.chunking import current_budget, memory_budget
from vit_demo.methods.targets import Target, class_scores, differentiable_pass, pooling_weights
from vit_demo.model import ViT


def relevance(
    model: ViT,
    images: Tensor,
    target: Target = None,
    *,
    patch_size: int | None = None,
    keep: Tensor | None = None,
    average_heads_first: bool = False,
) -> Tensor:
    """How much each patch speaks for a class, carried by the attention of all blocks.

    Args:
        model: In eval mode.
        images: ``[B, C, height, width]``, normalised.
        target: The class, or one for each sample; by default each sample's likeliest.
        patch_size: As in ``ViT.forward``.
        keep: As in ``ViT.forward``.
        average_heads_first: Take the positive part of the heads' mean, not the mean of their positive parts: heads that
            disagree then cancel, which sharpens the map.

    Returns:
        ``[B, rows, cols]`` float32, at least 0. The identity's own term, the same for every patch, is left out.
    """
    carried = Carried(average_heads_first)
    with torch.inference_mode(False), torch.enable_grad():
        logits, trace = differentiable_pass(model, images, patch_size=patch_size, keep=keep, attend=carried.attend)
        carried.start(pooling_weights(model, trace).expand(len(images), -1))
        # Samples do not mix, so that one backward of the sum serves all of them. It ends at the first block's output.
        (d_o,) = torch.autograd.grad(class_scores(logits, target).sum(), trace.o[0])
    carried.take(trace.q[0], trace.k[0], trace.v[0], d_o)
    return to_grid(carried.gained, trace)


@dataclass
class Carried:
    """The row ``start (R - I)`` of the relevance R, while a backward carries it towards the first block.

    Attributes:
        average_heads_first: As in ``relevance``.
        gained: The row so far, ``[B, N]``, prefix tokens included.
        weights: ``start + gained``.
        budget: The ``memory_budget`` it was made under; on a GPU the backward runs in a thread of its own.
    """

    average_heads_first: bool = False
    budget: float = field(default_factory=current_budget)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention on the fused kernel, whose backward carries relevance through the block."""
        return _Attend.apply(q, k, v, self)

    def start(self, weights: Tensor) -> None:
        """Begins with the share ``[B, N]``, at least 0, that each output token has in what the head reads."""
        self.weights = weights.clone()
        self.gained = torch.zeros_like(weights)

    def take(self, q: Tensor, k: Tensor, v: Tensor, d_o: Tensor, *, with_gradients: bool = False) -> Tensor | None:
        """Carries the row through one block.

        Args:
            q: ``[B, H, N, d]``, not scaled yet.
            k: As ``q``.
            v: As ``q``.
            d_o: The gradient of the score at the attention output, as ``q``.
            with_gradients: Whether those of q, k and v are wanted.

        Returns:
            The three gradients, ``[3, B, H, N, d]`` float32; None if they are not wanted.
        """
        with torch.no_grad(), torch.autocast(q.device.type, enabled=False), memory_budget(self.budget):
            return self._take(q, k, v, d_o, with_gradients)

    def _take(self, q: Tensor, k: Tensor, v: Tensor, d_o: Tensor, with_gradients: bool) -> Tensor | None:
        batch, heads, n, d = q.shape
        queries = (q.float() * d**-0.5).reshape(-1, n, d).contiguous()  # [B * H, N, d]
        d_out = d_o.float().reshape(-1, n, d).contiguous()
        keys, values = padded(k), padded(v)  # [B * H, width, d]
        width = keys.shape[1]
        passed = self.gained.new_zeros(batch, width)
        needed = d_out.any(2).any(0).nonzero()[:, 0]  # where no gradient arrives, A * dA is 0
        sparse = len(needed) < n
        of_rows = [tensor[:, needed] if sparse else tensor for tensor in (queries, d_out, self.weights)]
        d_q, d_k, d_v = torch.empty_like(of_rows[0]), torch.zeros_like(keys), torch.zeros_like(keys)
        chunk = max(1, min(rows_at_once(q), len(needed)))
        # Three arrays of a chunk, used again and again: fresh memory would cost as much as what is computed in it.
        space = queries.new_empty(3, batch * heads * chunk * width)
        for rows, d_rows, weights, d_q_rows in zip(*(t.split(chunk, 1) for t in (*of_rows, d_q)), strict=True):
            attention, product, positive = space[:, : rows.shape[:2].numel() * width].view(3, *rows.shape[:2], width)
            rows_into(rows, keys, n, attention)
            multiply(d_rows, values.mT, product)
            product.mul_(attention)  # dA * A
            passed += self._share(product.unflatten(0, (batch, heads)), weights, positive)
            if with_gradients:
                multiply(attention.mT, d_rows, d_v, add=True)
                d_scores = product.addcmul_(attention, product.sum(2, keepdim=True), value=-1)
                multiply(d_scores, keys, d_q_rows)
                multiply(d_scores.mT, rows, d_k, add=True)
        self.gained += passed[:, :n]
        self.weights += passed[:, :n]
        if not with_gradients:
            return None
        gradients = torch.stack([torch.zeros_like(queries), d_k[:, :n], d_v[:, :n]])
        gradients[0][:, needed] = d_q * d**-0.5
        return gradients.unflatten(1, (batch, heads))

    def _share(self, product: Tensor, weights: Tensor, space: Tensor) -> Tensor:
        """``weights A_bar`` of some rows, ``[B, N]``.

        Args:
            product: Their dA * A, ``[B, H, c, N]``.
            weights: ``[B, c]``.
            space: ``[B * H, c, N]``, to be overwritten.
        """
        if self.average_heads_first:
            return (weights[:, None] @ product.mean(1).relu_())[:, 0]
        positive = torch.clamp_min(product, 0, out=space.view(product.shape))
        return mean_of_heads(weights, positive)


class _Attend(torch.autograd.Function):
    """Attention, and the backward of ``Carried.take``."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, carried: Carried) -> Tensor:
        ctx.save_for_backward(q, k, v)
        ctx.carried = carried
        return F.scaled_dot_product_attention(q, k, v)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        q, k, v = ctx.saved_tensors
        return *ctx.carried.take(q, k, v, gradients[0], with_gradients=True).to(q.dtype), None
