"""LeGrad against the paper's formula: whole matrices, and one autograd call for each block."""

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.trace.networks import timm_vit
from vit_demo.errors import InputError
from vit_demo.methods import legrad
from vit_demo.trace import TracedViT, adapt

Network = Callable[..., TracedViT]
SHAPES = [
    {},
    {"num_registers": 2, "layer_scale": 0.5},
    {"class_token": False, "pool": "mean"},
    {"pool": "cls+mean"},
    {"projection": "per_head", "final_norm": False},
]


def mean_of_blocks(scores: list[Tensor], attention: list[Tensor]) -> Tensor:
    """``[B, N]``: positive gradients of each block's score at its attention, summed over queries."""
    found = [
        torch.autograd.grad(score, matrix, retain_graph=True)[0].clamp(min=0).mean(1).sum(1)
        for score, matrix in zip(scores, attention, strict=True)
    ]
    return torch.stack(found).mean(0).float()


@pytest.mark.parametrize("fields", SHAPES, ids=str)
@pytest.mark.parametrize("values", [None, 30], ids=["at once", "a few rows at a time"])
def test_it_is_the_formula_of_the_paper(network: Network, explicit, fields, values, monkeypatch) -> None:
    if values is not None:
        monkeypatch.setattr("vit_demo.methods.attention_rows.CHUNK_VALUES", values)
    model, images, target = network(**fields), torch.randn(2, 3, 8, 24), torch.tensor([3, 1])
    written_out, plain = explicit(model, images), copy.deepcopy(model.module).double()
    scores = [plain.forward_head(plain.norm(x))[torch.arange(2), target].sum() for x in written_out.tokens[1:]]
    expected = mean_of_blocks(scores, written_out.attention)[:, model.config.num_prefix_tokens :].reshape(2, 2, 6)
    assert expected.std() > 1e-3 * expected.mean() > 0, "the map must not be flat"
    found = legrad(model, images, target)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    assert (legrad(model, images, torch.tensor([0, 2])) - found).abs().max() > 1e-3, "another class"


@pytest.mark.parametrize("fields", [{}, {"global_pool": "map", "class_token": False}], ids=["class token", "pooling"])
def test_networks_of_timm(fields, monkeypatch) -> None:
    module = timm_vit(**fields)()
    network, images = adapt(module, 32), torch.randn(1, 3, 32, 32)
    found = legrad(network, images, 3)
    attention, tokens = list[Tensor](), list[Tensor]()

    def whole(q: Tensor, k: Tensor, v: Tensor, **_: object) -> Tensor:
        matrix = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        if q.shape[2] == k.shape[2]:
            attention.append(matrix)
        return matrix @ v

    monkeypatch.setattr(F, "scaled_dot_product_attention", whole)
    plain = copy.deepcopy(module).double().requires_grad_()
    for block in plain.blocks:
        block.register_forward_hook(lambda _, __, output: tokens.append(output))
    plain(images.double())
    scores = [plain.forward_head(plain.norm(x))[:, 3].sum() for x in tokens]
    expected = mean_of_blocks(scores, attention)[:, plain.num_prefix_tokens :].reshape(1, *found.shape[1:])
    assert expected.std() > 1e-3 * expected.mean() > 0
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)


def test_a_network_whose_blocks_are_not_modules_gets_a_sentence(monkeypatch) -> None:
    network = adapt(timm_vit()(), 32)
    monkeypatch.setattr("vit_demo.trace.trace.Trace.num_blocks", 99)
    with pytest.raises(InputError, match="cannot be seen"):
        legrad(network, torch.randn(1, 3, 32, 32), 1)
