"""A pass whose layers have another backward, for methods that change how a gradient flows and nothing else.

torch passes each of its functions through the modes that are active in a thread. So the network runs as it is, while
some functions are replaced by ones that differ only in their backward. Two rules are common to all methods: the
deviation by which a norm divides is a constant, and so is the gate of GELU and SiLU, which are ``x * gate(x)``.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from vit_demo.methods.targets import Target, class_scores, forward_with_grad
from vit_demo.model.resample import without_autocast
from vit_demo.trace import AttentionFn, PassOptions, Trace, TracedViT

_PRODUCTS = {torch.mul, Tensor.mul, Tensor.__mul__}
_SIGMOIDS = {torch.sigmoid, Tensor.sigmoid, F.sigmoid}


def token_gradients(
    model: TracedViT,
    images: Tensor,
    target: Target,
    against: Target = None,
    *,
    attention_fn: AttentionFn | None = None,
    rules: TorchFunctionMode | None = None,
    blocks: slice = slice(None),
    **options: Unpack[PassOptions],
) -> tuple[list[Tensor], list[Tensor], Trace]:
    """The tokens before each block, and the gradient of a class's score at them.

    ``rules`` are active during the pass, ``blocks`` says which of the blocks are wanted, and ``attention_fn`` is as in
    ``TracedViT.forward``; other parameters as in ``vit_demo.methods``.

    Returns:
        Tokens and gradients, each one ``[B, N, D]`` float32 a block, and the trace. Of a network whose blocks do not
        show their tokens there is only the first.
    """
    with torch.inference_mode(False), torch.enable_grad(), without_autocast(images.device):
        with rules or nullcontext():
            logits, trace = forward_with_grad(model, images, attention_fn, **options)
        tokens = trace.tokens[: max(1, len(trace.tokens) - 1)][blocks]  # without those after the last block
        gradients = torch.autograd.grad(class_scores(logits, target, against).sum(), tokens)
    return [x.detach().float() for x in tokens], [gradient.float() for gradient in gradients], trace


class ModifiedBackward(TorchFunctionMode):
    """Within it, in this thread, norms and activations have the backward of their rule, and some functions another.

    Where an activation is multiplied by another branch (SwiGLU), each of the two gets half of the gradient.

    Args:
        rules: What is called in place of a function of torch, with its arguments and its result.
    """

    def __init__(self, rules: Mapping[Callable[..., Any], Callable[..., Any]]) -> None:
        super().__init__()
        self._rules = {**_RULES, **rules}
        self._gate: Tensor | None = None
        self._activation: Tensor | None = None

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Handles one call of torch; see ``TorchFunctionMode``."""
        if func in _PRODUCTS and self._gate is not None and any(x is self._gate for x in args):
            args = tuple(x.detach() if x is self._gate else x for x in args)  # x * sigmoid(x), written out
            self._activation = func(*args)
            return self._activation
        if func in _PRODUCTS and self._activation is not None and any(x is self._activation for x in args):
            return _Halved.apply(func(*args))
        result = self._rules.get(func, func)(*args, **(kwargs or {}))
        if func in _SIGMOIDS:
            self._gate = result
        elif func in (F.gelu, F.silu):
            self._activation = result
        return result


class _LayerNorm(torch.autograd.Function):
    """Layer normalization whose standard deviation is a constant, so that it is linear."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> Tensor:
        y, _, inverse_deviation = torch.native_layer_norm(x, shape, weight, bias, eps)
        ctx.save_for_backward(weight, inverse_deviation)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        weight, inverse_deviation = ctx.saved_tensors
        slope = gradients[0] if weight is None else gradients[0] * weight
        return (slope - slope.mean(-1, keepdim=True)).mul_(inverse_deviation.to(slope.dtype)), None, None, None, None


class _Activation(torch.autograd.Function):
    """``x * gate(x)`` whose gate is a constant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        y = function(x)
        ctx.save_for_backward((y / x).nan_to_num_(0.5))  # the gate; at 0 the limit, one half
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return ctx.saved_tensors[0] * gradients[0], None


class _Halved(torch.autograd.Function):
    """The product of two branches, each of which gets half."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return 0.5 * gradients[0]


def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    return _LayerNorm.apply(x, shape, weight, bias, eps)


def _rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    axes = tuple(range(-len(shape), 0))
    with torch.no_grad():
        least = torch.finfo(x.dtype).eps if eps is None else eps
        inverse = x.float().square().mean(axes, keepdim=True).add_(least).rsqrt_().to(x.dtype)
    return x * inverse if weight is None else x * inverse * weight


def _gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return _Activation.apply(x, partial(F.gelu, approximate=approximate))


def _silu(x: Tensor, inplace: bool = False) -> Tensor:
    return _Activation.apply(x, F.silu)


_RULES: dict[Callable[..., Any], Callable[..., Any]] = {
    F.layer_norm: _layer_norm,
    F.rms_norm: _rms_norm,
    F.gelu: _gelu,
    F.silu: _silu,
}
