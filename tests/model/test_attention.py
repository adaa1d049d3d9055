"""Attention against ``torch.nn.MultiheadAttention``, the notebooks' own orderings and plain loops."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from vit_demo.methods import attention_matrix
from vit_demo.model import ViTConfig
from vit_demo.model.vit import Attention
from vit_demo.trace import Trace

Pair = tuple[Attention, nn.MultiheadAttention]


@pytest.fixture
def pair(tiny: ViTConfig) -> Pair:
    """Ours and torch's attention with the same weights, biases included."""
    ours = Attention(tiny).eval()
    theirs = nn.MultiheadAttention(24, 3, batch_first=True).eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.normal_(std=0.5)
        theirs.in_proj_weight.copy_(ours.qkv.weight)
        theirs.in_proj_bias.copy_(ours.qkv.bias)
    theirs.out_proj.load_state_dict(ours.proj.state_dict())
    return ours, theirs


def test_values_and_weights_equal_multihead_attention(pair: Pair) -> None:
    ours, theirs = pair
    x, trace = torch.randn(2, 7, 24), Trace()
    ours.attend.register_forward_pre_hook(lambda _, args: trace.add(*args))
    values, weights = theirs(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(ours(x), values, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(attention_matrix(trace, 0), weights, atol=1e-5, rtol=1e-5)


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Written out for ``[b, h, n, d]`` in float64."""
    scores = torch.einsum("bhid,bhjd->bhij", q.double(), k.double()) / q.shape[-1] ** 0.5
    return rearrange(scores.softmax(-1) @ v.double(), "b h n d -> b n (h d)").float()


def test_fused_map_of_the_einops_notebook_is_ours_after_reordering(pair: Pair) -> None:
    """The notebook lays its fused map out as ``(h d qkv)``, with q, k and v interleaved; ours is ``(qkv h d)``."""
    ours, x = pair[0], torch.randn(2, 7, 24)
    fused = nn.Linear(24, 72)
    q, k, v = rearrange(fused(x), "b n (h d qkv) -> qkv b h n d", h=3, qkv=3)
    with torch.no_grad():
        ours.qkv.weight.copy_(rearrange(fused.weight, "(h d qkv) i -> (qkv h d) i", h=3, qkv=3))
        ours.qkv.bias.copy_(rearrange(fused.bias, "(h d qkv) -> (qkv h d)", h=3, qkv=3))
    torch.testing.assert_close(ours(x), ours.proj(_attend(q, k, v)), atol=1e-5, rtol=1e-5)


def test_per_head_maps_equal_a_loop_over_heads_with_their_own_linear_maps(tiny: ViTConfig) -> None:
    attention = Attention(replace(tiny, projection="per_head")).eval()
    x = torch.randn(2, 7, 24)
    outputs = []
    for head in range(3):
        maps = [nn.Linear(8, 8) for _ in range(3)]
        with torch.no_grad():
            for index, one in enumerate(maps):
                attention.qkv.weight[index, head] = one.weight
                attention.qkv.bias[index, head] = one.bias
        q, k, v = (one(x[..., 8 * head : 8 * head + 8]) for one in maps)
        weights = F.softmax(q @ k.transpose(1, 2) / 8**0.5, dim=-1)
        outputs.append(weights @ v)
    torch.testing.assert_close(attention(x), torch.cat(outputs, dim=-1), atol=1e-5, rtol=1e-5)
