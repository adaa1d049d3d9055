"""What one pass of a network leaves behind, and how the values of its tokens lie on the grid of patches.

It keeps the queries, keys and values of every block, and no attention matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from vit_demo.model.resample import num_bytes


@dataclass
class Recording:
    """Passed to ``TracedViT.forward``, which fills it with views of tensors that the pass computes anyway.

    Keeping q, k and v costs O(N d) memory a block where the attention of all heads would cost O(H N^2), and leaves the
    forward on the fused kernel. Every attention value follows from them exactly: see ``vit_demo.methods``.

    Attributes:
        grid: Rows and columns of patches.
        num_prefix_tokens: Tokens before the first patch (class token, registers).
        q: One ``[B, H, N, d]`` tensor for each attention, such that ``softmax(q k^T / sqrt(d))`` is its matrix: masks
            and other scales are folded into q and k.
        k: As ``q``.
        v: ``[B, H, N, e]``.
        record_tokens: Whether to fill ``tokens``.
        tokens: The tokens before the first block and after each, ``[B, N, D]``; only with ``record_tokens``.
        kept_patches: ``[B, K]``: the patches that entered the sequence, if some were dropped; None for all.
        pooling: ``[B, P, N]``: what the query of attention pooling attends to after the last block, in each of its P
            heads; None where the head reads the tokens in another way.
    """

    grid: tuple[int, int] = (0, 0)
    num_prefix_tokens: int = 0
    q: list[Tensor] = field(default_factory=list)
    k: list[Tensor] = field(default_factory=list)
    v: list[Tensor] = field(default_factory=list)
    record_tokens: bool = False
    tokens: list[Tensor] = field(default_factory=list)
    kept_patches: Tensor | None = None
    pooling: Tensor | None = None

    def start(self, grid: tuple[int, int], num_prefix_tokens: int, kept_patches: Tensor | None = None) -> None:
        """Clears what an earlier pass left and notes the layout of this one."""
        self.grid, self.num_prefix_tokens, self.kept_patches = grid, num_prefix_tokens, kept_patches
        self.q, self.k, self.v, self.tokens, self.pooling = [], [], [], [], None

    def add(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        """Keeps the queries, keys and values of one attention."""
        self.q.append(q)
        self.k.append(k)
        self.v.append(v)

    def to(self, device: str) -> Recording:
        """A copy on another device."""
        q, k, v, tokens = ([tensor.to(device) for tensor in kept] for kept in (self.q, self.k, self.v, self.tokens))
        kept_patches, pooling = (None if x is None else x.to(device) for x in (self.kept_patches, self.pooling))
        return Recording(self.grid, self.num_prefix_tokens, q, k, v, self.record_tokens, tokens, kept_patches, pooling)

    @property
    def num_bytes(self) -> int:
        """Memory that the recording keeps alive; the views of one fused q, k, v map count once."""
        rest = [x for x in (self.kept_patches, self.pooling) if x is not None]
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


def to_grid(values: Tensor, trace: Recording) -> Tensor:
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
