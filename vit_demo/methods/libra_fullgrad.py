"""Libra FullGrad+ (Mehri et al., 2025, https://arxiv.org/abs/2411.16760): token times gradient, over all blocks.

A network's gradient at a token is dominated by parts that cancel: those through the softmax, the norm and the gate of
the activation. LibraGrad prunes them. Attention weights, the norm's deviation and the gate count as constants in the
backward; what is left is linear in the token, so token times gradient shares the score out, and does so before every
block. FullGrad+ adds these shares up over the blocks, without the terms of the biases.

This package takes their mean over the blocks and adds what each token gives to the others: its values times their
gradient, over all blocks. The same backward has both, and together they are more faithful.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.methods.attention_rows import iter_attention_rows
from vit_demo.methods.chunking import current_budget, memory_budget
from vit_demo.methods.gradient_rules import ModifiedBackward
from vit_demo.methods.registry import Option, register
from vit_demo.methods.targets import Target, token_gradients
from vit_demo.trace import PassOptions, TracedViT
from vit_demo.trace.trace import to_grid
from vit_demo.trace.written_out import SOFTMAX


@register(
    "libra_fullgrad",
    title="Libra FullGrad+",
    use="The first choice: quick, with evidence for and against a class.",
    class_specific=True,
    cost="backward",
    unit="logit",
    signed=True,
    recommended="Evidence for a class",
    options=[Option(name="with_values", kind="flag")],
)
def libra_fullgrad(
    model: TracedViT,
    images: Tensor,
    target: Target = None,
    *,
    against: Target = None,
    with_values: bool = True,
    **options: Unpack[PassOptions],
) -> Tensor:
    """The contribution of each patch to a class's score, in all blocks, while attention stays as it is.

    Values have the unit of the logit, below 0 for evidence against the class. Without ``with_values``, the shares of
    the values, it is the published method over the number of blocks. Other parameters as in ``vit_demo.methods``.
    """
    of_values = list[Tensor]()

    def attention_fn(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return _ConstantAttention.apply(q.detach(), k.detach(), v, of_values, current_budget())

    tokens, gradients, trace = token_gradients(
        model, images, target, against, attention_fn=attention_fn, rules=ModifiedBackward(POOLING), **options
    )
    shares = torch.stack([(x * slope).sum(2) for x, slope in zip(tokens, gradients, strict=True)]).mean(0)
    if with_values:
        shares += torch.stack(of_values).sum(0)
    return to_grid(shares, trace)


class _ConstantAttention(torch.autograd.Function):
    """Attention whose weights are constants: its backward is that of a matrix product with the values alone.

    It also notes the share ``[B, N]`` of each token's values: their products with their gradient, over all heads.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, shares: list[Tensor], budget: float) -> Tensor:
        ctx.save_for_backward(q, k, v)
        ctx.shares, ctx.budget = shares, budget
        return F.scaled_dot_product_attention(q, k, v)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (q, k, v), gradient = ctx.saved_tensors, gradients[0].float()
        rows = gradient.any(3).flatten(0, 1).any(0).nonzero()[:, 0]  # in the last block few tokens have a gradient
        if len(rows) < q.shape[2]:
            q, gradient = q[:, :, rows], gradient[:, :, rows]
        d_v = torch.zeros_like(v, dtype=torch.float32)
        with memory_budget(ctx.budget):
            for part, chunk in iter_attention_rows(q, k):  # chunk [B, H, c, N]
                d_v += chunk.mT @ gradient[:, :, part]
        ctx.shares.append((v * d_v).sum((1, 3)))
        return None, None, d_v.to(v.dtype), None, None


def _with_constant_weights(query: Tensor, key: Tensor, *arguments: Any, **options: Any) -> Tensor:
    return F.scaled_dot_product_attention(query.detach(), key.detach(), *arguments, **options)


def _constant_softmax(func: Callable[..., Tensor], input: Tensor, *arguments: Any, **options: Any) -> Tensor:
    weights = func(input, *arguments, **options)
    return weights.detach() if input.dim() > 2 else weights


POOLING: dict[Callable[..., Any], Callable[..., Any]] = {
    F.scaled_dot_product_attention: _with_constant_weights,
    **{func: partial(_constant_softmax, func) for func in SOFTMAX},
}
"""Rules for attention pooling, which is no block's, so that ``attention_fn`` does not see it."""
