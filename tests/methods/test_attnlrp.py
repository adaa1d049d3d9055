"""AttnLRP, written as another backward, against its rules applied layer by layer to relevance itself."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from vit_demo.methods import attnlrp
from vit_demo.methods.attnlrp import _linear
from vit_demo.methods.gradient_rules import ModifiedBackward
from vit_demo.trace import TracedViT

Network = Callable[..., TracedViT]
SHAPES = [{}, {"num_registers": 2, "layer_scale": 0.5}, {"class_token": False, "pool": "mean"}, {"pool": "all"}]

GAMMA = 0.05
"""As in the documentation, written here again so that a change is noticed."""


def _divide(shares: Tensor, relevance: Tensor) -> Tensor:
    """What the inputs ``[..., in]`` of each output ``[..., out]`` get, from their part of it ``[..., out, in]``."""
    return (shares * relevance[..., None]).sum(-2)


def _through_linear(layer: nn.Module, x: Tensor, relevance: Tensor) -> Tensor:
    parts, bias = x[..., None, :] * layer.weight, layer.bias  # [..., out, in]
    total = parts.sum(-1) + bias
    above = total[..., None] > 0
    parts = parts + GAMMA * torch.where(above, parts.clamp(min=0), parts.clamp(max=0))
    bias = bias + GAMMA * torch.where(above[..., 0], bias.clamp(min=0), bias.clamp(max=0))
    return _divide(parts / (parts.sum(-1) + bias)[..., None], relevance)


def _through_norm(layer: nn.Module, x: Tensor, relevance: Tensor) -> Tensor:
    width = x.shape[-1]
    deviation = (x.var(-1, unbiased=False, keepdim=True) + layer.eps).sqrt()
    matrix = layer.weight[:, None] * (torch.eye(width) - 1 / width)  # [out, in]
    return _divide(matrix * (x / deviation)[..., None, :] / layer(x)[..., None], relevance)


def _through_block(block: nn.Module, x: Tensor, relevance: Tensor, heads: int) -> Tensor:
    # The pass, written out.
    first = block.norm1(x)
    qkv = block.attn.qkv(first)
    q, k, v = qkv.unflatten(2, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
    attention = scores.softmax(-1)
    heads_out = torch.einsum("bhij,bhjd->bhid", attention, v)
    mixed = heads_out.transpose(1, 2).flatten(2)
    branch = block.ls1(block.attn.proj(mixed))
    middle = x + branch
    second = block.norm2(middle)
    hidden = block.mlp.fc1(second)
    activation = nn.functional.gelu(hidden)
    mlp_out = block.ls2(block.mlp.fc2(activation))
    # And back: a sum is shared by its terms, a factor of its own for each channel, and a GELU, hand everything on.
    of_mlp = relevance * mlp_out / (middle + mlp_out)
    kept = relevance - of_mlp
    of_mlp = _through_linear(block.mlp.fc1, second, _through_linear(block.mlp.fc2, activation, of_mlp))
    relevance = kept + _through_norm(block.norm2, middle, of_mlp)
    of_attention = relevance * branch / middle
    kept = relevance - of_attention
    of_heads = _through_linear(block.attn.proj, mixed, of_attention)
    of_heads = of_heads.unflatten(2, (heads, -1)).transpose(1, 2)  # [B, H, N, d]
    terms = attention[..., None] * v[:, :, None] / (2 * heads_out[:, :, :, None]) * of_heads[:, :, :, None]
    of_a, of_v = terms.sum(-1), terms.sum(2)  # [B, H, i, j], [B, H, j, d]
    of_scores = scores * (of_a - attention * of_a.sum(-1, keepdim=True))
    terms = q[:, :, :, None] * k[:, :, None] / q.shape[-1] ** 0.5 / (2 * scores[..., None]) * of_scores[..., None]
    of_qkv = torch.stack([terms.sum(3), terms.sum(2), of_v]).permute(1, 3, 0, 2, 4).flatten(2)  # [B, N, 3 * D]
    return kept + _through_norm(block.norm1, x, _through_linear(block.attn.qkv, first, of_qkv))


def _by_the_rules(model: TracedViT, images: Tensor, target: Tensor, patch_size: int | None = None) -> Tensor:
    """Each token's share ``[B, N]``, in float64."""
    model, p, images = copy.deepcopy(model.module).double(), patch_size or model.patch_size, images.double()
    tokens = [model.embed(images, (images.shape[2] // p, images.shape[3] // p), p)]
    for block in model.blocks:
        tokens.append(block(tokens[-1]))
    pooled = model.forward_head(model.norm(tokens[-1]), pre_logits=True)
    rows = torch.arange(len(target))
    relevance = torch.zeros(len(target), model.config.num_classes)
    relevance[rows, target] = model.head(pooled)[rows, target]
    relevance = _through_linear(model.head, pooled, relevance)
    prefix = 0 if model.config.pool == "all" else model.config.num_prefix_tokens
    if model.config.pool == "cls":
        relevance = torch.zeros_like(tokens[-1]).index_copy(1, torch.tensor([0]), relevance[:, None])
        relevance[:, 0] = _through_norm(model.norm, tokens[-1], relevance)[:, 0]
    else:
        mean = tokens[-1][:, prefix:].mean(1)
        relevance = _through_norm(model.fc_norm, mean, relevance)[:, None]
        shared = tokens[-1][:, prefix:] / (tokens[-1].shape[1] - prefix) / mean[:, None] * relevance
        relevance = torch.cat([torch.zeros_like(tokens[-1][:, :prefix]), shared], dim=1)
    for block, x in zip(reversed(model.blocks), reversed(tokens[:-1]), strict=True):
        relevance = _through_block(block, x, relevance, model.config.num_heads)
    return relevance.sum(2)


@pytest.fixture(autouse=True)
def _in_double() -> Any:
    """The rules divide by sums that may be near zero, where float32 would compare noise."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("fields", SHAPES, ids=str)
def test_it_equals_the_rules_applied_to_relevance_itself(network: Network, fields) -> None:
    model, images, target = network(**fields), torch.randn(2, 3, 8, 24), torch.tensor([3, 1])
    expected = _by_the_rules(model, images, target)[:, model.config.num_prefix_tokens :].reshape(2, 2, 6)
    found = attnlrp(model, images, target)
    assert found.dtype == torch.float32 and expected.std() > 1e-3
    torch.testing.assert_close(found, expected.float(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(attnlrp(model, images[1:], 1)[0], found[1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 0.0])
def test_the_rules_change_the_backward_pass_only(scale: float) -> None:
    """Also where a token has so little variance that the normalization's epsilon decides."""
    x, weight, bias = scale * torch.randn(2, 5, 8), torch.randn(8), torch.randn(8)
    expected = nn.functional.layer_norm(x, (8,), weight, bias, eps=1e-5), nn.functional.gelu(x)
    with ModifiedBackward({nn.functional.linear: _linear}):
        found = nn.functional.layer_norm(x, (8,), weight, bias, eps=1e-5), nn.functional.gelu(x)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [None, 0.0])
def test_an_input_of_zeros_gets_no_relevance_in_any_precision(dtype: torch.dtype, bias: float | None) -> None:
    x, weight = torch.zeros(1, 2, 4, dtype=dtype, requires_grad=True), torch.randn(3, 4).to(dtype)
    with ModifiedBackward({nn.functional.linear: _linear}):
        z = nn.functional.linear(x, weight, None if bias is None else torch.full((3,), bias, dtype=dtype))
    (slope,) = torch.autograd.grad(z.sum(), x)
    assert torch.equal(slope, torch.zeros_like(slope))


def test_another_patch_size_has_another_grid(network: Network) -> None:
    model, images = network(), torch.randn(1, 3, 16, 16)
    expected = _by_the_rules(model, images, torch.tensor([4]), 2)[0, 1:].reshape(8, 8)
    torch.testing.assert_close(attnlrp(model, images, 4, patch_size=2)[0], expected.float(), atol=1e-5, rtol=1e-5)


def test_without_biases_and_attention_the_shares_of_all_tokens_make_the_logit(network: Network) -> None:
    model, images = network(class_token=False, pool="mean"), torch.randn(1, 3, 16, 16)
    for name, parameter in model.named_parameters():
        if "bias" in name or "qkv" in name:
            parameter.zero_()  # a bias keeps a share to itself, and the softmax loses some
    torch.testing.assert_close(attnlrp(model, images).sum((1, 2)).double(), model(images).amax(1), atol=1e-5, rtol=1e-5)
