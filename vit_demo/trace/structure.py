"""Where the parts of a network are, as a probe of it has found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vit_demo.trace.outputs import Already, Path


@dataclass(frozen=True)
class Structure:
    """Where the parts of a network are, by the names of its modules and parameters.

    Attributes:
        blocks: The blocks with attention, in their order.
        entry: The module that the tokens enter first.
        exit: The module that they leave last.
        norm: The module that normalizes them then; empty if none does.
        projections: The weight of the output projection of each attention; empty where what is added to the tokens is
            not what one linear map gives.
        kernels: The module of each attention that gets q, k and v and returns what the fused kernel makes of them,
            where that is known: then nothing else of a pass is watched.
        container: What a block returns its tokens in, if it does not return them alone: an empty tuple or list.
        sequence_first: Whether tokens are ``[N, B, D]``, not ``[B, N, D]``.
        before: Tokens before the patches.
        suffix: Tokens after the patches, such as registers; they are counted among the prefix tokens, as the last.
        parallel: Whether the attentions of a block, if it has several, read the same tokens.
        overlaps: Whether tokens see more than their squares.
        size: Height and width of the pictures that the network was found with, if they are no square.
        pools: Whether the head reads the tokens through attention pooling.
        reads_evenly: Whether the shares of the tokens in what the head reads are those of ``pooled_slices``, whatever
            the tokens are and whichever output is asked for; see ``head.shares_read``.
        drops: Whether patches can be left out of the sequence; not if the head needs a token for each.
        leaves_out: Whether a pass without the tokens of some patches gives what masking them gives.
        takes_any_size: Whether pictures may have other sides than those that the network was found with.
        has_head: Whether the outputs are those of a classifier; an embedding otherwise.
        keeps_gradients: Whether ``torch.no_grad`` and ``detach`` within the network must not count, as around a frozen
            backbone, because no gradient would reach its tokens.
        output: Where the logits are in what the network returns; see ``outputs.find_logits``.
        already: What made them probabilities, if anything did.
        scale: Of the pixels of a network that normalises by itself; see ``pixels.scale_of``.
    """

    blocks: tuple[str, ...]
    entry: str
    exit: str
    norm: str = ""
    projections: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    container: tuple[Any, ...] | list[Any] | None = None
    sequence_first: bool = False
    before: int = 0
    suffix: int = 0
    parallel: bool = True
    overlaps: bool = False
    size: tuple[int, int] | None = None
    pools: bool = True
    reads_evenly: bool = True
    drops: bool = True
    leaves_out: bool = True
    takes_any_size: bool = True
    has_head: bool = True
    keeps_gradients: bool = False
    output: Path | Callable[[Any], Tensor] = ()
    already: Already = ""
    scale: float | None = 0

    @property
    def shows_tokens(self) -> bool:
        """Whether the tokens between the blocks are seen: each block is a module that gets and returns them."""
        return self.entry == self.blocks[0] and self.exit == self.blocks[-1]

    def unpack(self, output: Any) -> Tensor:
        """The tokens ``[B, N, D]``, prefix first, in what a block gets or returns."""
        x = first_of(output)
        return self.prefix_first(x.transpose(0, 1) if self.sequence_first else x, 1)

    def pack(self, x: Tensor, like: Any) -> Any:
        """The opposite of ``unpack``, in place of the tokens in ``like``."""
        x = self.own_order(x, 1)
        x = x.transpose(0, 1) if self.sequence_first else x
        if hasattr(like, "_fields"):  # a named tuple
            return type(like)(x, *like[1:])
        return type(like)((x, *like[1:])) if isinstance(like, tuple | list) else x

    def prefix_first(self, x: Tensor, axis: int) -> Tensor:
        """Tokens in the network's order with those after the patches before them."""
        return self._rolled(x, axis, self.suffix)

    def own_order(self, x: Tensor, axis: int) -> Tensor:
        """The opposite of ``prefix_first``."""
        return self._rolled(x, axis, -self.suffix)

    def _rolled(self, x: Tensor, axis: int, by: int) -> Tensor:
        if not by or x.shape[axis] == 1:
            return x
        first, rest = x.split([self.before, x.shape[axis] - self.before], axis)
        return torch.cat([first, rest.roll(by, axis)], axis)


def first_of(x: Any) -> Any:
    """What a module got or returned, without the tuple or list around it."""
    return x[0] if isinstance(x, tuple | list) and x else x


def input_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first argument of a module: its tokens, alone or in a list."""
    return args[0] if args else next(iter(kwargs.values()), None)


def with_input(args: tuple[Any, ...], kwargs: dict[str, Any], x: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a module with another first one."""
    return ((x, *args[1:]), kwargs) if args else (args, {**kwargs, next(iter(kwargs)): x})
