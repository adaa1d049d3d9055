"""One pass of an adapted network: what is recorded of it, which patches it leaves out, how it computes attention."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.trace import AttentionFn, Recording
from vit_demo.trace.attention_mode import LOWEST, AttentionMode
from vit_demo.trace.trace import attention

if TYPE_CHECKING:
    from vit_demo.trace.adapter import TracedViT


class Pass(AttentionMode):
    """One pass of an adapted network: records it, leaves patches out, replaces attention."""

    def __init__(
        self, network: TracedViT, trace: Recording | None, kept: Tensor | None, attention_fn: AttentionFn | None
    ) -> None:
        super().__init__()
        self._network, self._trace, self._attention_fn = network, trace, attention_fn
        self._kept = None if kept is None else self._rows(kept)  # [B, K']: of the sequence, prefix included
        self._hooks = ExitStack()
        self.count = 0

    def _rows(self, kept: Tensor) -> Tensor:
        prefix = self._network.config.num_prefix_tokens
        first = torch.arange(prefix, device=kept.device).expand(len(kept), -1)
        return torch.cat([first, kept + prefix], 1)

    def __enter__(self) -> Pass:
        network = self._network
        entry = network.module.get_submodule(network._entry)
        end = network.module.get_submodule(network._end)
        handles = [
            entry.register_forward_pre_hook(self._enter, with_kwargs=True),
            end.register_forward_hook(self._leave),
        ]
        if network.shows_tokens and self._trace is not None and self._trace.record_tokens:
            for index, name in enumerate(network._blocks):
                block = network.module.get_submodule(name)
                handles.append(block.register_forward_hook(self._record(f"block{index:02d}/+mlp")))
        for handle in handles:
            self._hooks.callback(handle.remove)
        super().__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._hooks.close()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, compute: Callable[[Tensor | None], Tensor]) -> Tensor:
        """Records a self-attention, and computes it in the way that was asked for."""
        if q.shape[2] == 1 < k.shape[2] and self._trace is not None:
            shares = attention(q, k).mean(1)[:, 0]
            unread = self._trace.num_tokens - shares.shape[1]  # prefix tokens that the pooling leaves out
            self._trace.pooling = F.pad(shares, (unread, 0))
        if q.shape[2] != k.shape[2]:
            return compute(None)
        self.count += 1
        mask = None
        if self._kept is not None and not self._network.leaves_out:
            mask = q.new_full((len(self._kept), q.shape[2]), LOWEST).scatter_(1, self._kept.to(q.device), 0)
            mask = mask[:, None, None]  # [B, 1, 1, N]: no token attends to one that was dropped
            rows = self._kept.to(q.device)[:, None, :, None]
            q2, k2, v2 = (x.gather(2, rows.expand(len(x), x.shape[1], -1, x.shape[3])) for x in (q, k, v))
        else:
            q2, k2, v2 = q, k, v
        if self._trace is not None:
            self._trace.record_qkv(q2, k2, v2)
        if self._attention_fn is None:
            return compute(mask)
        out = self._attention_fn(q2, k2, v2)
        if mask is None:
            return out
        whole = out.new_zeros(*q.shape[:3], out.shape[3])
        return whole.scatter(2, rows.expand(len(out), out.shape[1], -1, out.shape[3]), out)

    def _gather(self, x: Tensor) -> Tensor:
        assert self._kept is not None
        return x.gather(1, self._kept.to(x.device)[:, :, None].expand(len(x), -1, x.shape[2]))

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        x = args[0] if args else kwargs["hidden_states"]
        if self._kept is not None and self._network.leaves_out:
            x = self._gather(x)
        x = self._note("with_posemb", x)
        return ((x, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": x})

    def _leave(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        if self._kept is None or self._network.leaves_out:
            return output
        x = output[0] if isinstance(output, tuple) else output
        return (self._gather(x), *output[1:]) if isinstance(output, tuple) else self._gather(x)

    def _record(self, name: str) -> Callable[..., Any]:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
            if isinstance(output, tuple):
                return self._note(name, output[0]), *output[1:]
            return self._note(name, output)

        return hook

    def _note(self, name: str, x: Tensor) -> Tensor:
        """Records tokens, and returns them for the network to go on with, so that a gradient reaches what is recorded.

        Those of dropped patches, which nothing attends to, are not recorded.
        """
        if self._trace is None or not self._trace.record_tokens:
            return x
        if self._kept is None or x.shape[1] == self._kept.shape[1]:
            self._trace.record(name, x)
            return x
        self._trace.record(name, part := self._gather(x))
        return x.scatter(1, self._kept.to(x.device)[:, :, None].expand(part.shape), part)
