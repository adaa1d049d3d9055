"""Records the attention of any Vision Transformer that runs within a ``with`` block."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import TracebackType

import torch
from torch import Tensor

from vit_demo.errors import PresetError
from vit_demo.trace.attention_mode import AttentionMode, fold
from vit_demo.trace.structure import NOT_SEEN


class Trace(AttentionMode):
    """The queries, keys and values of every self-attention, as the network computed them; nothing is copied.

    Within the block one network runs once, unmodified: of timm, transformers, torchvision, or your own. What it returns
    stays the same. A network that writes its softmax out has its scores as queries, and a key for each token.

    Attributes:
        q: One ``[B, H, N, d]`` tensor for each self-attention, in the order in which they ran.
        k: As ``q``; with fewer heads where queries share them.
        v: As ``k``.
        mask: What is added to the scores, or which of them count; None for most networks.
        scale: What the scores are multiplied by.
        pooling: ``[B, N]``: the share of each token where one query attends to all at the end; else None.

    Example:
        >>> with vit_demo.Trace() as trace:
        ...     logits = model(images)
        >>> trace.attention(-1).shape
        torch.Size([1, 12, 197, 197])
    """

    def __init__(self) -> None:
        super().__init__()
        self.q: list[Tensor] = []
        self.k: list[Tensor] = []
        self.v: list[Tensor] = []
        self.mask: list[Tensor | None] = []
        self.scale: list[float] = []
        self.pooling: Tensor | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends the recording.

        Raises:
            PresetError: If no attention was seen, and nothing else was raised.
        """
        super().__exit__(kind, error, traceback)
        if kind is None and not self.q:
            raise PresetError(NOT_SEEN)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, compute: Callable[[Tensor | None], Tensor]) -> Tensor:
        """Records one attention, and lets the network compute it."""
        if q.shape[2] == k.shape[2]:
            query, key, value, mask, scale = self.given
            for into, what in zip((self.q, self.k, self.v), (query, key, value), strict=True):
                into.append(what)
            self.mask.append(mask)
            self.scale.append(scale)
        elif q.shape[2] == 1:
            self.pooling = attention(q, k).mean(1)[:, 0]
        return compute(None)

    def attention(self, block: int = -1) -> Tensor:
        """The attention ``[B, H, N, N]`` of one of them, float32; its rows sum to 1.

        Args:
            block: From 0; negative from the end.
        """
        return attention(*fold(self.q[block], self.k[block], self.mask[block], self.scale[block]))


def attention(q: Tensor, k: Tensor) -> Tensor:
    """``softmax(q k^T / sqrt(d))`` in float32."""
    kind = q.device.type
    with torch.autocast(kind, enabled=False) if torch.amp.is_autocast_available(kind) else nullcontext():
        return (q.float() * q.shape[-1] ** -0.5 @ k.float().mT).softmax(-1)
