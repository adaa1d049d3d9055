"""Attention as people write it: each spelling beside explicit float64 matrices of the same weights."""

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import vit_demo
from vit_demo.errors import PresetError
from vit_demo.methods import attention_matrix
from vit_demo.methods.attnlrp import attnlrp
from vit_demo.methods.relevance import relevance
from vit_demo.methods.rollout import rollout
from vit_demo.trace import Trace, adapt

Spelling = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From q, k and v, ``[B, H, N, d]``, to ``[B, N, H, d]``."""

SCALE = 8**-0.5
HEADS = torch.tensor([0.5, 1.0, 2.0])[:, None, None]
MASK = torch.zeros(16, 16).masked_fill(torch.arange(16)[:, None] < torch.arange(16)[None] - 9, float("-inf"))
CAUSAL = torch.zeros(16, 16).masked_fill(~torch.ones(16, 16, dtype=torch.bool).tril(), float("-inf"))


def scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-1, -2) * SCALE


def einsum_to_tokens(q, k, v):
    return torch.einsum("bhqk,bhkd->bqhd", scores(q, k).softmax(-1), v)


def einsum_all_in_tokens(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # [B, N, H, d]
    return torch.einsum("bhnm,bmhd->bnhd", torch.einsum("bnhd,bmhd->bhnm", q, k).mul(SCALE).softmax(dim=-1), v)


def einsum_values_first(q, k, v):
    return torch.einsum("bhkd, bhqk -> bqhd", v, torch.softmax(scores(q, k), dim=3))


def einsum_heads_last(q, k, v):
    attention = torch.einsum("bhqd,bhkd->bqkh", q, k).mul(SCALE).softmax(2)
    return torch.einsum("bqkh,bhkd->bqhd", attention, v)


def einsum_with_ellipsis(q, k, v):
    return torch.einsum("...qk,...kd->...qd", scores(q, k).softmax(-1), v).transpose(1, 2)


def einsum_without_an_arrow(q, k, v):
    return torch.einsum("...qk,...kd", scores(q, k).softmax(-1), v).permute(0, 3, 1, 2)


def einsum_of_merged_heads(q, k, v):
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    attention = F.softmax(torch.einsum("gqd,gkd->gqk", q * SCALE, k), -1)
    return torch.einsum("gqk,gkd->gqd", attention, v).unflatten(0, (-1, 3)).transpose(1, 2)


def bmm_of_merged_heads(q, k, v):
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    return torch.bmm(torch.bmm(q * SCALE, k.mT).softmax(-1), v).view(-1, 3, 16, 8).transpose(1, 2)


def bmm_after_a_view(q, k, v):
    attention = scores(q, k).softmax(-1)
    return torch.bmm(attention.view(-1, 16, 16), v.reshape(-1, 16, 8)).view(-1, 3, 16, 8).transpose(1, 2)


def keyword_arguments(q, k, v):
    attention = F.softmax(input=scores(q, k), dim=-1)
    return torch.matmul(other=v, input=attention).transpose(1, 2)


def transposed(q, k, v):
    attention = scores(q, k).softmax(-1)
    return (v.mT @ attention.mT).permute(0, 3, 1, 2)


def softmax_over_queries_axis_first(q, k, v):
    attention = (k @ q.mT * SCALE).softmax(-2)  # [B, H, keys, queries]
    return (attention.transpose(2, 3) @ v).transpose(1, 2)


def a_factor_for_all(q, k, v):
    return ((scores(q, k).softmax(-1) * 1.0) @ v).transpose(1, 2)


def a_factor_for_each_head(q, k, v):
    return ((scores(q, k).softmax(-1) * HEADS.to(q)) @ (v / HEADS.to(q))).transpose(1, 2)


def casts_and_dropout(q, k, v):
    attention = torch.softmax(scores(q, k), dim=-1, dtype=torch.float32).to(v.dtype)
    return (F.dropout(attention, 0.5, training=False).contiguous() @ v).transpose(1, 2).clone()


def a_softmax_of_minus_infinity(q, k, v):
    return ((scores(q, k) + MASK.to(q)).softmax(-1) @ v).transpose(1, 2)


def a_softmax_of_the_lowest_number(q, k, v):
    lowest = torch.finfo(q.dtype).min
    return (scores(q, k).masked_fill(MASK.to(q) < 0, lowest).softmax(-1) @ v).transpose(1, 2)


def fused_with_merged_heads(q, k, v):
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).unflatten(0, (-1, 3)).transpose(1, 2)


def fused_softmax_of_minus_infinity(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, MASK.to(q)).transpose(1, 2)


def fused_softmax_of_what_is_true(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=MASK == 0).transpose(1, 2)


def fused_and_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)


SPELLINGS: list[Spelling] = [
    einsum_to_tokens, einsum_all_in_tokens, einsum_values_first, einsum_heads_last, einsum_with_ellipsis,
    einsum_without_an_arrow, einsum_of_merged_heads, bmm_of_merged_heads, bmm_after_a_view, keyword_arguments,
    transposed, softmax_over_queries_axis_first, a_factor_for_all, a_factor_for_each_head, casts_and_dropout,
    a_softmax_of_minus_infinity, a_softmax_of_the_lowest_number, fused_with_merged_heads,
    fused_softmax_of_minus_infinity, fused_softmax_of_what_is_true, fused_and_causal,
]  # fmt: skip


def talking_heads(q, k, v):
    attention = scores(q, k).softmax(-1)
    mixed = torch.einsum("bhqk,hg->bgqk", attention, torch.eye(3).roll(1, 0).to(q))
    return (mixed @ v).transpose(1, 2)


def a_mask_after_the_softmax(q, k, v):
    return ((scores(q, k).softmax(-1) * (MASK == 0).to(q)) @ v).transpose(1, 2)


def changed_in_place(q, k, v):
    attention = scores(q, k).softmax(-1)
    attention.mul_((MASK == 0).to(q))
    return (attention @ v).transpose(1, 2)


def without_a_softmax(q, k, v):
    return (scores(q, k).sigmoid() @ v).transpose(1, 2) / 16


def values_without_channels(q, k, v):
    return torch.einsum("bhqk,bhk->bqh", scores(q, k).softmax(-1), v.mean(3))[..., None].expand(-1, -1, -1, 8)


REFUSED: list[Spelling] = [
    talking_heads, a_mask_after_the_softmax, changed_in_place, without_a_softmax, values_without_channels,
]  # fmt: skip


class Layer(nn.Module):
    def __init__(self, spelling: Spelling) -> None:
        super().__init__()
        self.spelling = spelling
        self.norm, self.qkv, self.out = nn.LayerNorm(24), nn.Linear(24, 72), nn.Linear(24, 24)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 3, 8)).permute(2, 0, 3, 1, 4)
        return x + self.out(self.spelling(3 * q, k, v).flatten(2))


class Network(nn.Module):
    """Three blocks, of which the middle one is spelled differently; all of them with ``every``."""

    def __init__(self, spelling: Spelling, every: bool = True) -> None:
        super().__init__()
        self.stem, self.place = nn.Conv2d(3, 24, 8, 8), nn.Parameter(torch.randn(1, 16, 24))
        self.layers = nn.ModuleList(Layer(spelling if every or i == 1 else fused_with_merged_heads) for i in range(3))
        self.head = nn.Linear(24, 5)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).mT + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def make(spelling: Spelling, every: bool = True) -> Network:
    torch.manual_seed(0)
    return Network(spelling, every).eval()


def explicit(network: Network, images: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Logits and matrices of a float64 copy, whose attention is written down in full."""
    copied, matrices = copy.deepcopy(network).double(), list[Tensor]()

    def full(layer: Layer) -> Spelling:
        name = layer.spelling.__name__
        mask = MASK if "softmax_of" in name else CAUSAL if "causal" in name else torch.zeros(16, 16)

        def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            values = torch.einsum("bhqd,bhkd->bhqk", q, k) / 8**0.5 + mask.double()
            matrix = values.exp() / values.exp().sum(-1, keepdim=True)
            matrices.append(matrix)
            return torch.einsum("bhqk,bhkd->bhqd", matrix, v).transpose(1, 2)

        return attention

    for layer in copied.layers:
        layer.spelling = full(layer)
    return copied(images.double().requires_grad_()), matrices


@pytest.mark.parametrize("every", [True, False], ids=["every block", "one block"])
@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: spelling.__name__)
def test_each_spelling_gives_the_maps_of_explicit_matrices(spelling, every, images):
    module = make(spelling, every)
    network, trace = adapt(module, 32), Trace()
    with torch.no_grad():
        found = network(images, trace)
        assert torch.equal(found, module(images))
    logits, matrices = explicit(module, images)
    torch.testing.assert_close(found.double(), logits, atol=1e-5, rtol=1e-5)
    assert trace.num_blocks == 3
    with torch.no_grad(), vit_demo.Trace() as public:
        module(images)
    for block, matrix in enumerate(matrices):
        for attention in (attention_matrix(trace, block), public.attention(block)):
            torch.testing.assert_close(attention.double(), matrix, atol=2e-6, rtol=1e-4)
    row = torch.full((2, 16), 1 / 16, dtype=torch.float64)
    for matrix in reversed(matrices):
        row = (row + (row[:, None] @ matrix.mean(1))[:, 0]) / 2
    torch.testing.assert_close(rollout(trace, None).double(), row, atol=1e-6, rtol=1e-4)
    gradients = torch.autograd.grad(logits[:, 3].sum(), matrices)
    row = start = torch.full((2, 16), 1 / 16, dtype=torch.float64)
    for matrix, gradient in zip(reversed(matrices), reversed(gradients), strict=True):
        row = row + (row[:, None] @ (matrix * gradient).relu().mean(1))[:, 0]
    expected = (row - start).unflatten(1, (4, 4))
    torch.testing.assert_close(relevance(network, images, 3).double(), expected, atol=1e-7, rtol=1e-3)


@pytest.mark.parametrize(
    "spelling", [s for s in SPELLINGS if not any(word in s.__name__ for word in ("factor", "softmax_of", "causal"))]
)
def test_attnlrp_does_not_depend_on_the_spelling(spelling, images):
    expected = attnlrp(adapt(make(lambda *qkv: F.scaled_dot_product_attention(*qkv).transpose(1, 2)), 32), images, 3)
    found = attnlrp(adapt(make(spelling), 32), images, 3)
    assert (found - expected).abs().max() < 1e-3 * expected.abs().max()


@pytest.mark.parametrize("every", [True, False], ids=["every block", "one block"])
@pytest.mark.parametrize("spelling", REFUSED, ids=lambda spelling: spelling.__name__)
def test_what_cannot_be_followed_is_refused(spelling, every):
    words = "attention|softmax" if every else "in 2 of 3 blocks"
    with pytest.raises(PresetError, match=words):
        adapt(make(spelling, every), 32)
