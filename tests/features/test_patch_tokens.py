"""Tokens of patches and the logit lens against plain loops."""

from collections.abc import Callable

import pytest
import timm
import torch
from torch.nn import functional as F

from vit_demo.features import logit_lens, patch_tokens
from vit_demo.trace import TracedViT, adapt

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
    found, lens, vit = patch_tokens(model, images, count=3), logit_lens(model, images), model.module
    x = vit.embed(images, (2, 6), 4)
    for depth in range(4):
        if depth:
            x = vit.blocks[depth - 1](x)
        torch.testing.assert_close(lens[:, depth], vit.forward_head(vit.norm(x)), atol=1e-5, rtol=1e-5)
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
    torch.testing.assert_close(lens[:, -1], model(images), atol=1e-5, rtol=1e-5)
    assert found.tokens.shape[:2] == found.norms.shape == (4, 12) and lens.shape == (1, 4, 5)
    assert found.classes.shape == found.probabilities.shape == (4, 12, 3)


def test_a_network_of_another_library_reads_each_patch_as_its_mean(network: Network) -> None:
    shape = {"img_size": 16, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 3, "num_classes": 5}
    module, images = timm.models.VisionTransformer(**shape, global_pool="avg").eval(), torch.randn(1, 3, 16, 16)
    found = patch_tokens(adapt(module, 16), images, count=5)
    with torch.no_grad():
        logits = module.head(module.fc_norm(module.norm(module.forward_features(images))))[0, 1:]
    torch.testing.assert_close(found.probabilities[-1], logits.softmax(1).sort(descending=True).values)


def test_dropped_patches_have_no_token_and_a_model_without_classes_no_class(network: Network) -> None:
    model, images = network(num_classes=0), torch.randn(1, 3, 8, 24)
    found = patch_tokens(model, images, kept_patches=torch.tensor([[0, 3, 5]]))
    assert found.tokens.shape == (4, 3, model.config.embed_dim)
    assert found.classes.shape == found.probabilities.shape == (4, 3, 0)
    assert found.num_bytes >= found.tokens.nbytes
