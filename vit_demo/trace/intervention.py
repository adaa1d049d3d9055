"""What is changed within a pass: heads, blocks and MLPs that are silent, and tokens that come from another pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

Replacement = Literal["zero", "mean"]
REPLACEMENTS: tuple[Replacement, ...] = get_args(Replacement)


@dataclass(frozen=True, eq=False)
class Graft:
    """Tokens of another pass, put in before a block.

    Attributes:
        block: From 0.
        places: bool ``[N]``: which tokens of the whole sequence are replaced, prefix first.
        tokens: ``[N, D]``.
    """

    block: int
    places: Tensor
    tokens: Tensor


@dataclass(frozen=True)
class Intervention:
    """What is changed within a pass; false if nothing is.

    Attributes:
        heads: (block, head) of each silent one, whose output is replaced before the output projection. Blocks are
            counted as in ``Trace``: of a block with parallel attentions, each counts.
        blocks: Those that add nothing to the tokens.
        mlps: Those of whose blocks only the attention adds something.
        replace: What stands in place of what is silent: ``"zero"``, or ``"mean"``, its mean over the tokens.
        grafts: Tokens of other passes.
    """

    heads: tuple[tuple[int, int], ...] = ()
    blocks: tuple[int, ...] = ()
    mlps: tuple[int, ...] = ()
    replace: Replacement = "zero"
    grafts: tuple[Graft, ...] = ()

    def __bool__(self) -> bool:
        return self.is_silent or bool(self.grafts)

    @property
    def is_silent(self) -> bool:
        """Whether any part is silent."""
        return bool(self.heads or self.blocks or self.mlps)

    @property
    def words(self) -> str:
        """What is silent, such as ``"heads 2.1, 4.3; blocks 0"``, block.head, counted from 0."""
        heads = [f"{block}.{head}" for block, head in self.heads]
        parts = {"heads": heads, "blocks": self.blocks, "MLPs": self.mlps}
        return "; ".join(f"{name} {', '.join(map(str, silent))}" for name, silent in parts.items() if silent)

    @property
    def blocks_between(self) -> list[int]:
        """The blocks at whose start or end something is changed."""
        return [*self.blocks, *self.mlps, *(graft.block for graft in self.grafts)]

    def silent(self, block: int, heads: int) -> Tensor | None:
        """Which of so many heads of a block are silent, bool ``[1, H]``; None for none."""
        found = [head for number, head in self.heads if number == block]
        return torch.isin(torch.arange(heads, device="cpu"), torch.tensor(found, device="cpu"))[None] if found else None

    def instead(self, x: Tensor, seen: Tensor, axis: int) -> Tensor:
        """What replaces ``x``, which broadcasts to it; ``seen`` is ``x`` without what was dropped."""
        return seen.mean(axis, keepdim=True) if self.replace == "mean" else x.new_zeros(())

    def fits(self, blocks: int, heads: int, tokens: int) -> bool:
        """Whether it is one of a network of so many."""
        numbers = [*(block for block, _ in self.heads), *self.blocks_between]
        return (
            self.replace in REPLACEMENTS
            and all(0 <= block < blocks for block in numbers)
            and all(0 <= head < heads for _, head in self.heads)
            and all(one.places.dtype == torch.bool and one.places.shape == (tokens,) for one in self.grafts)
            and all(one.tokens.is_floating_point() and one.tokens.isfinite().all() for one in self.grafts)
            and all(one.tokens.dim() == 2 and len(one.tokens) == tokens for one in self.grafts)
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values: what is silent, and before which blocks tokens were put in."""
        return {
            "heads": [list(head) for head in self.heads],
            "blocks": list(self.blocks),
            "mlps": list(self.mlps),
            "replace": self.replace,
            "tokens_before": [graft.block for graft in self.grafts],
        }


NOTHING = Intervention()
