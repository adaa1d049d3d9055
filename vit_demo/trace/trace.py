"""Records the attention of any Vision Transformer that runs within a ``with`` block."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from vit_demo.errors import PresetError
from vit_demo.trace.attention_mode import AttentionMode, attention_rows, fold
from vit_demo.trace.structure import NOT_SEEN


class Trace(AttentionMode):
    """The queries, keys and values of every self-attention, as the network computed them; nothing is copied.

    Within the block one network runs once, unmodified: of timm, transformers, torchvision, or your own. What it returns
    stays the same. A network that writes its softmax out has its scores as queries, and a key for each token.

    Args:
        blocks: Modules whose outputs are wanted, such as ``model.blocks``.

    Attributes:
        q: One ``[B, H, N, d]`` tensor for each self-attention, in the order in which they ran.
        k: As ``q``; with fewer heads where queries share them.
        v: As ``k``.
        mask: What is added to the scores, or which of them count; None for most networks.
        scale: What the scores are multiplied by.
        pooling: ``[B, N]``: the share of each token where one query attends to all at the end; else None.
        tokens: The outputs of ``blocks``, ``[B, N, D]`` each, in the order in which they ran.

    Example:
        >>> with vit_demo.Trace() as trace:
        ...     logits = model(images)
        >>> trace.attention(-1).shape
        torch.Size([1, 12, 197, 197])
    """

    def __init__(self, blocks: Iterable[nn.Module] = ()) -> None:
        super().__init__()
        self._blocks, self._handles = list(blocks), list[RemovableHandle]()
        self.tokens: list[Tensor] = []
        self.q: list[Tensor] = []
        self.k: list[Tensor] = []
        self.v: list[Tensor] = []
        self.mask: list[Tensor | None] = []
        self.scale: list[float] = []
        self.pooling: Tensor | None = None

    def __enter__(self) -> Trace:
        thread = threading.get_ident()  # others may run the same network meanwhile

        def keep(_: nn.Module, args: Any, output: Any) -> None:
            if threading.get_ident() == thread:
                self.tokens.append(output[0] if isinstance(output, tuple) else output)

        self._handles = [block.register_forward_hook(keep) for block in self._blocks]
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends the recording; ``PresetError`` if no attention was seen, and nothing else was raised."""
        super().__exit__(kind, error, traceback)
        for handle in self._handles:
            handle.remove()
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
            self.pooling = attention_rows(q, k).mean(1)[:, 0]
        return compute(None)

    def attention(self, block: int = -1) -> Tensor:
        """The attention ``[B, H, N, N]`` of one of them, float32; its rows sum to 1.

        Args:
            block: From 0; negative from the end.
        """
        return attention_rows(*fold(self.q[block], self.k[block], self.mask[block], self.scale[block]))
