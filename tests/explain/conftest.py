"""Traces of tiny, seeded networks, and their attention written out in full."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from vit_demo.vit import Trace, ViT, ViTConfig


@pytest.fixture
def trace_of() -> Callable[..., Trace]:
    """Makes the trace of one pass; keywords are fields of the config."""

    def run(batch: int = 2, size: tuple[int, int] = (16, 16), dtype: torch.dtype = torch.float32, **fields) -> Trace:
        shape = {"image_size": 16, "patch_size": 4, "num_classes": 5, "embed_dim": 24, "depth": 3, "num_heads": 3}
        model, trace = ViT(ViTConfig(**{**shape, **fields})).eval(), Trace()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
        with torch.inference_mode():
            model.to(dtype)(torch.randn(batch, fields.get("in_channels", 3), *size, dtype=dtype), trace)
        return trace

    return run


@pytest.fixture
def written_out() -> Callable[[Trace, int], Tensor]:
    """A block's attention ``[B, H, N, N]`` in float64, one row of one head at a time."""

    def matrix(trace: Trace, layer: int) -> Tensor:
        q, k = trace.q[layer].double(), trace.k[layer].double()
        batch, heads, n, d = q.shape
        full = torch.empty(batch, heads, n, n, dtype=torch.float64)
        for b in range(batch):
            for h in range(heads):
                for i in range(n):
                    weights = torch.exp(k[b, h] @ q[b, h, i] / d**0.5)
                    full[b, h, i] = weights / weights.sum()
        return full

    return matrix
