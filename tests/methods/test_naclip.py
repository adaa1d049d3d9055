"""NACLIP against a plain loop in float64 over the last block of a copy of the network."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.trace.networks import timm_vit
from tests.words.word_models import word_model
from vit_demo.methods import naclip
from vit_demo.trace import OwnViT, TracedViT, adapt
from vit_demo.words.classifier import WordClassifier

from .test_legrad import SHAPES

Network = Callable[..., TracedViT]


def attended(k: Tensor, v: Tensor, places: list[tuple[int, int] | None]) -> Tensor:
    """Each token's mean of values ``[H, N, d]`` by its key's products with all keys and a Gaussian: ``[N, H * d]``."""
    heads, n, d = k.shape
    rows = []
    for i in range(n):
        parts = []
        for head in range(heads):
            scores = [float(k[head, i] @ k[head, j]) / math.sqrt(d) for j in range(n)]
            for j, (one, other) in enumerate((places[i], place) for place in places):
                if one is not None and other is not None:
                    squared = (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2
                    scores[j] += math.exp(-squared / (2 * 5.0**2))
            weights = torch.tensor(scores, dtype=torch.float64).softmax(0)
            parts.append(weights @ v[head])
        rows.append(torch.cat(parts))
    return torch.stack(rows)


def check(found: Tensor, scores: Tensor, grid: tuple[int, int]) -> None:
    expected = (scores - scores.mean()).reshape(1, *grid).float()
    assert expected.abs().max() > 1e-4
    torch.testing.assert_close(found, expected, atol=1e-2 * float(expected.abs().max()), rtol=1e-3)


@pytest.mark.parametrize("fields", SHAPES, ids=str)
@pytest.mark.parametrize("kept", [None, [0, 5, 6, 11]], ids=["all", "some"])
def test_it_is_the_last_block_by_a_plain_loop(network: Network, fields, kept) -> None:
    model, images = network(**fields), torch.randn(1, 3, 8, 24)
    plain, prefix = copy.deepcopy(model.module).double(), model.config.num_prefix_tokens
    entered = list[Tensor]()
    plain.blocks[-1].register_forward_pre_hook(lambda _, args: entered.append(args[0]))
    options = {} if kept is None else {"kept_patches": torch.tensor([kept])}
    OwnViT(plain)(images.double(), **options)
    block, patches = plain.blocks[-1], range(12) if kept is None else kept
    qkv = block.attn.qkv(block.norm1(entered[0])).unflatten(2, (3, model.config.num_heads, -1))[0]  # [N, 3, H, d]
    k, v = qkv[:, 1].transpose(0, 1), qkv[:, 2].transpose(0, 1)
    x = block.ls1(block.attn.proj(attended(k, v, [None] * prefix + [divmod(patch, 6) for patch in patches])))
    normed = plain.norm(x)
    if model.config.pool == "cls+mean":
        logits = torch.stack([plain.head(torch.cat([normed[0], token])) for token in normed[prefix:]])
    else:
        logits = torch.stack([plain.head(plain.fc_norm(token)) for token in normed[prefix:]])
    found = naclip(model, images, 3, **options)
    if kept is None:
        check(found, logits[:, 3], (2, 6))
        check(naclip(model, images, 3, against=1), logits[:, 3] - logits[:, 1], (2, 6))
        check(naclip(model, images, lambda y: y[:, 0] * y[:, 2]), logits[:, 0] * logits[:, 2], (2, 6))
        check(naclip(model, images), logits[:, int(model(images).argmax())], (2, 6))
    else:
        check(found.flatten()[kept][None], logits[:, 3], (len(kept),))
        assert found.flatten()[1] == 0


def test_a_batch_is_its_images(network: Network) -> None:
    model, images, targets = network(), torch.randn(3, 3, 16, 16), torch.tensor([0, 4, 2])
    found = naclip(model, images, targets)
    for index in range(3):
        one = naclip(model, images[index : index + 1], int(targets[index]))
        torch.testing.assert_close(found[index : index + 1], one, atol=1e-5, rtol=1e-4)


def test_attention_pooling_of_timm() -> None:
    module = timm_vit(global_pool="map", class_token=False)()
    network, images = adapt(module, 32), torch.randn(1, 3, 32, 32)
    plain, entered = copy.deepcopy(module).double(), list[Tensor]()
    plain.blocks[-1].register_forward_pre_hook(lambda _, args: entered.append(args[0]))
    plain(images.double())
    block, side = plain.blocks[-1], math.isqrt(entered[0].shape[1])
    qkv = block.attn.qkv(block.norm1(entered[0])).unflatten(2, (3, block.attn.num_heads, -1))[0]
    places = [divmod(patch, side) for patch in range(len(qkv))]
    x = block.ls1(block.attn.proj(attended(qkv[:, 1].transpose(0, 1), qkv[:, 2].transpose(0, 1), places)))
    logits = torch.cat([plain.forward_head(plain.norm(token[None, None])) for token in x])
    check(naclip(network, images, 3), logits[:, 3], (side, side))


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_words_at_each_patch(kind: str) -> None:
    """A patch's vector is its token through the tower's last norm and projection, as in the paper."""
    model = word_model(kind)
    classifier = WordClassifier(model, None, ["a", "b", "c", "d"], "{}")
    classifier.compare.text.copy_(torch.randn(classifier.compare.text.shape))
    network, images = adapt(classifier, 32), torch.randn(1, 3, 32, 32)
    vision, entered = copy.deepcopy(model.vision_model).double(), list[Tensor]()
    layer = vision.encoder.layers[-1]
    layer.register_forward_pre_hook(
        lambda _, args, kwargs: entered.append((*args, *kwargs.values())[0]), with_kwargs=True
    )
    vision(pixel_values=images.double())
    x, attention = layer.layer_norm1(entered[0])[0], layer.self_attn
    k, v = (part(x).unflatten(1, (3, 8)).transpose(0, 1) for part in (attention.k_proj, attention.v_proj))
    prefix = 1 if kind == "clip" else 0
    out = attention.out_proj(attended(k, v, [None] * prefix + [divmod(patch, 4) for patch in range(16)]))[prefix:]
    if kind == "clip":
        pooled = copy.deepcopy(classifier.projection).double()(vision.post_layernorm(out))
    else:
        pooled = torch.cat([vision.head(vision.post_layernorm(token)[None, None]) for token in out])
    text = classifier.compare.text.double()
    logits = torch.nn.functional.normalize(pooled, dim=-1) @ text.T
    check(naclip(network, images, 2), logits[:, 2], (4, 4))
