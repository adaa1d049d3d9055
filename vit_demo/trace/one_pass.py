"""One pass of a network: what is recorded of it, which patches it leaves out, how it computes attention."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from vit_demo.trace.attention_mode import LOWEST, AttentionMode
from vit_demo.trace.intervention import Intervention
from vit_demo.trace.running import hooked
from vit_demo.trace.structure import Structure, input_of, with_input
from vit_demo.trace.trace import Trace

AttentionFn = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From q, k and v, each ``[B, H, N, d]``, to ``softmax(q k^T / sqrt(d)) v``."""


class Pass(AttentionMode):
    """The context of one pass, in the thread that enters it; others may run the same network meanwhile.

    Attributes:
        count: Attentions seen so far; none where nothing had to be seen.
    """

    def __init__(
        self,
        module: nn.Module,
        structure: Structure,
        batch: int,
        trace: Trace | None,
        kept: Tensor | None,
        leaves_out: bool,
        attention_fn: AttentionFn | None,
        intervention: Intervention,
        silent: Tensor | None,
        added_by_heads: Callable[[int, Tensor], Tensor],
    ) -> None:
        super().__init__(batch, follows=not structure.kernels)
        self._module, self._structure, self._trace, self._attention_fn = module, structure, trace, attention_fn
        self._kept = kept  # [B, K']: prefix included
        self._leaves_out, self._masks = leaves_out and kept is not None, not leaves_out and kept is not None
        self._changes, self._silent, self._added_by_heads = intervention, silent, added_by_heads
        self._adds = list[Tensor]()  # what the heads of each attention give, where MLPs are silent
        self._started = 0, torch.empty(0)  # how many there were when a block started, and its tokens
        # In a small network, seeing all of torch's functions costs a tenth of the time or more.
        records_calls = trace is not None and not structure.kernels
        changes_heads = silent is not None or bool(self._changes.heads or self._changes.mlps)
        self._is_watched = attention_fn is not None or self._masks or records_calls or changes_heads
        self._hooks = ExitStack()
        self.count = 0

    def __enter__(self) -> Pass:
        trace, structure = self._trace, self._structure
        find = self._module.get_submodule
        records_tokens = trace is not None and trace.record_tokens
        changes = self._changes.blocks_between
        for index, block in enumerate(structure.blocks if changes else ()):
            self._hooks.enter_context(hooked([find(block)], leave=partial(self._change, index)))
        if self._kept is not None or records_tokens or changes:
            self._hooks.enter_context(hooked([find(structure.entry)], self._enter))
            self._hooks.enter_context(hooked([find(structure.exit)], leave=self._leave))
        if records_tokens and structure.shows_tokens:
            blocks = map(find, structure.blocks)
            self._hooks.enter_context(hooked(blocks, leave=lambda *given: self._note(given[-1])))
        if changes:
            self._hooks.enter_context(hooked(map(find, structure.blocks), self._start))
        if self._is_watched:
            super().__enter__()
        elif trace is not None:
            kernels = map(find, structure.kernels)
            self._hooks.enter_context(hooked(kernels, lambda _, args, __: trace.add(*args)))
        return self

    def __exit__(self, *raised: Any) -> None:
        if self._is_watched:
            super().__exit__(*raised)
        self._hooks.close()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, compute: Callable[[Tensor | None], Tensor]) -> Tensor:
        """Records a self-attention, and computes it in the way that was asked for."""
        structure = self._structure
        q, k, v = (structure.prefix_first(x, 2) for x in (q, k, v))
        if q.shape[2] != k.shape[2]:
            out = compute(None)
            if self._trace is not None and structure.pools:
                self._trace.add(q, k, v, out)
            return out
        self.count += 1
        mask = None
        if self._masks:
            assert self._kept is not None
            mask = q.new_full((len(self._kept), q.shape[2]), LOWEST).scatter_(1, self._kept.to(q.device), 0)
            mask = mask[:, None, None]  # [B, 1, 1, N]: no token attends to one that was dropped
            rows = self._kept.to(q.device)[:, None, :, None]
            q2, k2, v2 = (x.gather(2, rows.expand(len(x), x.shape[1], -1, x.shape[3])) for x in (q, k, v))
        else:
            q2, k2, v2 = q, k, v
        silent = self._silent_heads(q)
        if self._attention_fn is None:
            out = compute(None if mask is None else structure.own_order(mask, 3))
            if silent is None and not self._changes.mlps:
                self._note_attention(q2, k2, v2)
                return out
            out = structure.prefix_first(out, 2)
        else:
            out = self._attention_fn(q2, k2, v2)
            if mask is not None:
                whole = out.new_zeros(*q.shape[:3], out.shape[3])
                out = whole.scatter(2, rows.expand(len(out), out.shape[1], -1, out.shape[3]), out)
        if silent is not None:
            seen = out if mask is None else out.gather(2, rows.expand(len(out), out.shape[1], -1, out.shape[3]))
            instead = self._changes.instead(out, seen, 2)
            out = torch.where(silent, instead, out)
            v2 = torch.where(silent, instead, v2)  # by which any attention gives what is in the head's place
        self._note_attention(q2, k2, v2)
        if self._changes.mlps:
            self._adds.append(out)
        return structure.own_order(out, 2)

    def _note_attention(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        if self._trace is not None:
            self._trace.add(q, k, v)

    def _silent_heads(self, q: Tensor) -> Tensor | None:
        """Which heads of this attention are silent, bool ``[1 or B, H, 1, 1]``; None for none."""
        found = self._changes.silent(self.count - 1, q.shape[1])
        if self._silent is not None:
            here = self._silent[:, self.count - 1].to(q.device)
            found = here if found is None else here | found.to(q.device)
        return None if found is None else found.to(q.device)[:, :, None, None]

    def _start(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._started = len(self._adds), self._structure.unpack(input_of(args, kwargs))

    def _change(self, index: int, _: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        """What a block returns if it, or its MLP, is silent, and with the tokens that are put in after it."""
        changes, structure = self._changes, self._structure
        x, (first, before) = structure.unpack(output), self._started
        if index in (*changes.blocks, *changes.mlps):
            rest = before
            if index not in changes.blocks:
                first_block = self.count - (len(self._adds) - first)
                for number, out in enumerate(self._adds[first:]):
                    rest = rest + self._added_by_heads(first_block + number, out)
            added = x - rest
            x = rest + changes.instead(x, self._gather(added) if self._masks else added, 1)
        return structure.pack(self._grafted(index + 1, x), output)

    def _grafted(self, block: int, x: Tensor) -> Tensor:
        for graft in self._changes.grafts:
            if graft.block == block:
                whole = torch.arange(len(graft.places), device="cpu")[None]
                index = self._kept.cpu() if self._leaves_out and self._kept is not None else whole
                tokens, places = (one[index].to(x.device) for one in (graft.tokens, graft.places))
                x = torch.where(places[:, :, None], tokens.to(x.dtype), x)
        return x

    def _enter(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given, structure = input_of(args, kwargs), self._structure
        if self._leaves_out:
            given = structure.pack(self._gather(structure.unpack(given)), given)
        if self._changes.grafts:
            given = structure.pack(self._grafted(0, structure.unpack(given)), given)
        return with_input(args, kwargs, self._note(given))

    def _leave(self, _: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        structure = self._structure
        if self._masks:
            output = structure.pack(self._gather(structure.unpack(output)), output)
        return output if structure.shows_tokens else self._note(output)

    def _note(self, output: Any) -> Any:
        """Records tokens, and returns what the network goes on with, so that a gradient reaches what is recorded.

        Tokens of dropped patches, which nothing attends to, are not recorded.
        """
        if self._trace is None or not self._trace.record_tokens:
            return output
        structure = self._structure
        x = structure.unpack(output)
        if self._kept is None or x.shape[1] == self._kept.shape[1]:
            self._trace.tokens.append(x)
            return structure.pack(x, output)
        self._trace.tokens.append(part := self._gather(x))
        x = x.scatter(1, self._kept.to(x.device)[:, :, None].expand(part.shape), part)
        return structure.pack(x, output)

    def _gather(self, x: Tensor) -> Tensor:
        assert self._kept is not None
        return x.gather(1, self._kept.to(x.device)[:, :, None].expand(len(x), -1, x.shape[2]))
