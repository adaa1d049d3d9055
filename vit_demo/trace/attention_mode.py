"""Watches and replaces the attention of any network while it runs, without changing the network.

torch passes each of its functions through the modes that are active in a thread. So a mode sees every call of
``scaled_dot_product_attention`` and of ``multi_head_attention_forward``, and in networks that write attention out, each
softmax over ``[B, H, N, N]`` and the product with the values that follows it.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from vit_demo.model.resample import without_autocast

LOWEST = -1e4
"""The score of what a mask excludes: finite, since minus infinity times 0 is not a number, and exp of it is 0."""

SOFTMAX: set[Callable[..., Any]] = {F.softmax, torch.softmax, Tensor.softmax}
PRODUCT = {torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm}
UNCHANGED = {F.dropout, torch.dropout, Tensor.to, Tensor.type_as}
"""What may stand between the softmax and the product; in eval mode it changes at most the type of the numbers."""

_OF_HEADS = inspect.signature(F.multi_head_attention_forward)


class AttentionMode(TorchFunctionMode):
    """Calls ``attend`` in place of each attention of the network that runs within it."""

    def __init__(self) -> None:
        super().__init__()
        self._scores: Tensor | None = None
        self._attention: Tensor | None = None
        self._needs_projection = False
        self.given: tuple[Tensor, Tensor, Tensor, Tensor | None, float]
        """Of the attention that ``attend`` gets: q, k, v, mask and scale as the network gave them."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, compute: Callable[[Tensor | None], Tensor]) -> Tensor:
        """One attention of the network, ``softmax(q k^T / sqrt(d)) v``; mask and scale are folded into q and k.

        Args:
            q: ``[B, H, Q, d]``.
            k: ``[B, H, N, d]``.
            v: ``[B, H, N, e]``.
            compute: The network's own kernel, given scores to add (which broadcast to ``[B, H, Q, N]``) or None.

        Returns:
            ``[B, H, Q, e]``.
        """
        return compute(None)

    def project(self, weight: Tensor) -> None:
        """The first linear map after an attention: its output projection, ``[D, H * e]``."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Handles one call of torch; see ``TorchFunctionMode``."""
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return self._fused(*args, **kwargs)
        if func is F.multi_head_attention_forward:
            return self._of_heads(func, args, kwargs)
        if func in SOFTMAX:
            return self._softmax(func, args, kwargs)
        if self._attention is not None:
            if func in PRODUCT and args[0] is self._attention:
                return self._product(func, args[1])
            if func is torch.einsum and len(args) == 3 and args[1] is self._attention:
                return self._product(lambda a, v: func(args[0], a, v), args[2])
            if func in UNCHANGED and args[0] is self._attention:
                self._attention = func(*args, **kwargs)
                return self._attention
        if func is F.linear and self._needs_projection:
            self._needs_projection = False
            self.project(args[1])
        return func(*args, **kwargs)

    def _fused(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        options: dict[str, Any] = {"dropout_p": dropout_p, "scale": scale, "enable_gqa": enable_gqa}
        if is_causal:
            attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()

        def compute(extra: Tensor | None) -> Tensor:
            mask = attn_mask
            if extra is not None:
                mask = extra.to(query.dtype) + (0 if attn_mask is None else _as_bias(attn_mask, query.dtype))
            return F.scaled_dot_product_attention(query, key, value, mask, **options)

        self._needs_projection = True
        if query.dim() != 4:
            return compute(None)
        self.given = query, key, value, attn_mask, query.shape[-1] ** -0.5 if scale is None else scale
        q, k = fold(query, key, attn_mask, scale)
        return self.attend(q, k, _repeat_heads(value, query), compute)

    def _of_heads(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``torch.nn.MultiheadAttention``'s function, by the four steps it consists of."""
        given = _OF_HEADS.bind(*args, **kwargs)
        given.apply_defaults()
        a = given.arguments
        is_plain = a["in_proj_weight"] is not None and a["query"].dim() == 3 and a["key_padding_mask"] is None
        if not is_plain or a["bias_k"] is not None or a["add_zero_attn"] or a["use_separate_proj_weight"]:
            return func(*args, **kwargs)
        weights = a["in_proj_weight"].chunk(3)
        biases = [None] * 3 if a["in_proj_bias"] is None else a["in_proj_bias"].chunk(3)
        sources = (a["query"], a["key"], a["value"])  # each [N, B, D]
        q, k, v = (
            F.linear(x, w, b).unflatten(2, (a["num_heads"], -1)).permute(1, 2, 0, 3)  # [B, H, N, d]
            for x, w, b in zip(sources, weights, biases, strict=True)
        )
        out = self._fused(q, k, v, a["attn_mask"], a["dropout_p"] if a["training"] else 0.0)  # [B, H, Q, d]
        self._needs_projection = False
        self.project(a["out_proj_weight"])
        weights = None
        if a["need_weights"]:
            weights = attention_rows(*fold(q, k, a["attn_mask"], None)).type_as(v)  # [B, H, Q, N]
            weights = weights.mean(1) if a["average_attn_weights"] else weights
        return F.linear(out.permute(2, 0, 1, 3).flatten(2), a["out_proj_weight"], a["out_proj_bias"]), weights

    def _softmax(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        result, scores = func(*args, **kwargs), args[0]
        axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if scores.dim() == 4 and axis in (-1, 3):
            self._scores, self._attention = scores, result
        return result

    def _product(self, func: Callable[..., Any], v: Tensor) -> Tensor:
        """The product of a softmax with values: with the scores as queries, and a key of its own for each token."""
        scores, attention = self._scores, self._attention
        assert scores is not None and attention is not None
        self._scores = self._attention = None
        self._needs_projection = True

        def compute(extra: Tensor | None) -> Tensor:
            return func(attention if extra is None else (scores + extra).softmax(-1).to(attention.dtype), v)

        n = scores.shape[-1]
        k = torch.eye(n, dtype=scores.dtype, device=scores.device).expand(*scores.shape[:2], n, n)
        q = scores * math.sqrt(n)
        self.given = q, k, v, None, n**-0.5
        return self.attend(q, k, v, compute)


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    """``q k^T / sqrt(d)``, of which the softmax is the attention; arguments as in ``attention_rows``."""
    with without_autocast(q.device):
        return (q.float() * q.shape[-1] ** -0.5) @ k.float().mT


def attention_rows(q: Tensor, k: Tensor) -> Tensor:
    """Attention of some queries over all tokens.

    Args:
        q: ``[..., Q, d]``, not scaled yet.
        k: ``[..., N, d]``.

    Returns:
        ``[..., Q, N]`` float32; each row sums to 1.
    """
    return attention_scores(q, k).softmax(-1)


def fold(q: Tensor, k: Tensor, mask: Tensor | None, scale: float | None) -> tuple[Tensor, Tensor]:
    """Queries and keys of the same attention without a mask and with the scale ``1 / sqrt(d)``.

    A mask adds a number to each score. That is the product of a query that holds its row of the mask, and a key that is
    1 at its own place: ``[q, mask] [k, I]^T``.

    Args:
        q: ``[B, H, Q, d]``.
        k: ``[B, G, N, d]``, G a divisor of H.
        mask: As of ``scaled_dot_product_attention``.
        scale: As there.

    Returns:
        Both with the heads of q; ``d + N`` wide with a mask.
    """
    k = _repeat_heads(k, q)
    d, n = q.shape[-1], k.shape[-2]
    factor = d**-0.5 if scale is None else scale
    if mask is None:
        return (q if math.isclose(factor, d**-0.5) else q * (factor * d**0.5)), k
    bias = _as_bias(mask, torch.float32).clamp_min(LOWEST).expand(*q.shape[:3], n)
    identity = torch.eye(n, dtype=torch.float32, device=k.device).expand(*k.shape[:2], n, n)
    return torch.cat([q.float() * factor, bias], 3) * math.sqrt(d + n), torch.cat([k.float(), identity], 3)


def _as_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask as numbers to add to the scores."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, LOWEST)


def _repeat_heads(x: Tensor, q: Tensor) -> Tensor:
    """Keys or values ``[B, G, N, d]`` for each head of the queries (grouped queries)."""
    groups = q.shape[1] // x.shape[1]
    return x if groups == 1 else x.repeat_interleave(groups, 1)
