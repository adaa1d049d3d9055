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
    found = logit_lens(model, images)
    assert found.shape == (2, 4, 5)
    for depth in range(4):
        x = model.embed(images, (2, 6), 4)
        for block in list(model.blocks)[:depth]:
            x = block(x)
        torch.testing.assert_close(found[:, depth], model.forward_head(model.norm(x)), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found[:, -1], model(images), atol=1e-5, rtol=1e-5)
