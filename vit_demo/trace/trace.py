"""What one pass of a network leaves behind, and how the values of its tokens lie on the grid of patches.

It keeps the queries, keys and values of every block, and no attention matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import InitVar, dataclass, field
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.errors import InputError, PresetError
from vit_demo.model.resample import num_bytes
from vit_demo.trace.attention_mode import AttentionMode, attention_rows
from vit_demo.trace.reasons import NOT_SEEN, NOT_SHOWN
from vit_demo.trace.running import hooked
from vit_demo.trace.structure import first_of

OVERWRITTEN = "This network changes its queries, keys or values in place (x += ...): write x = x + ... instead."
SPLIT = "This network computes attention in parts of a batch: pass it one picture at a time."


@dataclass
class Trace:
    """The queries, keys and values of every self-attention of one pass, as the network computed them.

    Every attention value follows from them exactly; they cost O(N d) memory a block where the attention of all heads
    would cost O(H N^2), and the network stays on its fused kernel. ``TracedViT.forward`` fills a trace. Within a
    ``with`` block, a trace is filled by any network that runs there once, unmodified: of timm, transformers,
    torchvision, or your own; it then knows no patches.

    Args:
        blocks: Modules whose outputs a ``with`` block keeps as ``tokens``, such as ``model.blocks``.

    Attributes:
        grid: Rows and columns of patches.
        num_prefix_tokens: Tokens before the first patch (class token, registers).
        q: One ``[B, H, N, d]`` tensor for each attention, in the order in which they ran, such that
            ``softmax(q k^T / sqrt(d))`` is its matrix: masks and other scales are folded into q and k. Where a network
            writes its softmax out, these are its scores, and k has a key for each token.
        k: As ``q``.
        v: ``[B, H, N, e]``.
        record_tokens: Whether to fill ``tokens``.
        tokens: The tokens before the first block and after each, ``[B, N, D]``; only with ``record_tokens``. Of a
            ``with`` block, the outputs of ``blocks``; where blocks do not show theirs, the first and the last.
        kept_patches: ``[B, K]``: the patches that entered the sequence, if some were dropped; None for all.
        pooling: ``[B, P, N]``: what the query of attention pooling attends to after the last block, in each of its P
            heads; None where the head reads the tokens in another way.
        early: ``[B, blocks + 1, K]``: the logits that the head makes of the tokens before the first block and after
            each; None unless a result kept them.
        together: How many attentions after each other read the same tokens: those of a block with parallel branches.
        pooled: Of that query, in a pass with gradients, the values ``[B, P, N', e]`` and the output ``[B, P, 1, e]``.

    Example:
        >>> with vit_demo.Trace() as trace:
        ...     logits = model(images)
        >>> trace.attention(-1).shape
        torch.Size([1, 12, 197, 197])
    """

    blocks: InitVar[Iterable[nn.Module]] = ()
    grid: tuple[int, int] = (0, 0)
    num_prefix_tokens: int = 0
    q: list[Tensor] = field(default_factory=list)
    k: list[Tensor] = field(default_factory=list)
    v: list[Tensor] = field(default_factory=list)
    record_tokens: bool = False
    tokens: list[Tensor] = field(default_factory=list)
    kept_patches: Tensor | None = None
    pooling: Tensor | None = None
    early: Tensor | None = None
    together: int = 1

    def __post_init__(self, blocks: Iterable[nn.Module]) -> None:
        self._blocks, self._running = list(blocks), ExitStack()
        self.pooled: tuple[Tensor, Tensor] | None = None

    def __enter__(self) -> Trace:
        self.start((0, 0), 0)
        keep = hooked(self._blocks, leave=lambda *given: self.tokens.append(first_of(given[-1])))
        self._running.enter_context(keep)
        self._mode = self._running.enter_context(_Recorder(self))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: Any) -> None:
        """Ends the recording; ``PresetError`` if no attention was seen or kept whole, and nothing else was raised."""
        self._running.close()
        mode = self.__dict__.pop("_mode")
        if kind is None:
            mode.check()
        if kind is NotImplementedError and "FlexAttention" in str(error):  # which has no gradients on a CPU
            raise PresetError(NOT_SEEN) from error

    def attention(self, block: int = -1) -> Tensor:
        """The attention ``[B, H, N, N]`` of a block, float32; its rows sum to 1.

        Args:
            block: From 0; negative from the end.
        """
        return attention_rows(self.q[block], self.k[block])

    def start(self, grid: tuple[int, int], num_prefix_tokens: int, kept_patches: Tensor | None = None) -> None:
        """Clears what an earlier pass left and notes the layout of this one."""
        self.grid, self.num_prefix_tokens, self.kept_patches = grid, num_prefix_tokens, kept_patches
        self.q, self.k, self.v, self.tokens, self.pooling, self.early, self.pooled = [], [], [], [], None, None, None

    def add(self, q: Tensor, k: Tensor, v: Tensor, out: Tensor | None = None) -> None:
        """Keeps the queries, keys and values of a self-attention, and what a single query after them attends to."""
        if q.shape[2] == k.shape[2]:
            self.q.append(q)
            self.k.append(k)
            self.v.append(v)
        elif q.shape[2] == 1 and self.q:
            shares = attention_rows(q, k)[:, :, 0]
            self.pooling = F.pad(shares, (self.num_tokens - shares.shape[2], 0))  # prefix tokens that it leaves out
            self.pooled = (v, out) if out is not None and out.requires_grad else None

    def check_tokens(self) -> None:
        """Checks that the tokens of every depth were seen; ``InputError`` if they were not."""
        if len(self.tokens) <= self.num_blocks:
            raise InputError(NOT_SHOWN)

    def to(self, device: str) -> Trace:
        """A copy on another device."""
        q, k, v, tokens = ([tensor.to(device) for tensor in kept] for kept in (self.q, self.k, self.v, self.tokens))
        kept, *rest = (None if x is None else x.to(device) for x in (self.kept_patches, self.pooling, self.early))
        layout = (self.grid, self.num_prefix_tokens, q, k, v, self.record_tokens, tokens)
        return Trace((), *layout, kept, rest[0], rest[1], self.together)

    @property
    def num_bytes(self) -> int:
        """Memory that the trace keeps alive; the views of one fused q, k, v map count once."""
        rest = [x for x in (self.kept_patches, self.pooling, self.early) if x is not None]
        return num_bytes([*self.q, *self.k, *self.v, *self.tokens, *rest])

    @property
    def num_blocks(self) -> int:
        """Attentions recorded; one for each block, unless a block has several."""
        return len(self.q)

    @property
    def num_heads(self) -> int:
        """Heads of a block."""
        return self.q[0].shape[1]

    @property
    def num_tokens(self) -> int:
        """Tokens of the sequence, prefix included."""
        return self.q[0].shape[2]


class _Recorder(AttentionMode):
    """Fills a trace with the attention of a network of which nothing else is known."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace, self._versions = trace, list[tuple[Tensor, int]]()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, compute: Callable[[Tensor | None], Tensor]) -> Tensor:
        kept = [x.clone() if x.is_inference() else x for x in (q, k, v)]  # inference mode notices no change
        self._versions += [(x, x._version) for x in kept if not x.is_inference()]
        self._trace.add(*kept)
        return compute(None)

    def check(self) -> None:
        if not self._trace.q:
            raise PresetError(NOT_SEEN)
        if any(x._version != version for x, version in self._versions):
            raise PresetError(OVERWRITTEN)
        if min(len(q) for q in self._trace.q) < (self.batch or 1):
            raise PresetError(SPLIT)


def to_grid(values: Tensor, trace: Trace) -> Tensor:
    """Drops the prefix tokens of ``[..., N]`` and arranges the rest as ``[..., rows, cols]``.

    A dropped patch has no token: it neither attends nor is attended to, so its true value is 0.
    """
    return scatter_to_grid(values[..., trace.num_prefix_tokens :], trace.grid, trace.kept_patches)


def scatter_to_grid(values: Tensor, grid: tuple[int, int], kept_patches: Tensor | None) -> Tensor:
    """Puts the value of each patch in the sequence in its place on the grid.

    Args:
        values: ``[..., K]``, with the batch first where ``kept_patches`` has more than one row.
        grid: Rows and columns.
        kept_patches: ``[B, K]``: the patches of the sequence; None for all, row by row.

    Returns:
        ``[..., rows, cols]``, 0 where a patch is not in the sequence.
    """
    if kept_patches is None:
        return values.unflatten(-1, grid)
    if len(kept_patches) == 1:
        index = kept_patches[0].expand(values.shape)
    else:
        index = kept_patches.reshape(len(kept_patches), *[1] * (values.ndim - 2), -1).expand(values.shape)
    full = values.new_zeros(*values.shape[:-1], grid[0] * grid[1])
    return full.scatter(-1, index, values).unflatten(-1, grid)
