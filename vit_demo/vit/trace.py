"""What one forward pass leaves behind: the queries, keys and values of every block, and no attention matrix."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass
class Trace:
    """Handed to ``ViT.forward``, which fills it with views of tensors that the pass makes anyway.

    Keeping q, k and v costs O(N d) memory a block where the attention of all heads would cost O(H N^2), and leaves the
    forward on the fused kernel. Every attention value follows from them exactly: see ``vit_demo.explain``.

    Attributes:
        grid: Rows and columns of patches.
        num_prefix: Tokens before the first patch (class token, registers).
        q: One ``[B, H, N, d]`` tensor a block; the scale 1/sqrt(d) is not applied yet.
        k: As ``q``.
        v: As ``q``.
    """

    grid: tuple[int, int] = (0, 0)
    num_prefix: int = 0
    q: list[Tensor] = field(default_factory=list)
    k: list[Tensor] = field(default_factory=list)
    v: list[Tensor] = field(default_factory=list)

    def start(self, grid: tuple[int, int], num_prefix: int) -> None:
        """Forgets an earlier pass and notes the layout of this one."""
        self.grid, self.num_prefix = grid, num_prefix
        self.q, self.k, self.v = [], [], []

    def add(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        """Keeps one block's queries, keys and values, each ``[B, H, N, d]``."""
        self.q.append(q)
        self.k.append(k)
        self.v.append(v)

    def to(self, device: str) -> Trace:
        """A copy on another device."""
        q, k, v = ([tensor.to(device) for tensor in kept] for kept in (self.q, self.k, self.v))
        return Trace(self.grid, self.num_prefix, q, k, v)

    @property
    def num_blocks(self) -> int:
        """Blocks recorded."""
        return len(self.q)

    @property
    def num_heads(self) -> int:
        """Heads of a block."""
        return self.q[0].shape[1]

    @property
    def num_tokens(self) -> int:
        """Tokens of the sequence, prefix included."""
        return self.q[0].shape[2]
