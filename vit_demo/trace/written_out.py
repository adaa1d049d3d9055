"""Attention that a network writes out itself, followed from its softmax to the product with the values.

What stands between the two may change the layout, the type, or multiply heads by numbers of their own. A layout is
followed by a tensor on torch's meta device, which has no values: the strides of its views say which axis is which. The
product is read as an ``einsum`` equation. What cannot be followed is not recorded, and ``proof`` then refuses the
network.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

SOFTMAX: set[Callable[..., Any]] = {F.softmax, torch.softmax, Tensor.softmax, torch.special.softmax}
UNCHANGED: set[Callable[..., Any]] = {
    F.dropout, torch.dropout, Tensor.to, Tensor.type_as, Tensor.type, Tensor.float, Tensor.half, Tensor.bfloat16,
    Tensor.double, Tensor.contiguous, Tensor.clone, torch.clone,
}  # fmt: skip
"""In eval mode they change at most the type of the numbers."""
VIEWS: set[Callable[..., Any]] = {
    Tensor.transpose, torch.transpose, Tensor.swapaxes, torch.swapaxes, Tensor.permute, torch.permute, Tensor.movedim,
    torch.movedim, Tensor.view, Tensor.reshape, torch.reshape, Tensor.flatten, torch.flatten, Tensor.unflatten,
    torch.unflatten, Tensor.unsqueeze, torch.unsqueeze, Tensor.squeeze, torch.squeeze,
    Tensor.mT.__get__, Tensor.T.__get__,  # type: ignore[attr-defined]
}  # fmt: skip
FACTORS: set[Callable[..., Any]] = {
    torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__, torch.div, Tensor.div, Tensor.__truediv__,
}  # fmt: skip
MATMUL: set[Callable[..., Any]] = {torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm}


@dataclass(frozen=True)
class Followed:
    """A tensor that holds the attention of all heads, in some layout.

    Attributes:
        tensor: It is kept, so that no other gets its ``id``.
        version: Of its values when it was made; None in inference mode, which counts none.
        scores: ``[B, H, Q, N]``, of which the attention is the softmax.
        layout: A view of a tensor ``[B, H, Q, N]`` on the meta device, as the tensor is one of the attention.
        factor: By which it was multiplied: a number, or one for each head, ``[B or 1, H or 1, 1, 1]``.
    """

    tensor: Tensor
    version: int | None
    scores: Tensor
    layout: Tensor
    factor: Tensor | float = 1.0

    @property
    def axes(self) -> str | None:
        """A letter for each axis: batch, head, query, key, or g for batch and head in one; None if not known."""
        b, h, q, n = self.scores.shape
        found: list[str] = []
        for size, stride in zip(self.layout.shape, self.layout.stride(), strict=True):
            found.append("k" if (size, stride) == (n, 1) else "q" if (size, stride) == (q, 2 * n) else "")
        rest = [i for i, letter in enumerate(found) if not letter]
        if len(found) == 3 and len(rest) == 1 and self.layout.shape[rest[0]] == b * h:
            found[rest[0]] = "g"
        elif len(found) == 4 and len(rest) == 2:
            # With one head, both have the same stride: then the batch is the axis of its size.
            first = max(rest, key=lambda i: (self.layout.stride(i), self.layout.shape[i] == b))
            found[first], found[sum(rest) - first] = "b", "h"
        letters = "".join(found)
        return letters if sorted(letters) in (["b", "h", "k", "q"], ["g", "k", "q"]) else None


@dataclass(frozen=True)
class Product:
    """A product of attention with values ``[B, H, N, e]``, factors of heads included.

    ``canonical`` brings what the network's own product returns to ``[B, H, Q, e]``, ``original`` does the opposite.
    """

    scores: Tensor
    values: Tensor
    canonical: Callable[[Tensor], Tensor]
    original: Callable[[Tensor], Tensor]


class Follower:
    """Knows which tensors of one pass hold attention that no product has used yet."""

    def __init__(self) -> None:
        self._followed: dict[int, Followed] = {}

    def start(self, result: Tensor, scores: Tensor, axis: int, batch: int) -> None:
        """Follows a softmax over ``axis`` of scores with axes for batch, heads, queries and keys, in some order."""
        if scores.dim() not in (3, 4) or (scores.dim() == 3 and scores.shape[0] % batch):
            return
        axis %= scores.dim()
        others = [i for i in range(1, scores.dim()) if i != axis]
        query = next((i for i in reversed(others) if scores.shape[i] == scores.shape[axis]), others[-1])
        order = [0, *(i for i in others if i != query), query, axis]
        ordered = scores.permute(order)
        if scores.dim() == 3:
            ordered = ordered.unflatten(0, (batch, -1))
        b, h, q, n = ordered.shape
        strides = 4 * h * q * n, 4 * q * n, 2 * n, 1  # gaps keep queries and keys apart
        layout = torch.empty_strided((b, h, q, n), strides, device="meta")
        if scores.dim() == 3:
            layout = layout.flatten(0, 1)
        if len(self._followed) > 8:  # of a softmax that no product followed
            self._followed.clear()
        self._add(Followed(result, None, ordered, layout.permute([order.index(i) for i in range(scores.dim())])))

    def follow(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Notes what a function of torch, if it is one of those above, makes of a followed tensor."""
        source = self._find(args[0] if args else kwargs.get("input"))
        if func in UNCHANGED and source:
            self._add(replace(source, tensor=result))
        elif func in VIEWS and source:
            with suppress(RuntimeError):  # of a view that the gaps between its axes do not allow
                layout = func(source.layout, *args[1:], **{k: v for k, v in kwargs.items() if k != "input"})
                if layout._is_view():  # a copy has other strides
                    self._add(replace(source, tensor=result, layout=layout))
        elif func in FACTORS:
            operands = [*args, *kwargs.values()]
            is_first = source is not None
            if not is_first and "div" not in func.__name__ and len(operands) > 1:
                source = self._find(operands[1])
            if source is not None and len(operands) > 1 and source.axes:
                self._multiply(source, operands[1] if is_first else operands[0], "div" in func.__name__, result)

    def product(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Product | None:
        """What a function of torch multiplies, if it is a product of followed attention with values."""
        if func is torch.einsum and args and isinstance(args[0], str):
            operands = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
        elif func in MATMUL:
            operands = [*args, *(kwargs[name] for name in ("input", "other", "mat2") if name in kwargs)]
        else:
            return None
        if len(operands) != 2 or not all(isinstance(one, Tensor) for one in operands):
            return None
        index = next((i for i in (0, 1) if id(operands[i]) in self._followed), None)
        if index is None or (source := self._find(operands[index])) is None or not source.axes:
            return None
        values = operands[1 - index]
        letters = _einsum(args[0], operands) if func is torch.einsum else _matmul(operands)
        if letters is None:
            return None
        product = _product(source, values, letters[index], letters[1 - index], letters[2])
        if product is not None:
            self._followed = {i: one for i, one in self._followed.items() if one.scores is not source.scores}
        return product

    def _find(self, x: Any) -> Followed | None:
        found = self._followed.get(id(x))
        return found if found and found.version == _version(found.tensor) else None  # or it was changed in place

    def _add(self, one: Followed) -> None:
        self._followed[id(one.tensor)] = replace(one, version=_version(one.tensor))

    def _multiply(self, source: Followed, factor: Any, divides: bool, result: Tensor) -> None:
        axes = source.axes
        assert axes is not None
        if isinstance(factor, Tensor):
            if factor.dim() > len(axes):
                return
            factor = factor.reshape(*[1] * (len(axes) - factor.dim()), *factor.shape)
            if factor.shape[axes.index("q")] != 1 or factor.shape[axes.index("k")] != 1:
                return
            factor = _ordered(factor, axes, "bhqk", source.scores.shape)
        elif not isinstance(factor, int | float):
            return
        self._add(replace(source, tensor=result, factor=source.factor / factor if divides else source.factor * factor))


def _version(x: Tensor) -> int | None:
    return None if x.is_inference() else x._version


def _matmul(operands: Any) -> tuple[str, str, str] | None:
    """The letters of both operands of a matrix product, and those of its result."""
    left, right = (one.dim() for one in operands)
    if min(left, right) < 2 or max(left, right) > 6:
        return None
    batch = "ABCD"[: max(left, right) - 2]
    return batch[len(batch) - left + 2 :] + "xy", batch[len(batch) - right + 2 :] + "yz", batch + "xz"


def _einsum(equation: str, operands: Any) -> tuple[str, str, str] | None:
    """The same of an ``einsum`` of two operands."""
    equation = equation.replace(" ", "")
    inputs, arrow, output = equation.partition("->")
    if inputs.count(",") != 1:
        return None
    parts = inputs.split(",")
    counts = [x.dim() - len(part.replace("...", "")) for part, x in zip(parts, operands, strict=True)]
    more = "0123456789"[: max((n for n, part in zip(counts, parts, strict=True) if "..." in part), default=0)]
    left, right = (p.replace("...", more[len(more) - n :]) for p, n in zip(parts, counts, strict=True))
    if not arrow:
        output = "..." + "".join(sorted(x for x in set(left + right) - set(more) if (left + right).count(x) == 1))
    return left, right, output.replace("...", more)


def _product(source: Followed, values: Tensor, attention: str, others: str, output: str) -> Product | None:
    """Reads a product from the letters of attention, values and result."""
    axes, shape = source.axes, source.scores.shape
    assert axes is not None
    known = dict(zip(attention, axes, strict=True))
    rest = [letter for letter in others if letter not in known]
    if len(rest) != 1 or len(known) != len(attention) or len(set(others)) != len(others):
        return None
    known[rest[0]] = "e"
    of_values, of_output = ("".join(known.get(letter, "?") for letter in text) for text in (others, output))
    if "k" not in of_values or "q" in of_values or sorted(of_output) != sorted(axes.replace("k", "e")):
        return None
    v = _ordered(values, of_values, "bhke", shape)
    v = v.expand(*shape[:2], *v.shape[2:])
    if not isinstance(source.factor, float) or source.factor != 1:
        v = v * source.factor

    def original(x: Tensor) -> Tensor:
        letters = "bhqe"
        if "g" in of_output:
            x, letters = x.flatten(0, 1), "gqe"
        return x.permute([letters.index(letter) for letter in of_output])

    return Product(source.scores, v, lambda x: _ordered(x, of_output, "bhqe", shape), original)


def _ordered(x: Tensor, axes: str, order: str, shape: torch.Size) -> Tensor:
    """A tensor whose axes have letters, with all four of ``order``; those that it lacks have size 1."""
    if "g" in axes:
        at = axes.index("g")
        x = x.unflatten(at, (1, 1) if x.shape[at] == 1 else shape[:2])
        axes = axes.replace("g", "bh")
    for letter in order:
        if letter not in axes:
            x, axes = x[None], letter + axes
    return x.permute([axes.index(letter) for letter in order])
