"""Tokens of patches against plain loops and timm."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import timm
import torch
from torch.nn import functional as F

from vit_demo.features import patch_tokens
from vit_demo.model import ViT, ViTConfig
from vit_demo.trace import TracedViT

Network = Callable[..., TracedViT]
SHAPES = [
    {},
    {"class_token": False, "pool": "mean"},
    {"num_registers": 2},
    {"pool": "cls+mean"},
    {"final_norm": False},
]


@pytest.mark.parametrize("fields", SHAPES, ids=str)
def test_each_patch_is_read_as_the_head_reads_what_it_pools(network: Network, fields) -> None:
    model, images = network(**fields), torch.randn(1, 3, 8, 24)
    found, vit = patch_tokens(model, images, count=3), model.module
    x = vit.embed(images, (2, 6), 4)
    for depth in range(4):
        if depth:
            x = vit.blocks[depth - 1](x)
        patches = x[0, model.config.num_prefix_tokens :]
        torch.testing.assert_close(found.norms[depth], (patches**2).sum(1).sqrt(), atol=1e-4, rtol=1e-4)
        for token in range(12):
            final = patches[token]
            if model.config.final_norm:
                norm = vit.norm if hasattr(vit.norm, "weight") else vit.fc_norm
                final = F.layer_norm(final, final.shape, norm.weight, norm.bias, model.config.norm_eps)
            torch.testing.assert_close(found.tokens[depth, token], final, atol=1e-5, rtol=1e-5)
            if fields.get("pool") == "cls+mean":
                final = torch.cat([vit.norm(x)[0, 0], final])
            likely = sorted(F.linear(final, vit.head.weight, vit.head.bias).softmax(0).tolist(), reverse=True)
            assert found.probabilities[depth, token].tolist() == pytest.approx(likely[:3], abs=1e-5)
    assert found.tokens.shape[:2] == found.norms.shape == (4, 12)
    assert found.classes.shape == found.probabilities.shape == (4, 12, 3)


def test_dropped_patches_have_no_token_and_a_model_without_classes_no_class(network: Network) -> None:
    model, images = network(num_classes=0), torch.randn(1, 3, 8, 24)
    found = patch_tokens(model, images, kept_patches=torch.tensor([[0, 3, 5]]))
    assert found.tokens.shape == (4, 3, model.config.embed_dim)
    assert found.classes.shape == found.probabilities.shape == (4, 3, 0)
    assert found.num_bytes >= found.tokens.nbytes


def test_tokens_are_those_of_timm() -> None:
    torch.manual_seed(0)
    theirs = timm.create_model("vit_tiny_patch16_224", img_size=64, depth=3, embed_dim=24, num_classes=7).eval()
    config = ViTConfig(image_size=64, patch_size=16, embed_dim=24, depth=3, num_heads=3, num_classes=7, norm_eps=1e-6)
    ours = TracedViT.of(ViT(config).eval())
    ours.module.load_state_dict(theirs.state_dict())
    images = torch.randn(1, 3, 64, 64)
    found = patch_tokens(ours, images)
    with torch.inference_mode():
        normed = theirs.forward_intermediates(images, norm=True, output_fmt="NLC", intermediates_only=True)
        plain = theirs.forward_intermediates(images, output_fmt="NLC", intermediates_only=True)
    for block in range(3):
        torch.testing.assert_close(found.tokens[1 + block], normed[block][0], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(found.norms[1 + block], plain[block][0].norm(dim=1), atol=1e-4, rtol=1e-4)
