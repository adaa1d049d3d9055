"""One test for each slip of the notebooks this network grew from; each fails if its slip comes back."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from vit_demo.model import ViT, ViTConfig
from vit_demo.model.vit import Attention, Block

every_pool = pytest.mark.parametrize("pool", ["cls", "mean", "all"])


def test_scale_stands_inside_the_softmax(tiny: ViTConfig) -> None:
    """Rows of attention sum to 1, so equal values come out as they went in; a scale outside would shrink them."""
    attention = Attention(tiny)
    attention.proj = nn.Identity()
    values = torch.randn(24)
    with torch.no_grad():
        attention.qkv.weight[:48].normal_()
        attention.qkv.weight[48:] = 0.0
        attention.qkv.bias[48:] = values
        out = attention(torch.randn(2, 7, 24))
    torch.testing.assert_close(out, values.expand(2, 7, 24), atol=1e-5, rtol=1e-5)


def test_scale_divides_scores_by_the_root_of_the_head_width(tiny: ViTConfig) -> None:
    """Two tokens with scores 8 and 0 before the scale, in heads 8 wide: the weight is the sigmoid of 8 / sqrt(8)."""
    attention = Attention(replace(tiny, embed_dim=8, num_heads=1))
    q = torch.zeros(1, 1, 2, 8)
    q[..., 0] = 8.0
    k = torch.eye(2, 8)[None, None]  # scores: 8 for the first token, 0 for the second
    v = torch.tensor([1.0, 0.0])[None, None, :, None].expand(1, 1, 2, 8)
    weight = attention.attend(q, k, v)[0, 0, 0, 0].item()
    assert weight == pytest.approx(torch.tensor(8 / 8**0.5).sigmoid().item(), abs=1e-6)


def test_residual_round_attention_is_added(tiny: ViTConfig) -> None:
    block = Block(tiny).eval()
    x, added = torch.randn(2, 7, 24), torch.randn(24)
    with torch.no_grad():
        for last in (block.attn.proj, block.mlp.fc2):
            last.weight.zero_()
            last.bias.zero_()
        assert torch.equal(block(x), x), "silent branches leave the tokens alone"
        block.attn.proj.bias.copy_(added)
        torch.testing.assert_close(block(x), x + added)
        block.mlp.fc2.bias.copy_(added)
        torch.testing.assert_close(block(x), x + 2 * added)


@every_pool
def test_batch_comes_first_and_samples_do_not_meet(
    tiny: ViTConfig, randomise: Callable[..., nn.Module], pool: str
) -> None:
    model = randomise(ViT(replace(tiny, pool=pool)))
    images = torch.randn(4, 3, 16, 16)
    order = torch.tensor([2, 0, 3, 1])
    with torch.inference_mode():
        logits = model(images)
        torch.testing.assert_close(model(images[order]), logits[order], atol=1e-5, rtol=1e-5)
        alone = torch.cat([model(image[None]) for image in images])
    torch.testing.assert_close(alone, logits, atol=1e-5, rtol=1e-5)
    assert (logits.std(0) > 1e-3).all(), "different images must give different logits"


@every_pool
def test_head_classifies_one_pooled_token(tiny: ViTConfig, pool: str) -> None:
    model = ViT(replace(tiny, pool=pool)).eval()
    seen = []
    model.head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape))
    with torch.inference_mode():
        assert model(torch.randn(4, 3, 16, 16)).shape == (4, 5)
    assert seen == [(4, 24)]


@every_pool
def test_outputs_are_logits_not_probabilities(tiny: ViTConfig, randomise: Callable[..., nn.Module], pool: str) -> None:
    """Cross-entropy takes logits; a softmax before it would swallow a constant and make every row sum to 1."""
    model = randomise(ViT(replace(tiny, pool=pool)))
    images = torch.randn(4, 3, 16, 16)
    with torch.inference_mode():
        logits = model(images)
        model.head.bias += 10.0
        shifted = model(images)
    torch.testing.assert_close(shifted, logits + 10.0)
    assert (logits < 0).any()
    assert ((logits.sum(-1) - 1).abs() > 1e-3).all()
