"""The slow way to a network's attention: every matrix written out, to compare with."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


class Explicit(TorchFunctionMode):
    """Every attention of a network as a matrix, with its graph, and that of pooling; the network computes with it."""

    def __init__(self, dropped: Tensor | None = None) -> None:
        super().__init__()
        self.matrices: list[Tensor] = []
        self.pooling: list[Tensor] = []  # [B, P, 1, N]
        self.dropped = dropped  # [N], true where no token may look

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return self._attention(*args, **kwargs)
        if func is F.multi_head_attention_forward:
            *given, _, heads, weight, bias, _, _, _, _, out_weight, out_bias = args  # q, k, v: [N, B, D]
            maps = zip(given, weight.chunk(3), bias.chunk(3), strict=True)
            q, k, v = (F.linear(x, w, b).unflatten(2, (heads, -1)).permute(1, 2, 0, 3) for x, w, b in maps)
            out = self._attention(q, k, v)  # [B, H, N, d]
            return F.linear(out.permute(2, 0, 1, 3).flatten(2), out_weight, out_bias), None
        result = func(*args, **kwargs)
        if func in (F.softmax, torch.softmax, Tensor.softmax) and result.dim() == 4:
            self._keep(result)
        return result

    def _attention(
        self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
    ) -> Tensor:
        scores = (q * (q.shape[-1] ** -0.5 if scale is None else scale)) @ k.mT
        if attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
        if self.dropped is not None and q.shape[2] == k.shape[2]:
            scores = scores.masked_fill(self.dropped, -torch.inf)
        matrix = scores.softmax(-1)
        self._keep(matrix)
        return matrix @ v

    def _keep(self, matrix: Tensor) -> None:
        if matrix.shape[-1] == matrix.shape[-2]:
            self.matrices.append(matrix)
        elif matrix.shape[-2] == 1:
            self.pooling.append(matrix)

    def relevance(self, score: Tensor, shares: Tensor, together: int = 1) -> Tensor:
        """Chefer's rule, from the shares ``[B, N]`` of the last tokens in what the head reads beside pooling.

        ``together`` attentions of a block read the same tokens. The shares themselves are left out.
        """
        both = [*self.pooling, *self.matrices]
        slopes = torch.autograd.grad(score, both, materialize_grads=True)
        passed = [(one * slope).relu().mean(1) for one, slope in zip(both, slopes, strict=True)]
        row, blocks = shares.to(score), passed[len(self.pooling) :]
        for one in passed[: len(self.pooling)]:
            row = row + F.pad(one[:, 0], (shares.shape[1] - one.shape[2], 0))
        for first in reversed(range(0, len(blocks), together)):
            row = row + (row[:, None] @ torch.stack(blocks[first : first + together]).sum(0))[:, 0]
        return (row - shares).detach()
