"""What one forward pass leaves behind: the queries, keys and values of every block, and no attention matrix."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from vit_demo.model.memory import num_bytes


@dataclass
class Trace:
    """Passed to ``ViT.forward``, which fills it with views of tensors that the pass computes anyway.

    Keeping q, k and v costs O(N d) memory a block where the attention of all heads would cost O(H N^2), and leaves the
    forward on the fused kernel. Every attention value follows from them exactly: see ``vit_demo.methods``.

    With ``record_tokens``, ``out`` holds the intermediates of the pass under the names that big_vision gives them:

    ===================  =====================  =========================================================
    name                 shape                  what
    ===================  =====================  =========================================================
    ``stem``             ``[B, rows*cols, D]``  the patch embedding, of all patches
    ``with_posemb``      ``[B, N, D]``          the tokens before the first block: prefix and positions added
    ``block00/+sa``      ``[B, N, D]``          after the self-attention of block 0 and its residual
    ``block00/+mlp``     ``[B, N, D]``          after the MLP of block 0 and its residual
    ``encoded``          ``[B, N, D]``          after the last block and ``norm``
    ``pre_logits``       ``[B, num_features]``  the pooled vector that the head reads
    ``logits``           ``[B, num_classes]``   the output
    ===================  =====================  =========================================================

    What a branch adds to the tokens is the difference between its entry and the one before.

    Attributes:
        grid: Rows and columns of patches.
        num_prefix_tokens: Tokens before the first patch (class token, registers).
        q: One ``[B, H, N, d]`` tensor a block; the scale 1/sqrt(d) is not applied yet.
        k: As ``q``.
        v: As ``q``.
        record_tokens: Whether to fill ``out``.
        out: Intermediates by name; empty without ``record_tokens``.
        kept_patches: ``[B, K]``: the patches that entered the sequence, if some were dropped; None for all.
        pooling: ``[B, N]``: the share of each token in what the head reads, if one query attends to them at the end
            (attention pooling); None otherwise.
    """

    grid: tuple[int, int] = (0, 0)
    num_prefix_tokens: int = 0
    q: list[Tensor] = field(default_factory=list)
    k: list[Tensor] = field(default_factory=list)
    v: list[Tensor] = field(default_factory=list)
    record_tokens: bool = False
    out: dict[str, Tensor] = field(default_factory=dict)
    kept_patches: Tensor | None = None
    pooling: Tensor | None = None

    def start(self, grid: tuple[int, int], num_prefix_tokens: int, kept_patches: Tensor | None = None) -> None:
        """Clears what an earlier pass left and notes the layout of this one."""
        self.grid, self.num_prefix_tokens, self.kept_patches = grid, num_prefix_tokens, kept_patches
        self.q, self.k, self.v, self.out, self.pooling = [], [], [], {}, None

    def record_qkv(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        """Keeps one block's queries, keys and values, each ``[B, H, N, d]``."""
        self.q.append(q)
        self.k.append(k)
        self.v.append(v)

    def record(self, name: str, x: Tensor) -> None:
        """Keeps an intermediate, with ``record_tokens`` only."""
        if self.record_tokens:
            self.out[name] = x

    @property
    def tokens(self) -> list[Tensor]:
        """The tokens before the first block and after each, ``[B, N, D]``; needs ``record_tokens``."""
        return [x for name, x in self.out.items() if name == "with_posemb" or name.endswith("/+mlp")]

    def to(self, device: str) -> Trace:
        """A copy on another device."""
        q, k, v = ([tensor.to(device) for tensor in kept] for kept in (self.q, self.k, self.v))
        out = {name: x.to(device) for name, x in self.out.items()}
        kept_patches = None if self.kept_patches is None else self.kept_patches.to(device)
        return Trace(self.grid, self.num_prefix_tokens, q, k, v, self.record_tokens, out, kept_patches)

    @property
    def num_bytes(self) -> int:
        """Memory that the trace keeps alive; the views of one fused q, k, v map count once."""
        rest = [] if self.kept_patches is None else [self.kept_patches]
        return num_bytes([*self.q, *self.k, *self.v, *self.out.values(), *rest])

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
