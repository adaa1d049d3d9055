"""AttnLRP (Achtibat et al., 2024, https://arxiv.org/abs/2402.05602): the class's score, propagated back layer by layer.

Layer-wise relevance propagation distributes the relevance of a layer's output over its inputs, by a rule for each kind
of layer. Written as gradient times input, a rule is a modified backward of the same function; see ``gradient_rules``.
The fused attention kernel stays, because the rule for its two products is a constant factor.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.methods.gradient_rules import ModifiedBackward, depends
from vit_demo.methods.registry import register
from vit_demo.methods.targets import Target, token_gradients
from vit_demo.trace import PassOptions, TracedViT
from vit_demo.trace.attention_mode import LOWEST, fold
from vit_demo.trace.products import MATMUL, read_product
from vit_demo.trace.trace import to_grid

GAMMA = 0.05
"""The gamma rule's extra weight of contributions with the sign of the output. Chosen on photos set aside for trials,
where 0.02 and 0.1 did as well; at 0 the maps of a ViT are mostly noise."""

_SAME_SIGN = GAMMA / (2 + GAMMA)


@register(
    "attnlrp",
    title="AttnLRP",
    use="To see evidence for and against a class, traced back layer by layer.",
    class_specific=True,
    cost="backward",
    unit="logit",
    signed=True,
)
def attnlrp(
    model: TracedViT, images: Tensor, target: Target = None, *, against: Target = None, **options: Unpack[PassOptions]
) -> Tensor:
    """The contribution of each patch to a class's score, propagated back to the tokens before the first block.

    Parameters as in ``vit_demo.methods``. Values are shares of the logit, below 0 for evidence against the class;
    prefix tokens and biases receive shares of their own, so the map does not sum to the logit.
    """
    tokens, gradients, trace = token_gradients(
        model, images, target, against, attention_fn=_Attention.apply, rules=ModifiedBackward(RULES, WITHOUT_RULE),
        blocks=slice(1), **options,
    )  # fmt: skip
    return to_grid((tokens[0] * gradients[0]).sum(2), trace)


class _Linear(torch.autograd.Function):
    """A linear map with the gamma rule (Montavon et al., 2019, https://doi.org/10.1007/978-3-030-28954-6_10).

    Input i of an output z = sum_i x_i w_i gets the share of x_i w_i; products of z's own sign count 1 + gamma times.
    The positive part of a product is half of ``x w + |x| |w|``, so two matrix products serve all signs. Their common
    factor ``1 + gamma / 2`` cancels.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        z = F.linear(x, weight, bias)
        ctx.save_for_backward(x, weight)
        ctx.bias = ctx.own_bias = bias
        ctx.z, ctx.version = z.detach(), z._version  # it may be changed in place, as by z += ...
        return z

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (x, weight), bias, z = ctx.saved_tensors, ctx.bias, ctx.z
        if z._version != ctx.version or bias is not ctx.own_bias:
            z = F.linear(x, weight, bias)
        rows = _reached(gradients[0])
        if rows is None:
            return _slope(x, weight, bias, z, gradients[0]), None, None
        slope = _slope(x[:, rows], weight, bias, z[:, rows], gradients[0][:, rows])
        return torch.zeros_like(x).index_copy_(1, rows, slope), None, None


def _reached(gradient: Tensor) -> Tensor | None:
    """The indices of the tokens that a gradient ``[..., N, D]`` reaches; None for all of them.

    Few are reached only in the last block, where the head reads the class token alone. Only the last token is looked at
    first, because looking at all takes time in every block.
    """
    if gradient.dim() < 3 or gradient[..., -1, :].any():
        return None
    return gradient.any(-1).flatten(0, -2).any(0).nonzero()[:, 0]


def _slope(x: Tensor, weight: Tensor, bias: Tensor | None, z: Tensor, gradient: Tensor) -> Tensor:
    """The gradient at ``x`` under the gamma rule, given that at the output ``z`` of the linear map."""
    size, magnitude = weight.abs(), x.abs()
    least = torch.finfo(z.dtype).tiny / _SAME_SIGN  # where nothing else is added to it, z is 0 as well
    offset = size.new_full((len(size),), least) if bias is None else bias.abs() + least
    reweighted, share = F.linear(magnitude, size, offset), z.abs()
    reweighted = torch.add(share, reweighted, alpha=_SAME_SIGN, out=reweighted)
    # gradient * z is the relevance of the output; its shares are relative to the reweighted z.
    share.div_(reweighted).mul_(gradient)
    of_sizes = torch.sign(z, out=reweighted).mul_(share) @ size
    return (share @ weight).addcmul_(of_sizes, torch.sign(x, out=magnitude), value=_SAME_SIGN)


class _Attention(torch.autograd.Function):
    """Each factor of a product receives half: v a half, q and k, which share the softmax's half, a quarter each."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        with torch.enable_grad():  # a graph of its own, whose kernel keeps what its backward needs
            ctx.out = F.scaled_dot_product_attention(q, k, v)
        ctx.inputs = q, k, v
        return ctx.out.detach()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (q, k, v), out, gradient = ctx.inputs, ctx.out, gradients[0]
        rows = _reached(gradient)
        if rows is not None:
            with torch.enable_grad():
                out, gradient = F.scaled_dot_product_attention(q[:, :, rows], k, v), gradient[:, :, rows]
        d_q, d_k, d_v = torch.autograd.grad(out, (q, k, v), gradient)
        return 0.25 * d_q, 0.25 * d_k, 0.5 * d_v


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return _Linear.apply(input, weight, bias)


def _pooling(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *_: Any, **options: Any
) -> Any:
    if query.dim() == 4 and query.shape[2] != key.shape[2] and not options.get("enable_gqa"):
        return _Attention.apply(*fold(query, key, attn_mask, options.get("scale")), value)
    return F.scaled_dot_product_attention(query, key, value, attn_mask, *_, **options)


def _matrix_product(func: Callable[..., Tensor], *args: Any, **options: Any) -> Tensor:
    """``x @ W``, or an ``einsum`` that is one."""
    operands, letters = read_product(func, args, options)
    if letters is not None and depends(operands[0]) != depends(operands[1]):
        first = int(depends(operands[1]))  # the one that depends on the image
        (x, weight), of_x, of_weight = operands[:: 1 - 2 * first], letters[first], letters[1 - first]
        inner = (set(of_x) & set(of_weight)) - set(letters[2])
        if len(of_weight) == 2 and len(inner) == 1:
            inside = inner.pop()
            weight = weight if of_weight[1] == inside else weight.mT
            z = _linear(x.movedim(of_x.index(inside), -1), weight)
            axes = (of_x + of_weight).replace(inside, "")
            return z if axes == letters[2] else z.permute([axes.index(letter) for letter in letters[2]])
    return func(*args, **options)


def _sum(func: Callable[..., Tensor], *args: Any, **options: Any) -> Tensor:
    """A sum; what is added to a linear map, the same for all tokens, becomes its bias."""
    for z, bias in (args[:2], args[1::-1]):
        if not depends(z) or depends(bias) or not isinstance(bias, Tensor) or bias.numel() != z.shape[-1]:
            continue
        node: Any = z.grad_fn
        while node.name() in _VIEWS and node.next_functions[0][0]:
            node = node.next_functions[0][0]
        if hasattr(node, "bias"):
            added = bias.detach().flatten().nan_to_num(neginf=LOWEST)  # of a class that is masked out
            node.bias = added if node.bias is None else node.bias + added
    return func(*args, **options)


_VIEWS = ("ViewBackward0", "PermuteBackward0")
_SUMS = (torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__, Tensor.add_, Tensor.__iadd__)

RULES: dict[Callable[..., Any], Callable[..., Any]] = {
    F.linear: _linear,
    F.scaled_dot_product_attention: _pooling,
    **{func: partial(_matrix_product, func) for func in (*MATMUL, torch.einsum)},
    **{func: partial(_sum, func) for func in _SUMS},
}
WITHOUT_RULE = {"Addbmm", "Addmm", "Baddbmm", "Bmm", "Convolution", "Mm", "Mv"}  # nodes without the gamma rule
