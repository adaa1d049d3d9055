"""Relevance, both ways of computing it, against explicit matrices; and what every backward keeps to."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from vit_demo.methods import attnlrp, relevance
from vit_demo.trace import TracedViT

Network = Callable[..., TracedViT]
SHAPES = [
    {},
    {"num_registers": 2, "layer_scale": 0.5},
    {"class_token": False, "pool": "mean"},
    {"num_registers": 2, "pool": "mean"},
    {"pool": "all"},
    {"pool": "cls+mean"},
    {"pool": "cls+next", "num_registers": 1},
    {"projection": "per_head", "final_norm": False},
]


@pytest.fixture(autouse=True, params=["whole matrices", "chunks"])
def _of_short_and_of_long_sequences(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "chunks":
        monkeypatch.setattr("vit_demo.methods.attention_rows.WHOLE_VALUES", 0)


def _read(model: TracedViT, tokens: Tensor, prefix: int) -> Tensor:
    """The mean of the vectors that the head reads of ``[B, N, ...]``."""
    return torch.stack(_vectors(model, tokens, prefix)).mean(0)


def _vectors(model: TracedViT, tokens: Tensor, prefix: int) -> list[Tensor]:
    pool = model.config.pool
    if pool == "cls+next":
        return [tokens[:, 0], tokens[:, 1]]
    patches = tokens[:, 0 if pool == "all" else prefix :].mean(1)
    return {"cls": [tokens[:, 0]], "cls+mean": [tokens[:, 0], patches]}.get(pool, [patches])


def _by_matrices(found, model: TracedViT, target: Tensor, heads_first: bool) -> Tensor:
    """The row of ``R - I`` that the head reads, ``[B, N]``, from whole matrices as the paper writes it."""
    score = found.logits[torch.arange(len(target)), target].sum()
    joint = eye = torch.eye(found.attention[0].shape[-1], dtype=torch.float64).expand(len(target), -1, -1)
    for attention, gradient in zip(found.attention, torch.autograd.grad(score, found.attention), strict=True):
        product = attention * gradient
        bar = product.mean(1).clamp(min=0) if heads_first else product.clamp(min=0).mean(1)
        joint = joint + bar @ joint
    return _read(model, joint - eye, model.config.num_prefix_tokens).detach()


@pytest.mark.parametrize("fields", SHAPES, ids=str)
@pytest.mark.parametrize("heads_first", [False, True])
def test_relevance_equals_the_product_of_whole_matrices(network: Network, explicit, fields, heads_first) -> None:
    model, images, target = network(**fields), torch.randn(2, 3, 8, 24), torch.tensor([3, 1])
    expected = _by_matrices(explicit(model, images), model, target, heads_first)
    expected = expected[:, model.config.num_prefix_tokens :].reshape(2, 2, 6).float()
    assert expected.std() > 1e-3 * expected.mean() > 0, "the map must not be flat"
    found = relevance(model, images, target, average_heads_first=heads_first)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    alone = relevance(model, images[1:], 1, average_heads_first=heads_first)
    torch.testing.assert_close(alone[0], found[1], atol=1e-5, rtol=1e-5)


def test_another_class_has_another_map_and_another_patch_size_another_grid(network: Network, explicit) -> None:
    model, images = network(), torch.randn(1, 3, 16, 16)
    assert (relevance(model, images, 0) - relevance(model, images, 1)).abs().max() > 1e-3
    found = relevance(model, images, 4, patch_size=2)
    expected = _by_matrices(explicit(model, images, 2), model, torch.tensor([4]), False)
    torch.testing.assert_close(found[0], expected[0, 1:].reshape(8, 8).float(), atol=1e-5, rtol=1e-5)


def test_dropped_patches_are_zero_and_the_others_as_if_they_were_masked(network: Network, explicit):
    model, images, kept_patches = network(), torch.randn(2, 3, 16, 16), torch.tensor([[0, 5, 9, 15], [3, 4, 9, 10]])
    found = relevance(model, images, 2, kept_patches=kept_patches)
    assert [(one != 0).flatten().nonzero()[:, 0].tolist() for one in found] == kept_patches.tolist()
    for sample in range(2):
        hidden = [1 + i for i in range(16) if i not in kept_patches[sample]]
        full = explicit(model, images[sample : sample + 1], hidden=hidden)
        expected = _by_matrices(full, model, torch.tensor([2]), False)[0, 1:].reshape(4, 4).float()
        torch.testing.assert_close(found[sample], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("fields", [{}, {"class_token": False, "pool": "mean"}], ids=str)
def test_large_matrices_are_multiplied_alike(network: Network, monkeypatch: pytest.MonkeyPatch, fields) -> None:
    model, images = network(**fields), torch.randn(1, 3, 16, 16)
    monkeypatch.setattr("vit_demo.methods.attention_rows.WHOLE_VALUES", 0)
    together = relevance(model, images, 2)
    monkeypatch.setattr("vit_demo.methods.attention_rows.LARGE_MATMUL", 0)
    torch.testing.assert_close(relevance(model, images, 2), together, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("method", [relevance, attnlrp])
def test_gradients_are_found_under_inference_mode_and_left_nowhere(network: Network, method) -> None:
    model, images = network().requires_grad_(), torch.randn(1, 3, 16, 16)
    plain = method(model, images, 1)
    with torch.inference_mode():
        torch.testing.assert_close(method(model, images.clone(), torch.tensor([1])), plain)
    assert not plain.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
