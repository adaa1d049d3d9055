"""The guided tour's numbers in networks of this package: against torch's own attention, numpy, and their limits."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from vit_demo.features.similarity import compress
from vit_demo.inference.steps import MAX_FILTER_VALUES, MAX_FILTERS, describe_block, describe_network
from vit_demo.trace import TracedViT

Network = Callable[..., TracedViT]


def picture(model: TracedViT) -> Tensor:
    return torch.randn(1, model.config.in_channels, 16, 16)


def test_smooth_positions_need_few_numbers_and_random_ones_all() -> None:
    t = torch.arange(200.0)[:, None]
    smooth = torch.cat([(t / 40).sin(), (t / 40).cos(), (t / 100).sin(), torch.ones(200, 1)], dim=1)
    smooth = smooth @ torch.randn(4, 64)
    assert compress(smooth).shape == (200, 8)
    assert compress(torch.randn(200, 64)).shape == (200, 64)
    for decay in torch.linspace(0.5, 0.95, 40):
        vectors = torch.randn(100, 64) * decay ** torch.arange(64)
        kept, unit = compress(vectors).float(), vectors / vectors.norm(dim=1, keepdim=True)
        assert (kept @ kept.T - unit @ unit.T).abs().max() <= 0.005, "which nobody sees in a colour"


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
