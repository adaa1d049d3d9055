"""What one forward pass leaves behind: the queries, keys and values of every block, and no attention matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from vit_demo.model.memory import num_bytes

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From q, k and v, each ``[B, H, N, d]``, to ``softmax(q k^T / sqrt(d)) v``."""


@dataclass
class Trace:
    """Handed to ``ViT.forward``, which fills it with views of tensors that the pass makes anyway.

    Keeping q, k and v costs O(N d) memory a block where the attention of all heads would cost O(H N^2), and leaves the
    forward on the fused kernel. Every attention value follows from them exactly: see ``vit_demo.methods``.

    Attributes:
        grid: Rows and columns of patches.
        num_prefix: Tokens before the first patch (class token, registers).
        q: One ``[B, H, N, d]`` tensor a block; the scale 1/sqrt(d) is not applied yet.
        k: As ``q``.
        v: As ``q``.
        full: Whether to keep ``o`` and ``x`` too: for gradients, and for what each depth would have said.
        o: What attention gave, before the output projection, one ``[B, H, N, d]`` a block.
        x: The tokens before the first block and after each, ``[B, N, D]``, before ``norm``.
        keep: ``[B, K]``: the patches that entered the sequence, where the pass was told which; None for all.
        attend: Does the work of the fused kernel in its stead, for whoever wants a backward of another kind.
    """

    grid: tuple[int, int] = (0, 0)
    num_prefix: int = 0
    q: list[Tensor] = field(default_factory=list)
    k: list[Tensor] = field(default_factory=list)
    v: list[Tensor] = field(default_factory=list)
    full: bool = False
    o: list[Tensor] = field(default_factory=list)
    x: list[Tensor] = field(default_factory=list)
    keep: Tensor | None = None
    attend: Attend | None = None

    def start(self, grid: tuple[int, int], num_prefix: int, keep: Tensor | None = None) -> None:
        """Forgets an earlier pass and notes the layout of this one."""
        self.grid, self.num_prefix, self.keep = grid, num_prefix, keep
        self.q, self.k, self.v, self.o, self.x = [], [], [], [], []

    def add(self, q: Tensor, k: Tensor, v: Tensor, o: Tensor) -> None:
        """Keeps one block's queries, keys and values, each ``[B, H, N, d]``, and its output if that is wanted."""
        self.q.append(q)
        self.k.append(k)
        self.v.append(v)
        if self.full:
            self.o.append(o)

    def add_tokens(self, x: Tensor) -> None:
        """Keeps the tokens ``[B, N, D]`` of one depth if they are wanted."""
        if self.full:
            self.x.append(x)

    def to(self, device: str) -> Trace:
        """A copy on another device."""
        q, k, v, o, x = ([tensor.to(device) for tensor in kept] for kept in (self.q, self.k, self.v, self.o, self.x))
        keep = None if self.keep is None else self.keep.to(device)
        return Trace(self.grid, self.num_prefix, q, k, v, self.full, o, x, keep)

    @property
    def num_bytes(self) -> int:
        """Memory that the trace keeps alive; the views of one fused q, k, v map count once."""
        rest = [] if self.keep is None else [self.keep]
        return num_bytes([*self.q, *self.k, *self.v, *self.o, *self.x, *rest])

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
