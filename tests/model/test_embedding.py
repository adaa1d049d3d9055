"""From pixels to tokens: patches, their linear map, and the fixed positions."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

from vit_demo.model import ViT, ViTConfig
from vit_demo.model.initialization import sincos_pos_embed, sincos_pos_embed_2d
from vit_demo.model.pooling import pool_tokens
from vit_demo.model.vit import PatchEmbed


@pytest.mark.parametrize("size", [(16, 16), (8, 12)])
def test_convolution_equals_rearranged_patches_and_a_linear_map(tiny: ViTConfig, size: tuple[int, int]) -> None:
    embedding = PatchEmbed(tiny)
    images = torch.randn(2, 3, *size)
    kernel, bias = embedding.proj.weight.flatten(1), embedding.proj.bias
    rearranged = rearrange(images, "b c (h p1) (w p2) -> b (h w) (c p1 p2)", p1=4, p2=4)
    tokens = embedding(images, 4)
    torch.testing.assert_close(tokens, F.linear(rearranged, kernel, bias), atol=1e-5, rtol=0)


def test_sincos_table_equals_the_formula() -> None:
    length, dim = 50, 8
    table = sincos_pos_embed(length, dim)
    assert table.shape == (1, length, dim)
    assert table.dtype == torch.float32
    for i in range(length):
        for j in range(dim):
            even = math.sin(i / 10000 ** (j / dim))
            odd = math.cos(i / 10000 ** ((j - 1) / dim))
            assert table[0, i, j].item() == pytest.approx(even if j % 2 == 0 else odd, abs=1e-6)


def test_tokens_are_class_token_then_registers_then_patches(
    tiny: ViTConfig, randomise: Callable[..., nn.Module]
) -> None:
    model = randomise(ViT(replace(tiny, num_registers=2)))
    images = torch.randn(2, 3, 16, 16)
    patches = model.patch_embed(images, 4)
    tokens = model.embed(images, (4, 4), 4) - model.pos_embed
    torch.testing.assert_close(tokens[:, 0], model.cls_token[:, 0].expand(2, -1))
    torch.testing.assert_close(tokens[:, 1:3], model.reg_token.expand(2, -1, -1))
    torch.testing.assert_close(tokens[:, 3:], patches)


@pytest.mark.parametrize("position", ["learned", "sincos"])
def test_without_prefix_positions_only_patches_are_moved(
    tiny: ViTConfig, randomise: Callable[..., nn.Module], position: str
) -> None:
    model = randomise(ViT(replace(tiny, pos_embed=position, pos_embed_prefix=False)))
    images = torch.randn(2, 3, 16, 16)
    tokens = model.embed(images, (4, 4), 4)
    table = model.pos_embed if position == "learned" else sincos_pos_embed(16, 24)
    assert torch.equal(tokens[:, :1], model.cls_token.expand(2, -1, -1))
    torch.testing.assert_close(tokens[:, 1:], model.patch_embed(images, 4) + table)


def test_two_dimensional_sincos_table_equals_the_formula() -> None:
    side, temperature = 3, 100.0
    waves = [2 * math.pi / temperature ** (i / 2) for i in range(2)]

    def expected(place: int) -> list[float]:
        return [function(place / side * wave) for function in (math.sin, math.cos) for wave in waves]

    table = sincos_pos_embed_2d(side, 10)[0]
    for (row, column), found in zip(itertools.product(range(side), repeat=2), table, strict=True):
        torch.testing.assert_close(found, torch.tensor([*expected(row), *expected(column), 0.0, 0.0]))


def test_learned_positions_start_as_waves_with_noise() -> None:
    torch.manual_seed(0)
    model = ViT(ViTConfig(image_size=32, patch_size=4, embed_dim=32, depth=1, num_heads=2))
    noise = model.pos_embed.detach()[0, 1:] - sincos_pos_embed_2d(8, 32)[0]
    assert 0.015 < float(noise.std()) < 0.025 and float(noise.mean().abs()) < 0.002


def test_what_each_pooling_reads() -> None:
    x = torch.randn(2, 6, 3)  # a class token, a register and four patches
    first, register, patches = x[:, 0], x[:, 1], x[:, 2:].mean(1)
    expected = {
        "cls": first,
        "mean": patches,
        "all": x.mean(1),
        "cls+mean": torch.cat([first, patches], 1),
        "cls+next": torch.cat([first, register], 1),
    }
    for pool, vector in expected.items():
        torch.testing.assert_close(pool_tokens(x, pool, num_prefix_tokens=2), vector)
