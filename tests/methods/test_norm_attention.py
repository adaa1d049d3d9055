"""Norm-based attention against a plain loop."""

from collections.abc import Callable

import pytest
import torch

from vit_demo.methods import norm_attention
from vit_demo.trace import TracedViT

Network = Callable[..., TracedViT]


@pytest.mark.parametrize("fields", [{}, {"layer_scale": 0.5, "num_registers": 2}, {"projection": "per_head"}], ids=str)
@pytest.mark.parametrize("query", [0, 7, None])
def test_norm_attention_is_the_norm_of_what_is_added(network: Network, explicit, fields, query) -> None:
    model, images, first = network(**fields), torch.randn(2, 3, 8, 24), 1 + fields.get("num_registers", 0)
    found = explicit(model, images)
    for index in (0, 2):
        block = model.blocks[index]
        expected = torch.zeros(2, first + 12, first + 12)  # from i, of j
        for j in range(first + 12):
            only = torch.zeros_like(found.values[index])
            only[:, :, j] = found.values[index][:, :, j]
            added = (found.attention[index] @ only).transpose(1, 2).flatten(2).float()  # all that comes from token j
            bias = getattr(block.attn.proj, "bias", 0)
            expected[:, :, j] = block.ls1(block.attn.proj(added) - bias).detach().norm(dim=2)
        wanted = expected.mean(1) if query is None else expected[:, query]
        ours = norm_attention(model, images, index, query)
        torch.testing.assert_close(ours, wanted[:, first:].reshape(2, 2, 6), atol=1e-5, rtol=1e-5)


def test_the_last_block_and_the_first_token_are_the_defaults(network: Network) -> None:
    model, images = network(), torch.randn(1, 3, 16, 16)
    torch.testing.assert_close(norm_attention(model, images), norm_attention(model, images, block=2, query=0))
