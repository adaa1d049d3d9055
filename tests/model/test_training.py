"""What differs between training and evaluation, and what must not."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import MNIST_FROM_SCRATCH
from vit_demo.model.vit import Block


def test_training_and_evaluation_agree_without_dropout(tiny: ViTConfig, randomise: Callable[..., nn.Module]) -> None:
    model = randomise(ViT(tiny))
    images = torch.randn(2, 3, 16, 16)
    evaluated = model.eval()(images)
    torch.testing.assert_close(model.train()(images), evaluated, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("changes", [{"dropout": 0.5}, {"drop_path": 0.5}], ids=["dropout", "drop-path"])
def test_dropping_is_for_training_only(tiny: ViTConfig, changes: dict[str, float]) -> None:
    model, images = ViT(replace(tiny, **changes)), torch.randn(8, 3, 16, 16)
    same = ViT(tiny).eval()
    same.load_state_dict(model.state_dict())
    assert torch.equal(model.eval()(images), same(images))
    model.train()
    assert not torch.equal(model(images), model(images))


def test_drop_path_skips_whole_samples_and_keeps_the_mean(tiny: ViTConfig) -> None:
    block = Block(replace(tiny, drop_path=0.25), tiny.depth - 1).train()
    branch = torch.randn(1, 7, 24).expand(4000, -1, -1)
    skipped = block._drop_branch(branch)
    kept = skipped.abs().amax(dim=(1, 2)) > 0
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.03)
    torch.testing.assert_close(skipped[kept], branch[kept] / 0.75)
    torch.testing.assert_close(skipped.mean(0), branch[0], atol=0.15, rtol=0)
    assert block.eval()._drop_branch(branch) is branch


def test_drop_path_skips_both_branches_of_a_block(tiny: ViTConfig, randomise: Callable[..., nn.Module]) -> None:
    block = randomise(Block(replace(tiny, drop_path=0.5), tiny.depth - 1)).train()
    x = torch.randn(1, 7, 24).expand(200, -1, -1)
    outcomes = torch.unique((block(x) - x).sum(dim=(1, 2)).mul(1e3).round())
    assert len(outcomes) == 4, "neither, either, or both"


def test_drop_path_rises_linearly_over_the_blocks(tiny: ViTConfig) -> None:
    model = ViT(replace(tiny, depth=5, drop_path=0.2))
    assert [block.drop_path for block in model.blocks] == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2])
    assert ViT(replace(tiny, depth=1, drop_path=0.2)).blocks[0].drop_path == 0.0


@pytest.mark.parametrize("projection", ["fused", "per_head"])
def test_every_parameter_learns(tiny: ViTConfig, projection: str) -> None:
    model = ViT(replace(tiny, projection=projection, num_registers=2, layer_scale=0.1)).train()
    F.cross_entropy(model(torch.randn(4, 3, 16, 16)), torch.arange(4)).backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in model.parameters())


def test_the_mnist_notebook_learns_a_batch_by_heart() -> None:
    model = ViT(MNIST_FROM_SCRATCH).train()
    images, labels = torch.randn(10, 1, 28, 28), torch.arange(10)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.02)
    for _ in range(60):
        loss = F.cross_entropy(model(images), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.3
    assert (model.eval()(images).argmax(-1) == labels).all()
