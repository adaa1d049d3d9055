"""Products of two tensors, however they are written: all are read as an ``einsum`` equation."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

MATMUL: set[Callable[..., Any]] = {
    torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm, torch.mm, Tensor.mm,
}  # fmt: skip


def read_product(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Tensor], tuple[str, str, str] | None]:
    """The two operands of a product, their letters and those of its result; None for anything else."""
    if func is torch.einsum and args and isinstance(args[0], str):
        operands = list(args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:])
    elif func in MATMUL:
        operands = [*args, *(kwargs[name] for name in ("input", "other", "mat2") if name in kwargs)]
    else:
        return [], None
    if len(operands) != 2 or not all(isinstance(one, Tensor) for one in operands):
        return [], None
    return operands, _einsum(args[0], operands) if func is torch.einsum else _matmul(operands)


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
