"""Layers as people write them: each network beside one of the same weights that calls torch's own functions."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.methods import naclip
from vit_demo.trace import adapt

from .written_out import EPS, HEADS, WIDTH, Function, check, pair

pytestmark = pytest.mark.filterwarnings("error")


def variance(x: Tensor) -> Tensor:
    return x.var(-1, unbiased=False, keepdim=True)


def by_moments(x, w, b):
    mean, square = x.mean(-1, keepdim=True), (x * x).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(square - mean**2 + EPS) * w + b


def by_var_mean(x, w, b):
    var, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return torch.addcmul(b, (x - mean) * torch.rsqrt(var + EPS), w)


def by_expanded_deviation(x, w, b):
    deviation = (variance(x) + EPS).sqrt().expand_as(x)
    return w * ((x - x.mean(-1, keepdim=True)) / deviation) + b


def by_power(x, w, b):
    x = x - x.mean(dim=-1, keepdim=True)
    return w * (x * (x.pow(2).mean(-1, keepdim=True) + EPS) ** -0.5) + b


def channels_first(x, w, b):
    x = x.transpose(1, 2)
    mean = x.mean(1, keepdim=True)
    squared = (x - mean).pow(2).mean(1, keepdim=True)
    return (w[:, None] * ((x - mean) / torch.sqrt(squared + EPS)) + b[:, None]).transpose(1, 2)


def in_place(x, w, b):
    y = x - x.mean(-1, keepdim=True)
    y /= (variance(x) + EPS).sqrt()
    y *= w
    return y.add_(b)


def without_keepdim(x, w, b):
    mean, deviation = x.mean(-1), torch.sqrt(x.var(-1, unbiased=False) + EPS)
    return (x - mean[..., None]) / deviation.unsqueeze(-1) * w + b


def rms(x, w, b):
    return F.rms_norm(x, (WIDTH,), w, EPS)


def unit(x, w, b):
    return F.normalize(x, dim=-1) * WIDTH**0.5 * w


LAYER_NORMS: list[Function] = [
    by_moments, by_var_mean, by_expanded_deviation, by_power, channels_first, in_place, without_keepdim,
    lambda x, w, b: (x - x.mean(-1, keepdim=True)) / (variance(x) + EPS).sqrt() * w + b,
    lambda x, w, b: torch.layer_norm(x, (WIDTH,), w, b, EPS),
    lambda x, w, b: F.layer_norm(input=x, normalized_shape=[WIDTH], weight=w, bias=b, eps=EPS),
    lambda x, w, b: torch.div(x - x.mean(-1, True), torch.sqrt(variance(x) + EPS)).mul(w).add(b),
    lambda x, w, b: F.layer_norm(x, (WIDTH,), eps=EPS) * w + b,
]  # fmt: skip
RMS_NORMS: list[Function] = [
    lambda x, w, b: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * w,
    lambda x, w, b: w * (x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS)),
    lambda x, w, b: torch.rms_norm(x, (WIDTH,), w, EPS),
    lambda x, w, b: x / (x.square().sum(-1, keepdim=True) / WIDTH + EPS).pow(0.5) * w,
]
UNIT_NORMS: list[Function] = [
    lambda x, w, b: x / x.norm(dim=-1, keepdim=True) * WIDTH**0.5 * w,
    lambda x, w, b: x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=1e-12) * WIDTH**0.5 * w,
    lambda x, w, b: x * (x**2).sum(-1, keepdim=True).rsqrt() * WIDTH**0.5 * w,
]


def new_gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def half(function: Function) -> Function:
    return lambda x: (lambda a, b: a * function(b))(*x.chunk(2, -1))


ACTIVATIONS: list[tuple[Function, Function]] = [
    (F.gelu, lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))),
    (F.gelu, lambda x: 0.5 * (1 + (x * 2**-0.5).erf()) * x),
    (F.gelu, lambda x: (x + x * torch.erf(x / math.sqrt(2))) / 2),
    (F.gelu, lambda x: x * torch.special.ndtr(x)),
    (F.gelu, lambda x: x * (1 - 0.5 * torch.erfc(x / 2**0.5))),
    (F.gelu, lambda x: F.gelu(input=x)),
    (lambda x: F.gelu(x, approximate="tanh"), new_gelu),
    (
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: x * 0.5 * (1 + F.tanh(0.7978845608 * x * (1 + 0.044715 * x * x))),
    ),
    (lambda x: x * torch.sigmoid(1.702 * x), lambda x: torch.sigmoid(x * 1.702).mul(x)),
    (lambda x: x * torch.sigmoid(1.702 * x), lambda x: F.silu(1.702 * x) / 1.702),
    (F.silu, lambda x: x / (1 + torch.exp(-x))),
    (F.silu, lambda x: x * (1 / (1 + (-x).exp()))),
    (F.silu, lambda x: x.clone().mul_(x.sigmoid())),
    (F.silu, lambda x: x * 0.5 * (1 + torch.tanh(x / 2))),
    (F.hardswish, lambda x: x * F.relu6(x + 3) / 6),
    (F.hardswish, lambda x: x * (x + 3).clamp(0, 6) / 6),
    (F.hardswish, lambda x: x * F.hardsigmoid(x)),
    (F.mish, lambda x: x * torch.tanh(F.softplus(x))),
    (F.mish, lambda x: x * F.softplus(x).tanh()),
    (F.relu, lambda x: x.clamp(min=0)),
    (F.relu, lambda x: torch.maximum(x, torch.zeros_like(x))),
    (F.relu, lambda x: x * (x > 0)),
    (lambda x: F.relu(x) ** 2, lambda x: F.relu(x) * F.relu(x)),
    (lambda x: F.relu(x) ** 2, lambda x: F.relu(x).square()),
    (lambda x: F.relu(x) ** 2, lambda x: x * F.relu(x)),
]
GATED: list[tuple[Function, Function]] = [
    (half(F.silu), half(lambda x: x * x.sigmoid())),
    (half(F.gelu), half(lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)))),
    (half(torch.sigmoid), half(lambda x: 1 / (1 + torch.exp(-x)))),
    (half(lambda x: x), lambda x: x[..., :24].multiply(x[..., 24:])),
]
LINEAR: list[Function] = [
    lambda x, w, b: (x.flatten(0, 1).mm(w.t()) + b).view(*x.shape[:2], -1),
    lambda x, w, b: torch.add(torch.einsum("nbi,oi->bno", x.transpose(0, 1), w), b),
    lambda x, w, b: x @ w.T + b,
    lambda x, w, b: b + torch.matmul(x, w.mT),
    lambda x, w, b: torch.einsum("bnd,od->bno", x, w) + b,
    lambda x, w, b: torch.einsum("od,...d", w, x) + b,
    lambda x, w, b: torch.einsum("bnd,od->bno", [x, w]).add(b),
    lambda x, w, b: F.linear(x, w) + b,
    lambda x, w, b: F.linear(input=x, weight=w, bias=b),
]


def in_place_bias(x, w, b):
    y = x @ w.T
    y += b
    return y


def merged(q, k, v):
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    return (torch.bmm(q, k.mT) * 8**-0.5).softmax(-1).bmm(v).unflatten(0, (-1, HEADS))


def in_place_scale(q, k, v):
    scores = q @ k.mT
    scores *= 8**-0.5
    return scores.softmax(-1) @ v


def einsum_of_tokens(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = torch.einsum("bihd, bjhd -> bhij", q, k).div(8**0.5)
    return torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).transpose(1, 2)


def queries_last(q, k, v):
    scores = (k @ q.transpose(-2, -1)).mul(8**-0.5).softmax(-2)
    return scores.mT @ v


MASK = torch.linspace(-1, 1, 17 * 17).reshape(17, 17).sin()
ATTENTIONS: list[tuple[Function | None, Function]] = [
    (None, lambda q, k, v: (q @ k.mT * 8**-0.5).softmax(-1) @ v),
    (None, lambda q, k, v: ((q * 8**-0.5) @ k.mT).softmax(-1) @ v),
    (None, lambda q, k, v: (q @ (k * 8**-0.5).mT).softmax(-1) @ v),
    (None, lambda q, k, v: ((q / 8**0.25) @ (k / 8**0.25).transpose(-1, -2)).softmax(-1) @ v),
    (None, lambda q, k, v: (8**-0.5 * torch.matmul(q, k.transpose(2, 3))).softmax(-1) @ v),
    (None, lambda q, k, v: F.scaled_dot_product_attention(q, k * 8**-0.5, v, scale=1.0)),
    (None, lambda q, k, v: F.softmax(torch.matmul(q, k.mT) / 8**0.5, -1, dtype=torch.float32).to(v) @ v),
    (None, merged), (None, in_place_scale), (None, einsum_of_tokens), (None, queries_last),
    (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, MASK.to(q)),
        lambda q, k, v: (q @ k.mT * 8**-0.5 + MASK.to(q)).softmax(-1) @ v,
    ),
    (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, MASK < 0.9),
        lambda q, k, v: (q @ k.mT * 8**-0.5).masked_fill(MASK >= 0.9, float("-inf")).softmax(-1) @ v,
    ),
]  # fmt: skip

CASES: list[tuple[str, Function | None, Function, dict[str, bool]]] = [
    *(("norm", None, one, {}) for one in LAYER_NORMS),
    *(("norm", rms, one, {}) for one in RMS_NORMS),
    *(("norm", unit, one, {}) for one in UNIT_NORMS),
    *(("act", plain, one, {}) for plain, one in ACTIVATIONS),
    *(("act", plain, one, {"gated": True}) for plain, one in GATED),
    *(("linear", None, one, {}) for one in [*LINEAR, in_place_bias]),
    *(("attend", plain, one, {}) for plain, one in ATTENTIONS),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_maps_are_those_of_torch_s_own_functions(number: int) -> None:
    kind, plain, written, shape = CASES[number]
    check(*pair(kind, plain, written, **shape))


@pytest.mark.parametrize("kept", [None, torch.tensor([[0, 5, 9, 15], [3, 4, 9, 10]])])
def test_keys_of_other_libraries_are_the_same_however_they_attend(kept: Tensor | None) -> None:
    import timm
    import transformers

    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32}
    config = transformers.ViTConfig(**shape, image_size=32, patch_size=8, num_labels=5)
    eager, fused = (
        transformers.ViTForImageClassification._from_config(copy.deepcopy(config), attn_implementation=name).eval()
        for name in ("eager", "sdpa")
    )
    beit = timm.models.beit.Beit(
        img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=5, use_rel_pos_bias=True
    )
    vit = timm.models.VisionTransformer(img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=5)
    pairs = [(eager, fused), *((one, copy.deepcopy(one)) for one in (beit.eval(), vit.eval()))]
    images = torch.randn(2, 3, 32, 32)
    for written, other in pairs:
        torch.manual_seed(0)
        for parameter in written.parameters():
            parameter.data.add_(torch.randn_like(parameter), alpha=0.1)
        other.load_state_dict(written.state_dict())
        for one in written.modules():
            one.fused_attn = False
        found, expected = (naclip(adapt(one, 32), images, 3, kept_patches=kept) for one in (written, other))
        torch.testing.assert_close(found, expected, atol=1e-3 * float(expected.abs().max()), rtol=0)
