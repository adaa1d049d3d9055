"""AttnLRP (Achtibat et al., 2024, https://arxiv.org/abs/2402.05602): the class's score, handed back layer by layer.

Layer-wise relevance propagation shares what a layer's output is worth among its inputs, by a rule for each kind of
layer. Written as gradient times input, a rule is only another backward: of the same value, but with a slope that the
rule asks for. So the network runs as it stands, and meanwhile four functions of torch are exchanged for ones that
differ in their backward alone. The fused attention kernel stays, for the rule of its two products is a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from vit_demo.methods.attention import to_grid
from vit_demo.methods.targets import Target, class_scores, differentiable_pass
from vit_demo.model import ViT

GAMMA = 0.05
"""How much more what agrees with an output counts than what speaks against it. Chosen on photos set aside for trials,
where 0.02 and 0.1 did as well; at 0 the maps of a ViT are mostly noise."""


def attnlrp(
    model: ViT,
    images: Tensor,
    target: Target = None,
    *,
    patch_size: int | None = None,
    keep: Tensor | None = None,
) -> Tensor:
    """What each patch contributed to a class's score, by the rules of AttnLRP at the tokens before the first block.

    Arguments as in ``relevance``.

    Returns:
        ``[B, rows, cols]`` float32, in the unit of the logit, below 0 where a patch speaks against the class. Prefix
        tokens and biases have shares of their own, so that the map does not sum to the logit.
    """
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(images.device.type, enabled=False):
        with _WithRules():
            logits, trace = differentiable_pass(model, images, patch_size=patch_size, keep=keep)
        tokens = trace.x[0]
        (slope,) = torch.autograd.grad(class_scores(logits, target).sum(), tokens)
    with torch.no_grad():
        return to_grid((tokens.float() * slope.float()).sum(2), trace)


class _Linear(torch.autograd.Function):
    """A linear map with the gamma rule (Montavon et al., 2019, https://doi.org/10.1007/978-3-030-28954-6_10).

    Of an output z = sum_i x_i w_i, input i gets the share of x_i w_i; products of z's own sign count 1 + gamma times.
    The part of a product that is positive is half of ``x w + |x| |w|``, so that two products do for all signs.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        z = F.linear(x, weight, bias)
        ctx.save_for_backward(x, weight, bias, z)
        return z

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        x, weight, bias, z = ctx.saved_tensors
        of_size = F.linear(x.abs(), weight.abs(), None if bias is None else bias.abs())
        # gradient * z is what the output is worth; z counted anew is what that is a share of.
        anew = z + GAMMA / 2 * (z + z.sign() * of_size)
        share = torch.where(anew == 0, 0, gradients[0] * z / anew)
        alike = (share * z.sign()) @ weight.abs() * x.sign()
        return (1 + GAMMA / 2) * (share @ weight) + GAMMA / 2 * alike, None, None


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return _Linear.apply(x, weight, bias)


def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """The deviation is taken for a constant, so that the norm is linear."""
    centred = x - x.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + eps).sqrt().detach()
    normal = centred / deviation
    if weight is not None:
        normal = normal * weight
    return normal if bias is None else normal + bias


def _gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """One input, one output: what comes out is what went in is worth."""
    return x * torch.where(x == 0, 0.5, F.gelu(x, approximate=approximate) / x).detach()


def _attention(q: Tensor, k: Tensor, v: Tensor, *rest: Any, **options: Any) -> Tensor:
    """Both factors of a product get half. The softmax passes a quarter on, half of the half, to q and to k."""
    return F.scaled_dot_product_attention(_slower(q, 0.25), _slower(k, 0.25), _slower(v, 0.5), *rest, **options)


def _slower(x: Tensor, slope: float) -> Tensor:
    return slope * x + ((1 - slope) * x).detach()


_RULES: dict[Callable[..., Any], Callable[..., Tensor]] = {
    F.linear: _linear,
    F.layer_norm: _layer_norm,
    F.gelu: _gelu,
    F.scaled_dot_product_attention: _attention,
}


class _WithRules(TorchFunctionMode):
    """While it is on, in this thread, the layers of a network have the backward of their rule."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _RULES.get(func, func)(*args, **(kwargs or {}))
