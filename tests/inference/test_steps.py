"""The guided tour's numbers, against the modules, torch's own attention and plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.features import logit_lens
from vit_demo.features.similarity import MAX_ERROR, compress
from vit_demo.inference.steps import (
    MAX_FILTER_VALUES,
    MAX_FILTERS,
    describe_block,
    describe_network,
    describe_patch,
)
from vit_demo.trace import Recording, TracedViT

Network = Callable[..., TracedViT]

SHAPES: dict[str, dict[str, Any]] = {
    "class token": {},
    "notebook": {"projection": "per_head", "pos_embed": "sincos", "final_norm": False, "in_channels": 1},
    "registers, layer scale, no classes": {
        "num_registers": 2,
        "layer_scale": 0.1,
        "num_classes": 0,
        "pos_embed_prefix": False,
    },
    "mean of patches": {"pool": "mean", "class_token": False},
    "flexible": {"patch_size": 8, "pos_embed_grid": 4},
}


@pytest.fixture(params=SHAPES.values(), ids=SHAPES)
def model(network: Network, request: pytest.FixtureRequest) -> TracedViT:
    return network(**request.param)


def picture(model: TracedViT) -> Tensor:
    return torch.randn(1, model.config.in_channels, 16, 16)


def test_a_patch_is_multiplied_with_each_filter_by_a_plain_loop(model: TracedViT) -> None:
    images, patch = picture(model), 6  # row 1, column 2 of 4 x 4
    _, shared = describe_network(model, images, patch_size=4)
    found = describe_patch(model, images, patch, patch_size=4)
    pixels = images[0, :, 4:8, 8:12]
    assert torch.equal(found["pixels"], pixels)
    for place, index in enumerate(shared["filters"].tolist()):
        total = float(shared["bias"][place])
        for weight, pixel in zip(shared["kernel"][place].flatten().tolist(), pixels.flatten().tolist(), strict=True):
            total += weight * pixel
        assert found["embedded"][index].item() == pytest.approx(total, abs=1e-4)


def test_a_token_is_its_patch_and_its_position(model: TracedViT) -> None:
    images = picture(model)
    found = describe_patch(model, images, 6, patch_size=4)
    with torch.inference_mode():
        tokens = model.module.embed(images, (4, 4), 4)[0]
    assert torch.equal(found["token"], tokens[model.config.num_prefix_tokens + 6])
    torch.testing.assert_close(found["embedded"] + found["position"], found["token"])
    assert ("class_token" in found) == model.config.class_token
    if model.config.class_token:
        assert torch.equal(found["class_token"], tokens[0])


def test_positions_give_every_cosine_similarity(model: TracedViT) -> None:
    vit = model.module
    positions = vit.pos_embed_for((4, 4))[0, vit.num_pos_embed_prefix :].numpy()
    compressed = describe_network(model, picture(model), patch_size=4)[1]["positions"].float().numpy()
    lengths = np.linalg.norm(positions, axis=1)
    wanted = positions @ positions.T / np.outer(lengths, lengths)
    np.testing.assert_allclose(compressed @ compressed.T, wanted, atol=MAX_ERROR)


def test_smooth_positions_need_few_numbers_and_random_ones_all() -> None:
    t = torch.arange(200.0)[:, None]
    smooth = torch.cat([(t / 40).sin(), (t / 40).cos(), (t / 100).sin(), torch.ones(200, 1)], dim=1)
    smooth = smooth @ torch.randn(4, 64)
    assert compress(smooth).shape == (200, 8)
    assert compress(torch.randn(200, 64)).shape == (200, 64)


@pytest.mark.parametrize("block", [0, 2])
def test_one_head_by_a_plain_loop(model: TracedViT, block: int) -> None:
    images, patch, head = picture(model), 9, 1
    found = describe_block(model, images, patch, block, head, patch_size=4)
    trace = Recording()
    with torch.inference_mode():
        model(images, trace, patch_size=4)
    q, k, v = (recorded[block][0, head].double() for recorded in (trace.q, trace.k, trace.v))
    token = model.config.num_prefix_tokens + patch
    scores = [sum(q[token, i] * k[j, i] for i in range(8)).item() / math.sqrt(8) for j in range(len(k))]
    total = sum(math.exp(score) for score in scores)
    weights = [math.exp(score) / total for score in scores]
    np.testing.assert_allclose(found["scores"], scores, atol=1e-4)
    np.testing.assert_allclose(found["weights"], weights, atol=1e-5)
    output = sum(weight * v[j] for j, weight in enumerate(weights))
    np.testing.assert_allclose(found["head_output"], output, atol=1e-4)
    assert torch.equal(found["concatenated"][8:16], found["head_output"])
    assert found["keyed"].tolist() == sorted(range(len(k)), key=lambda j: -weights[j])[:4]
    torch.testing.assert_close(found["keys"].double(), k[found["keyed"]])
    torch.testing.assert_close(found["values"].double(), v[found["keyed"]])


def test_a_block_is_that_of_its_modules_and_of_torchs_attention(network: Network) -> None:
    model = network()
    images, block = picture(model), model.blocks[1]
    found = describe_block(model, images, 9, 1, 0, patch_size=4)
    attention = nn.MultiheadAttention(24, 3, batch_first=True)
    with torch.inference_mode():
        attention.in_proj_weight.copy_(block.attn.qkv.weight)
        attention.in_proj_bias.copy_(block.attn.qkv.bias)
        attention.out_proj.weight.copy_(block.attn.proj.weight)
        attention.out_proj.bias.copy_(block.attn.proj.bias)
        before = model.blocks[0](model.module.embed(images, (4, 4), 4))
        normed = block.norm1(before)
        added, weights = attention(normed, normed, normed, average_attn_weights=False)
        torch.testing.assert_close(found["all_weights"], weights[0, :, 10], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(found["attention"], added[0, 10], atol=1e-4, rtol=1e-4)


def test_both_residuals_lead_from_the_token_before_to_the_one_after(model: TracedViT) -> None:
    images = picture(model)
    found = describe_block(model, images, 3, 1, 2, patch_size=4)
    block = model.blocks[1]
    token = model.config.num_prefix_tokens + 3
    with torch.inference_mode():
        before = model.blocks[0](model.module.embed(images, (4, 4), 4))
        torch.testing.assert_close(found["before"], before[0, token])
        torch.testing.assert_close(found["after"], block(before)[0, token])
        torch.testing.assert_close(found["mlp"], block.ls2(block.mlp(block.norm2(found["between"]))))
        torch.testing.assert_close(found["hidden"], F.gelu(block.mlp.fc1(block.norm2(found["between"]))))
    torch.testing.assert_close(found["before"] + found["attention"], found["between"], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found["between"] + found["mlp"], found["after"], atol=1e-4, rtol=1e-4)


def test_the_prediction_forms_as_the_logit_lens_shows_and_ends_in_the_output(model: TracedViT) -> None:
    images = picture(model)
    (_, found), vit = describe_network(model, images, patch_size=4), model.module
    with torch.inference_mode():
        tokens = vit.forward_features(images, patch_size=4)
        pooled, output = vit.forward_head(tokens, pre_logits=True)[0], vit.forward_head(tokens)[0]
    torch.testing.assert_close(found["pooled"], pooled)
    if not model.config.num_classes:
        assert "logits" not in found and found["depth_similarity"].shape == (4,)
        assert found["depth_similarity"][-1].item() == pytest.approx(1)
        wanted = [F.cosine_similarity(tokens[0, 0], patch, dim=0).item() for patch in tokens[0, 3:]]
        np.testing.assert_allclose(found["alike"], wanted, atol=1e-5)
        return
    probabilities = logit_lens(model, images, patch_size=4)[0].softmax(-1)
    torch.testing.assert_close(found["depth_top"], probabilities.max(-1).values)
    assert found["depth_class"].tolist() == probabilities.argmax(-1).tolist()
    torch.testing.assert_close(found["depth_final"], probabilities[:, output.argmax()])
    assert found["classes"].tolist() == output.argsort(descending=True)[:5].tolist()
    torch.testing.assert_close((found["logits"] - found["logsumexp"]).exp(), output.softmax(0)[found["classes"]])


def test_dropped_patches_have_no_token(network: Network) -> None:
    model = network()
    images, kept = picture(model), torch.tensor([[i for i in range(16) if i not in (0, 5)]])
    _, shared = describe_network(model, images, patch_size=4, kept_patches=kept)
    assert (shared["contrast"] == 0).nonzero().flatten().tolist() == [0, 5]
    patch = describe_patch(model, images, 6, patch_size=4, kept_patches=kept)
    block = describe_block(model, images, 6, 0, 0, patch_size=4, kept_patches=kept)
    torch.testing.assert_close(block["before"], patch["token"])
    assert block["weights"].shape == (15,)


def test_contrast_is_the_standard_deviation_of_each_patch(network: Network) -> None:
    model = network(in_channels=1)
    images = picture(model)
    found = describe_network(model, images, patch_size=8)[1]["contrast"].reshape(2, 2)
    for row in range(2):
        for col in range(2):
            patch = images[0, 0, 8 * row : 8 * row + 8, 8 * col : 8 * col + 8].numpy()
            assert found[row, col].item() == pytest.approx(patch.std(), abs=1e-5)


def test_filters_are_the_largest_and_bounded(network: Network) -> None:
    model = network(image_size=64, patch_size=32, embed_dim=48)
    _, found = describe_network(model, torch.randn(1, 3, 64, 64), patch_size=32)
    kernel = model.module.patch_embed.proj.weight
    norms = kernel.flatten(1).norm(dim=1)
    assert len(found["filters"]) == max(4, MAX_FILTER_VALUES // (3 * 32 * 32)) < MAX_FILTERS
    assert found["filters"].tolist() == norms.argsort(descending=True)[: len(found["filters"])].tolist()
    assert torch.equal(found["kernel"], kernel[found["filters"]])
