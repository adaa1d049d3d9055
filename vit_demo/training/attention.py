"""Attention written out, for training on the CPU: the backward pass of its fused kernel is several times slower."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


class WrittenOutAttention(TorchFunctionMode):
    """While active, ``F.scaled_dot_product_attention(q, k, v)`` is computed as ``softmax(q k^T / sqrt(d)) v``.

    Only calls that need a gradient and have no mask, dropout or scale of their own are replaced.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Called by torch in place of each of its functions."""
        if func is F.scaled_dot_product_attention and len(args) == 3 and not kwargs and args[0].requires_grad:
            return _attention(*args)
        return func(*args, **(kwargs or {}))


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q * q.shape[-1] ** -0.5) @ k.mT  # [B, H, N, N]
    return scores.softmax(-1) @ v  # [B, H, N, d]
