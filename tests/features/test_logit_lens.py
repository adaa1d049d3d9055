"""The logit lens against a plain loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from vit_demo.features import logit_lens
from vit_demo.trace import TracedViT

Network = Callable[..., TracedViT]


@pytest.mark.parametrize("fields", [{}, {"class_token": False, "pool": "mean"}, {"num_registers": 2}], ids=str)
def test_every_depth_is_read_as_if_it_were_the_last(network: Network, fields) -> None:
    model, images = network(**fields), torch.randn(2, 3, 8, 24)
    found, vit = logit_lens(model, images), model.module
    assert found.shape == (2, 4, 5)
    for depth in range(4):
        x = vit.embed(images, (2, 6), 4)
        for block in vit.blocks[:depth]:
            x = block(x)
        torch.testing.assert_close(found[:, depth], vit.forward_head(vit.norm(x)), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found[:, -1], model(images), atol=1e-5, rtol=1e-5)
