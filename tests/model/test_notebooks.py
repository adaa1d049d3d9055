"""The four notebooks: their shapes, their sizes, and two of them once more in plain code."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_demo.model import ViT, ViTConfig
from vit_demo.model.config import ANNOTATED_VIT, EINOPS_VIT, MNIST_FROM_SCRATCH, VIT_TINY


@pytest.mark.parametrize(
    ("config", "width", "heads", "parameters"),
    [(EINOPS_VIT, 768, 8, 86_567_656), (ANNOTATED_VIT, 768, 8, 86_567_656), (VIT_TINY, 192, 3, 5_717_416)],
    ids=["einops", "annotated", "tiny"],
)
def test_photo_notebooks_have_their_published_size(config: ViTConfig, width: int, heads: int, parameters: int) -> None:
    with torch.device("meta"):
        model = ViT(config)
    assert len(model.blocks) == 12
    assert {block.attn.num_heads for block in model.blocks} == {heads}
    assert {block.mlp.fc1.out_features for block in model.blocks} == {4 * width}
    assert {module.eps for module in model.modules() if isinstance(module, nn.LayerNorm)} == {config.norm_eps}
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_annotated_notebook_drops_a_tenth_in_training_only() -> None:
    model = ViT(replace(ANNOTATED_VIT, depth=1, embed_dim=48))
    images = torch.randn(1, 3, 224, 224)
    with torch.inference_mode():
        dropped = (model.embed(images, (14, 14), 16) == 0).float().mean()
        assert dropped == pytest.approx(0.1, abs=0.02)
        assert not torch.equal(model(images), model(images))
        assert torch.equal(model.eval()(images), model(images))


def test_mnist_notebook_equals_a_plain_loop_over_images_and_heads(randomise: Callable[..., nn.Module]) -> None:
    model = randomise(ViT(MNIST_FROM_SCRATCH))
    images = torch.randn(3, 1, 28, 28)
    with torch.inference_mode():
        expected = torch.stack([_mnist_notebook(model.state_dict(), image) for image in images])
        torch.testing.assert_close(model(images), expected, atol=1e-5, rtol=1e-5)


def _mnist_notebook(state: dict[str, Tensor], image: Tensor) -> Tensor:
    """The MNIST-from-scratch notebook for one image ``[1, 28, 28]``: logits ``[10]``."""
    corners = [(row, column) for row in range(0, 28, 4) for column in range(0, 28, 4)]
    patches = torch.stack([image[0, row : row + 4, column : column + 4].reshape(16) for row, column in corners])
    kernel = state["patch_embed.proj.weight"].reshape(8, 16)
    x = torch.cat([state["cls_token"][0], patches @ kernel.T + state["patch_embed.proj.bias"]])  # [50, 8]
    for i in range(50):
        for j in range(8):
            angle = torch.tensor(i / 10000 ** ((j - j % 2) / 8))
            x[i, j] += angle.sin() if j % 2 == 0 else angle.cos()
    for block in ("blocks.0.", "blocks.1."):
        part = {name.removeprefix(block): value for name, value in state.items() if name.startswith(block)}
        normed = F.layer_norm(x, (8,), part["norm1.weight"], part["norm1.bias"])
        heads = []
        for head in range(2):
            piece = normed[:, 4 * head : 4 * head + 4]
            q, k, v = (piece @ part["attn.qkv.weight"][c, head].T + part["attn.qkv.bias"][c, head] for c in range(3))
            heads.append(torch.softmax(q @ k.T / 2, dim=-1) @ v)  # sqrt(4) = 2
        x = x + torch.cat(heads, dim=1)
        normed = F.layer_norm(x, (8,), part["norm2.weight"], part["norm2.bias"])
        hidden = F.gelu(normed @ part["mlp.fc1.weight"].T + part["mlp.fc1.bias"])
        x = x + hidden @ part["mlp.fc2.weight"].T + part["mlp.fc2.bias"]
    return state["head.weight"] @ x[0] + state["head.bias"]


def test_einops_notebook_head_reads_the_mean_of_all_tokens(
    tiny: ViTConfig, randomise: Callable[..., nn.Module]
) -> None:
    model = randomise(ViT(replace(tiny, pool="all")))
    images = torch.randn(2, 3, 16, 16)
    with torch.inference_mode():
        tokens = model.forward_features(images)
        mean = sum(tokens[:, i] for i in range(17)) / 17
        centred = mean - mean.mean(-1, keepdim=True)
        normed = centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        normed = normed * model.fc_norm.weight + model.fc_norm.bias
        torch.testing.assert_close(model(images), normed @ model.head.weight.T + model.head.bias, atol=1e-5, rtol=0)


def test_einops_notebook_does_not_normalise_the_tokens_twice(tiny: ViTConfig) -> None:
    names = ViT(replace(tiny, pool="all")).state_dict()
    assert "fc_norm.weight" in names
    assert "norm.weight" not in names
