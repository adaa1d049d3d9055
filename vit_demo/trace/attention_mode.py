"""Watches and replaces the attention of any network while it runs, without changing the network.

torch passes each of its functions through the modes that are active in a thread. So a mode sees every call of
``scaled_dot_product_attention`` and of ``multi_head_attention_forward``, and in networks that write attention out, each
softmax of scores and the product with the values that follows it (see ``written_out``).
"""

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.overrides import TorchFunctionMode

from vit_demo.model.resample import without_autocast
from vit_demo.trace.written_out import SOFTMAX, Follower, Product

LOWEST = -1e4
"""The score of what a mask excludes: finite, since minus infinity times 0 is not a number, and exp of it is 0."""

_OF_HEADS = inspect.signature(F.multi_head_attention_forward)


class AttentionMode(TorchFunctionMode):
    """Calls ``attend`` in place of each attention of the network that runs within it.

    Attributes:
        batch: Number of images; that of the first tensor with four axes that is no weight for None.
        follows: Whether attention may be written out, so that scores are followed.
        saw_softmax: Whether there was a softmax that may be attention's.
    """

    def __init__(self, batch: int | None = None, *, follows: bool = True) -> None:
        super().__init__()
        self.batch, self.follows, self.saw_softmax = batch, follows, False
        self._follower = Follower()
        self._needs_projection = False
        self.has_mask = False  # whether the attention that ``attend`` gets has one

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
        """Handles one call of torch; see ``TorchFunctionMode``.

        What a backward needs is kept, though the call be within ``torch.utils.checkpoint``, which would run it again.
        """
        if torch.compiler.is_compiling() or torch._C._autograd._top_saved_tensors_default_hooks(False) is None:
            return self._handle(func, args, kwargs or {})
        with saved_tensors_hooks(_as_it_is, _as_it_is):
            return self._handle(func, args, kwargs or {})

    def _handle(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.batch is None:
            tensors = (x for x in args if isinstance(x, Tensor) and not isinstance(x, nn.Parameter))
            self.batch = next((x.shape[0] for x in tensors if x.dim() == 4), None)
        if func is F.scaled_dot_product_attention:
            return self._fused(*args, **kwargs)
        if func is F.multi_head_attention_forward:
            return self._of_heads(func, args, kwargs)
        if not self.follows:
            return func(*args, **kwargs)
        if (product := self._follower.product(func, args, kwargs)) is not None:
            return self._product(product, partial(func, *args, **kwargs))
        if func is F.linear and self._needs_projection:
            self._needs_projection = False
            self.project(args[1])
        result = func(*args, **kwargs)
        if func in SOFTMAX:
            self._softmax(args, kwargs, result)
        else:
            self._follower.follow(func, args, kwargs, result)
            self._follower.multiplied(func, args, kwargs, result, self.batch or 1)
        return result

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
            return F.scaled_dot_product_attention(query, given, value, mask, **options)

        given = key
        self._needs_projection = True
        if query.dim() == 3 and self.batch and query.shape[0] % self.batch == 0 and attn_mask is None:
            heads = query.shape[0] // self.batch  # [B * H, N, d]
            query, key, value = (x.unflatten(0, (self.batch, heads)) for x in (query, key, value))
            return self._fused(query, key, value, None, **options).flatten(0, 1)
        if query.dim() != 4:
            return compute(None)
        self.has_mask = attn_mask is not None
        factor = self._follower.factor_of(key)  # the keys that are kept are those before it
        if factor != 1:
            key, scale = key / factor, factor * (query.shape[-1] ** -0.5 if scale is None else scale)
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

    def _softmax(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Tensor) -> None:
        scores = args[0] if args else kwargs["input"]
        axis = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
        if scores.dim() in (3, 4) and isinstance(axis, int):
            self.saw_softmax = True
            self._follower.start(result, scores, axis, self.batch or 1)

    def _product(self, product: Product, own: Callable[[], Tensor]) -> Tensor:
        """The product of a softmax with values; without keys the scores are queries, and each token has its own key."""
        scores, v = product.scores, product.values
        self._needs_projection = True

        def compute(extra: Tensor | None) -> Tensor:
            return product.canonical(own()) if extra is None else (scores + extra).softmax(-1).to(v.dtype) @ v

        if product.operands:
            self.has_mask = product.mask is not None
            q, k = fold(product.operands[0], product.operands[1], product.mask, 1.0)
            return product.original(self.attend(q, k, v, compute))
        n = scores.shape[-1]
        k = torch.eye(n, dtype=scores.dtype, device=scores.device).expand(*scores.shape[:2], n, n)
        # What a mask excludes has a score of minus infinity, or the lowest number there is.
        highest = scores.detach().amax(-1, keepdim=True)
        q = scores.maximum(highest.clamp_min(LOWEST) + LOWEST) * math.sqrt(n)
        self.has_mask = False
        return product.original(self.attend(q, k, v, compute))


def _as_it_is(x: Tensor) -> Tensor:
    return x


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
    bias = _as_bias(mask, torch.float32)
    bias = bias.masked_fill(bias < LOWEST, LOWEST).expand(*q.shape[:3], n)
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
