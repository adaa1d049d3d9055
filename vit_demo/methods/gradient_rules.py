"""A pass whose layers have another backward, for methods that change how a gradient flows and nothing else.

torch passes each of its functions through the modes that are active in a thread. So the network runs as it is, while
some functions are replaced by ones that differ only in their backward. The rules that all methods share: what a norm
divides by is a constant, and so is the gate of an activation, which is ``x * gate(x)``; of a product of two other
branches, each gets half.

Layers that a network writes out are recognised by what they compute: a factor of fewer numbers than the other, as one
for each token, is what a norm divides by, and a factor that came of another through a curve is a gate. Whether a rule
is missing is seen afterwards, in the graph that torch recorded; see ``missing_rule``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_IN_PLACE = (Tensor.mul_, Tensor.multiply_)
_PRODUCTS = (torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__, torch.multiply, Tensor.multiply, *_IN_PLACE)
_QUOTIENTS = (torch.div, Tensor.div, Tensor.__truediv__, torch.divide, Tensor.divide, Tensor.div_, Tensor.divide_)
_POWERS = (torch.pow, Tensor.pow, Tensor.__pow__, torch.square, Tensor.square)
_ACTIVATIONS = (F.gelu, F.silu, F.mish, F.hardswish, F.elu, F.selu, F.celu, *_POWERS)  # functions ``x * gate(x)``
_SIGMOIDAL = (torch.tanh, Tensor.tanh, F.tanh, F.relu6, F.hardtanh, F.softsign)  # activations that are gates, too

_POINTWISE = {"Add", "Sub", "Rsub", "Neg", "Mul", "Div", "ToCopy", "View", "UnsafeView", "Clone", "Alias"}
_LINEAR = {
    *_POINTWISE, "Abs", "AccumulateGrad", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D", "Addbmm", "Addcmul", "Addmm", "Amax", "AsStrided", "AvgPool2D", "AvgPool3D", "Baddbmm", "Bmm",
    "Cat", "ChannelShuffle", "Col2Im", "ConstantPadNd", "Convolution", "Copy", "CopyBackwards", "CopySlices", "Cumsum",
    "Diagonal", "Expand", "FftC2C", "FftC2R", "FftR2C", "Flip", "Gather", "Im2Col", "Index", "IndexAdd", "IndexCopy",
    "IndexPut", "IndexSelect", "LeakyRelu", "Lerp", "MaskedFill", "MaskedScatter", "MaskedSelect", "Max",
    "MaxPool2DWithIndices", "MaxPool3DWithIndices", "Maximum", "Mean", "Minimum", "Mm", "Mv", "NativeBatchNorm",
    "NativeDropout", "Permute", "PixelShuffle", "PixelUnshuffle", "PreluKernel", "ReflectionPad1D", "ReflectionPad2D",
    "ReflectionPad3D", "Relu", "Repeat", "ReplicationPad1D", "ReplicationPad2D", "ReplicationPad3D", "ReshapeAlias",
    "Roll", "Rot90", "Scatter", "Select", "Slice", "Split", "SplitWithSizes", "Squeeze", "Stack", "StdMean", "Sum", "T",
    "Transpose", "Tril", "Triu", "Unbind", "Unfold", "UnsafeSplit", "Unsqueeze", "UpsampleBicubic2D",
    "UpsampleBicubic2DAa", "UpsampleBilinear2D", "UpsampleBilinear2DAa", "UpsampleLinear1D", "UpsampleNearest1D",
    "UpsampleNearest2D", "UpsampleNearestExact2D", "UpsampleTrilinear3D", "VarMean", "ViewAsComplex", "ViewAsReal",
    "Where", "_Activation", "_Attention", "_ConstantAttention", "_LayerNorm", "_Linear",
}  # fmt: skip
"""Nodes of torch's graph whose output is linear in their input, or for every sign of it."""
_FACTORS = {"Mul": (0, 1), "Addcmul": (1, 2)}  # nodes with a product, and which of their inputs are its factors


def missing_rule(logits: Tensor, tokens: Sequence[Tensor], without_rule: Collection[str] = ()) -> str | None:
    """The operation nearest to the tokens in the graph of the logits whose backward no rule covers; None for none."""
    seen, nodes = {x.grad_fn for x in tokens}, [logits.grad_fn]
    for node in nodes:
        if node is None or node in seen:
            continue
        seen.add(node)
        inputs = [one for one, _ in node.next_functions]
        if not _has_rule(node, inputs) or (node_name(node) in without_rule and (len(inputs) != 2 or None in inputs)):
            return node_name(node)
        nodes += inputs
    return None


def node_name(node: Any) -> str:
    """The name of a node of the graph, such as ``Mul``."""
    return re.sub(r"Backward\d*$|^torch::autograd::", "", node.name())


def _has_rule(node: Any, inputs: Sequence[Any]) -> bool:
    name = node_name(node)
    if name in ("Clamp", "ClampMin"):  # as a ReLU
        return not getattr(node, "_saved_min", 0) and getattr(node, "_saved_max", None) is None
    if name == "Div":
        return inputs[1:] in ([], [None])
    if name in _FACTORS and len(inputs) > 1:
        return "halved" in node.metadata or None in [inputs[place] for place in _FACTORS[name]]
    if name.startswith("GridSampler"):  # linear in what is sampled
        return inputs[1] is None
    if name == "NativeBatchNorm":
        return not node._saved_training
    if name.startswith("ScaledDotProduct"):
        return inputs[:2] == [None, None]
    return name in _LINEAR


class ModifiedBackward(TorchFunctionMode):
    """A context in which, in this thread, norms and activations have the backward of their rule, and others another.

    Weights are constants, so that what requires a gradient is what depends on the image.

    Args:
        rules: What is called in place of a function of torch, with its arguments.
        without_rule: Nodes of torch's graph that are linear, but have a rule that was not followed.
    """

    def __init__(
        self, rules: Mapping[Callable[..., Any], Callable[..., Any]], without_rule: Collection[str] = ()
    ) -> None:
        super().__init__()
        self._rules, self.without_rule = {**_RULES, **rules}, without_rule

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Handles one call of torch; see ``TorchFunctionMode``."""
        given = [x if type(x) in _NO_WEIGHTS else _constant(x) for x in args]
        kwargs = {name: _constant(value) for name, value in kwargs.items()} if kwargs else {}
        return self._rules.get(func, func)(*given, **kwargs)


_NO_WEIGHTS = {Tensor, int, float, bool, str, type(None)}


def _constant(value: Any) -> Any:
    """A weight, alone or in a list, without gradient; anything else as it is."""
    if isinstance(value, nn.Parameter):
        return value.detach()
    return type(value)(map(_constant, value)) if type(value) in (list, tuple) else value


def depends(value: Any) -> bool:
    """Whether something is a tensor that depends on the image, within ``ModifiedBackward``."""
    return isinstance(value, Tensor) and value.requires_grad and not isinstance(value, nn.Parameter)


def _product(func: Callable[..., Tensor], input: Any, other: Any, **options: Any) -> Tensor:
    if not (depends(input) and depends(other)):
        return func(input, other, **options)
    first, second = ((one.numel(), not _is_gate(one)) for one in (input, other))
    in_place = func in _IN_PLACE
    if first > second:
        other = other.detach()
    elif first < second and not in_place:
        input = input.detach()
    y = func(input, other, **options)
    if first != second or in_place:
        return y
    _mark(y, "halved")  # each factor gets half of the gradient
    return y / 2 + y.detach() / 2


def _mark(y: Tensor, what: str) -> None:
    node: Any = y.grad_fn
    node.metadata[what] = True


def _quotient(func: Callable[..., Tensor], input: Any, other: Any, **options: Any) -> Tensor:
    return func(input, other.detach() if depends(other) else other, **options)


def _is_gate(x: Tensor) -> bool:
    """Whether a tensor is a curve of what a linear map gave and no activation, or one number for many places."""
    nodes: list[Any] = [x.grad_fn]
    for node in nodes:
        if node is None:
            continue
        name, inputs = node_name(node), [one for one, _ in node.next_functions]
        if name == "Expand" or "gate" in node.metadata or not (name in _FACTORS or _has_rule(node, inputs)):
            return True
        nodes += [one for one in inputs if one not in nodes] if name in _POINTWISE else []
    return False


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
        y, small = function(x), torch.full((1,), 1e-4, dtype=torch.float64, device="cpu")
        limit = (function(small) / small)[0].to(y.dtype)
        ctx.save_for_backward((y / x).masked_fill_(x == 0, limit))  # the gate, and its limit at 0
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return ctx.saved_tensors[0] * gradients[0], None


def _layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    return _LayerNorm.apply(input, normalized_shape, weight, bias, eps)


def _rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    with torch.no_grad():
        least = torch.finfo(input.dtype).eps if eps is None else eps
        x = input.to(torch.promote_types(input.dtype, torch.float32))
        inverse = x.square().mean(axes, keepdim=True).add_(least).rsqrt_().to(input.dtype)
    return input * inverse if weight is None else input * inverse * weight


def _normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: None = None) -> Tensor:
    return input / torch.linalg.vector_norm(input.detach(), p, dim, keepdim=True).clamp_min(eps)


def _pointwise(func: Callable[..., Tensor], input: Any, *arguments: Any, **options: Any) -> Tensor:
    if not depends(input):
        return func(input, *arguments, **options)
    options.pop("inplace", None)
    y: Tensor = _Activation.apply(input, lambda x: func(x, *arguments, **options))
    if func in _SIGMOIDAL:
        _mark(y, "gate")
    return y


_RULES: dict[Callable[..., Any], Callable[..., Any]] = {
    **dict.fromkeys((F.layer_norm, torch.layer_norm), _layer_norm),
    **dict.fromkeys((F.rms_norm, torch.rms_norm), _rms_norm),
    F.normalize: _normalize,
    **{func: partial(_pointwise, func) for func in (*_ACTIVATIONS, *_SIGMOIDAL)},
    **{func: partial(_product, func) for func in _PRODUCTS},
    **{func: partial(_quotient, func) for func in _QUOTIENTS},
}
