"""Attention that a network writes out itself, followed from the product of queries and keys to that with the values.

What stands between a product and the softmax, or the softmax and the other product, may change the layout, the type, or
multiply heads by numbers of their own; before the softmax it may also add something, as a mask. A layout is followed by
a tensor on torch's meta device, which has no values: the strides of its views say which axis is which. Where queries
and keys cannot be followed, the scores stand for the queries; what cannot be followed from the softmax on is not
recorded, and ``proof`` then refuses the network.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.trace.products import read_product

SOFTMAX: set[Callable[..., Any]] = {F.softmax, torch.softmax, Tensor.softmax, torch.special.softmax}
UNCHANGED: set[Callable[..., Any]] = {
    F.dropout, torch.dropout, Tensor.to, Tensor.type_as, Tensor.type, Tensor.float, Tensor.half, Tensor.bfloat16,
    Tensor.double, Tensor.contiguous, Tensor.clone, torch.clone,
}  # fmt: skip
"""Functions that in eval mode change at most the type of the numbers."""
VIEWS: set[Callable[..., Any]] = {
    Tensor.transpose, torch.transpose, Tensor.swapaxes, torch.swapaxes, Tensor.permute, torch.permute, Tensor.movedim,
    torch.movedim, Tensor.view, Tensor.reshape, torch.reshape, Tensor.flatten, torch.flatten, Tensor.unflatten,
    torch.unflatten, Tensor.unsqueeze, torch.unsqueeze, Tensor.squeeze, torch.squeeze,
    Tensor.mT.__get__, Tensor.T.__get__,  # type: ignore[attr-defined]
}  # fmt: skip
FACTORS: set[Callable[..., Any]] = {
    torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__, torch.div, Tensor.div, Tensor.__truediv__, Tensor.mul_,
    Tensor.div_,
}  # fmt: skip
SUMS: set[Callable[..., Any]] = {
    torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__, Tensor.add_, torch.sub, Tensor.sub, Tensor.sub_,
    torch.masked_fill, Tensor.masked_fill, Tensor.masked_fill_, torch.where, Tensor.where, Tensor.clamp, torch.clamp,
    Tensor.__setitem__,
}  # fmt: skip
"""Functions that may add a mask or positions to scores."""


@dataclass(frozen=True)
class Followed:
    """A tensor that holds the scores of all heads, or the attention, in some layout.

    Attributes:
        tensor: It is kept, so that no other gets its ``id``.
        shape: ``[B, H, Q, N]``.
        layout: A view of a tensor ``[B, H, Q, N]`` on the meta device, as the tensor is one of scores or attention.
        version: Of its values when it was made; None in inference mode, which counts none.
        factor: By which it was multiplied: a number, or one for each head, ``[B or 1, H or 1, 1, 1]``.
        operands: Before a softmax, queries ``[B, H, Q, d]`` and keys ``[B, H, N, d]``, or the opposite.
        is_masked: Whether there is more in these scores than the product of both and the factor.
        source: After a softmax, the same function for all that followed it; it gives what ``Product`` has of scores.
    """

    tensor: Tensor
    shape: torch.Size
    layout: Tensor
    version: int | None = None
    factor: Tensor | float = 1.0
    operands: tuple[Tensor, ...] = ()
    is_masked: bool = False
    source: Callable[[], tuple[Tensor, tuple[Tensor, ...], Tensor | None]] | None = None

    @property
    def axes(self) -> str | None:
        """A letter for each axis: batch, head, query, key, or g for batch and head in one; None if not known."""
        b, h, q, n = self.shape
        sizes = zip(self.layout.shape, self.layout.stride(), strict=True)
        found = [{(n, 1): "k", (q, 2 * n): "q"}.get(size, "") for size in sizes]
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
    Queries and keys, if known, have the scores ``q k^T``, to which ``mask`` is added, if it is not None.
    """

    scores: Tensor
    values: Tensor
    canonical: Callable[[Tensor], Tensor]
    original: Callable[[Tensor], Tensor]
    operands: tuple[Tensor, ...] = ()
    mask: Tensor | None = None


class Follower:
    """Knows which tensors of one pass hold scores or attention that no product with values has used yet."""

    def __init__(self) -> None:
        self._followed: dict[int, Followed] = {}
        self._scaled: dict[int, tuple[Tensor, int | None, float]] = {}  # by a number, with their version

    def start(self, result: Tensor, scores: Tensor, axis: int, batch: int) -> None:
        """Follows a softmax over ``axis`` of scores with axes for batch, heads, queries and keys, in some order."""
        if scores.dim() not in (3, 4) or (scores.dim() == 3 and scores.shape[0] % batch):
            return
        order, made = _order(scores, axis % scores.dim()), self._find(scores)
        source = partial(_source, scores, order, batch, made)
        shape = source()[0].shape
        layout = _layout(shape, merged=scores.dim() == 3).permute([order.index(i) for i in range(scores.dim())])
        if made is not None:
            self._followed = {i: x for i, x in self._followed.items() if x.operands is not made.operands}
        self._add(Followed(result, shape, layout, source=source))

    def follow(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Notes what a function of torch, if it is one of those above, makes of a followed tensor."""
        given = [*args, *kwargs.values()]
        changes = func is Tensor.__setitem__ or (bool(given) and result is given[0])  # in place, unless it is the same
        if func in UNCHANGED or func in VIEWS:
            factor = self.factor_of(given[0])
            if factor != 1:
                self._scale(result, factor)
            if (source := self._find(given[0])) is None:
                return
            if func in UNCHANGED:
                self._add(replace(source, tensor=result))
            else:
                with suppress(RuntimeError):  # of a view that the gaps between its axes do not allow
                    layout = func(source.layout, *args[1:], **{k: v for k, v in kwargs.items() if k != "input"})
                    if layout._is_view():  # a copy has other strides
                        self._add(replace(source, tensor=result, layout=layout))
        elif func in FACTORS and len(given) > 1:
            divides = "div" in func.__name__
            for x, factor in ((given[0], given[1]), (given[1], given[0]))[: 1 if divides else 2]:
                is_number = isinstance(factor, int | float) or (factor.numel() == 1 and not factor.is_meta)
                if isinstance(x, Tensor) and is_number and not changes:
                    self._scale(result, self.factor_of(x) * (1 / float(factor) if divides else float(factor)))
                source = self._find(x, changes)
                if source is not None and source.axes:
                    self._multiply(source, factor, divides, result)
        elif func in SUMS:
            source = next((one for x in given if (one := self._find(x, changes))), None)
            if source is not None and source.source is None:
                self._add(replace(source, tensor=source.tensor if changes else result, is_masked=True))

    def product(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Product | None:
        """What a function of torch multiplies, if it is a product of followed attention with values."""
        operands, letters = read_product(func, args, kwargs)
        found = [(i, one) for i, x in enumerate(operands) if (one := self._find(x)) and one.source and one.axes]
        if letters is None or not found:
            return None
        index, source = found[0]
        values = operands[1 - index]
        product = _product(source, values, letters[index], letters[1 - index], letters[2])
        if product is not None:
            self._followed = {i: one for i, one in self._followed.items() if one.source is not source.source}
        return product

    def multiplied(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, batch: int
    ) -> None:
        """Follows what a function of torch gave, if it may be the product of queries and keys."""
        operands, letters = read_product(func, args, kwargs)
        named = _named(letters) if letters else None
        if named is None or result.shape[0] % batch:
            return
        of_left, of_right, axes = named
        sizes = dict(zip(axes, result.shape, strict=True))
        outer = result.shape[0] if "b" in axes else batch
        shape = torch.Size((outer, result.numel() // (outer * sizes["q"] * sizes["k"]), sizes["q"], sizes["k"]))
        factors = [self.factor_of(x) for x in operands]
        q, k = _ordered(operands[0], of_left, "bhqd", shape), _ordered(operands[1], of_right, "bhkd", shape)
        q, k = ((x if f == 1 else x / f).expand(*shape[:2], -1, -1) for x, f in zip((q, k), factors, strict=True))
        layout = _layout(shape, merged="g" in axes)
        layout = layout.permute([("gqk" if "g" in axes else "bhqk").index(x) for x in axes])
        self._add(Followed(result, shape, layout, factor=factors[0] * factors[1], operands=(q, k)))

    def factor_of(self, x: Any) -> float:
        """The number by which a tensor was multiplied when it was made; 1 if by none."""
        tensor, version, factor = self._scaled.get(id(x), (None, None, 1.0))
        return factor if tensor is not None and version == _version(tensor) else 1.0

    def _scale(self, x: Tensor, factor: float) -> None:
        self._scaled[id(x)] = x, _version(x), factor
        if len(self._scaled) > 8:
            del self._scaled[next(iter(self._scaled))]

    def _find(self, x: Any, was_changed: bool = False) -> Followed | None:
        found = self._followed.get(id(x))
        if not found or (found.version is not None and found.version + was_changed != _version(found.tensor)):
            return None  # it was changed in place
        return found

    def _add(self, one: Followed) -> None:
        self._followed.pop(id(one.tensor), None)
        self._followed[id(one.tensor)] = replace(one, version=_version(one.tensor))
        if len(self._followed) > 8:  # products and softmaxes of something else
            del self._followed[next(iter(self._followed))]

    def _multiply(self, source: Followed, factor: Any, divides: bool, result: Tensor) -> None:
        axes = source.axes
        assert axes is not None
        if isinstance(factor, Tensor):
            if factor.dim() > len(axes):
                return
            factor = factor.reshape(*[1] * (len(axes) - factor.dim()), *factor.shape)
            if factor.shape[axes.index("q")] != 1 or factor.shape[axes.index("k")] != 1:
                return
            factor = _ordered(factor, axes, "bhqk", source.shape)
        elif not isinstance(factor, int | float):
            return
        self._add(replace(source, tensor=result, factor=source.factor / factor if divides else source.factor * factor))


def _order(scores: Tensor, axis: int) -> list[int]:
    """The axes of scores, of which a softmax is over ``axis``: batch, heads, queries, keys."""
    others = [i for i in range(1, scores.dim()) if i != axis]
    query = next((i for i in reversed(others) if scores.shape[i] == scores.shape[axis]), others[-1])
    return [0, *(i for i in others if i != query), query, axis]


def _source(
    scores: Tensor, order: list[int], batch: int, made: Followed | None
) -> tuple[Tensor, tuple[Tensor, ...], Tensor | None]:
    """What ``Product`` has of scores, which were ``made`` of queries and keys, if that is known.

    Called where gradients are on, later than the softmax, which may be in a ``torch.autograd.Function``.
    """
    ordered = scores.permute(order)
    ordered = ordered.unflatten(0, (batch, -1)) if scores.dim() == 3 else ordered
    axes = "".join(made.axes[i] for i in order) if made and made.axes else ""
    if made is None or axes not in ("gqk", "gkq", "bhqk", "bhkq"):
        return ordered, (), None
    q, k = made.operands if axes[-1] == "k" else made.operands[::-1]
    q = q * made.factor
    return ordered, (q, k), ordered - q @ k.mT if made.is_masked else None


def _named(letters: tuple[str, str, str]) -> tuple[str, str, str] | None:
    """The letters of a product of queries and keys, and of its result, by what the axes are; None for another."""
    left, right, output = map(set, letters)
    parts = (left & right) - output, left - right, right - left
    heads = [letter for letter in letters[2] if letter in left & right]
    if [len(part) for part in parts] != [1, 1, 1] or len(heads) not in (1, 2):
        return None
    names = {min(part): name for part, name in zip(parts, "dqk", strict=True)}
    names |= dict(zip(heads, "g" if len(heads) == 1 else "bh", strict=True))
    of_left, of_right, result = ("".join(names[letter] for letter in one) for one in letters)
    return of_left, of_right, result


def _layout(shape: torch.Size, *, merged: bool) -> Tensor:
    """A tensor ``[B, H, Q, N]`` on the meta device, or ``[B * H, Q, N]``; gaps keep queries and keys apart."""
    _, h, q, n = shape
    layout = torch.empty_strided(shape, (4 * h * q * n, 4 * q * n, 2 * n, 1), device="meta")
    return layout.flatten(0, 1) if merged else layout


def _version(x: Tensor) -> int | None:
    return None if x.is_inference() else x._version


def _product(source: Followed, values: Tensor, attention: str, others: str, output: str) -> Product | None:
    """Reads a product from the letters of attention, values and result."""
    axes, shape = source.axes, source.shape
    assert axes is not None and source.source is not None
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

    scores, operands, mask = source.source()
    return Product(scores, v, lambda x: _ordered(x, of_output, "bhqe", shape), original, operands, mask)


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
