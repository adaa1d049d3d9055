"""Grad-CAM and integrated gradients, against autograd on the network written out."""

from collections.abc import Callable

import pytest
import torch

from tests.trace.networks import own, timm_vit
from vit_demo.methods import grad_cam, integrated_gradients
from vit_demo.trace import TracedViT, adapt

Network = Callable[..., TracedViT]


@pytest.mark.parametrize("fields", [{}, {"num_registers": 2}, {"class_token": False, "pool": "mean"}], ids=str)
def test_grad_cam_is_the_weighted_sum_of_the_channels(network: Network, explicit, fields) -> None:
    model, images, target = network(**fields), torch.randn(2, 3, 8, 24), torch.tensor([3, 1])
    found = explicit(model, images)
    tokens, prefix = found.tokens[2], model.config.num_prefix_tokens  # before the last of three blocks
    (slope,) = torch.autograd.grad(found.logits[torch.arange(2), target].sum(), tokens)
    expected = torch.einsum("bnd,bd->bn", tokens[:, prefix:], slope[:, prefix:].mean(1)).relu().detach()
    assert expected.std() > 1e-3
    torch.testing.assert_close(grad_cam(model, images, target), expected.reshape(2, 2, 6).float(), atol=1e-5, rtol=1e-4)


def test_integrated_gradients_are_those_of_autograd_and_sum_to_the_gain(network: Network, explicit) -> None:
    model, images, reported = network(), torch.randn(1, 3, 16, 20), []
    slopes = []
    for step in range(4):
        pixels = (images * (step + 0.5) / 4).double().requires_grad_()
        x = model.double().module.embed(pixels, (4, 5), 4)
        for block in model.blocks:
            x = block(x)
        slopes.append(torch.autograd.grad(model.forward_head(x)[0, 2], pixels)[0])
    model.float()
    by_pixel = (sum(slopes) / 4 * images)[0].sum(0)
    expected = by_pixel.unfold(0, 4, 4).unfold(1, 4, 4).sum((2, 3))
    found = integrated_gradients(model, images, 2, steps=4, progress=lambda *counts: reported.append(counts))
    torch.testing.assert_close(found[0], expected.float(), atol=1e-4, rtol=1e-4)
    assert reported[-1] == (4, 4)
    gain = model(images)[0] - model(torch.zeros_like(images))[0]
    total = integrated_gradients(model, images, 2, steps=1000).sum()
    assert float(total) == pytest.approx(float(gain[2]), abs=0.02 * float(gain.abs().max()))


@pytest.mark.parametrize("make", [own, timm_vit()], ids=["own", "timm"])
def test_networks_of_other_libraries_and_dropped_patches(make: Callable[[], torch.nn.Module]) -> None:
    network, images = adapt(make(), 32), torch.randn(1, 3, 32, 32)
    kept = torch.tensor([[0, 3, 5, 6, 9, 15]])
    found = integrated_gradients(network, images, 3, steps=300, kept_patches=kept)[0].flatten()
    with torch.no_grad():
        pictures = torch.cat([images, torch.zeros_like(images)])
        one, other = network(pictures, kept_patches=kept.expand(2, -1))[:, 3].tolist()
    assert float(found.sum()) == pytest.approx(one - other, abs=1e-3)
    assert found.nonzero()[:, 0].tolist() == kept[0].tolist()
    assert set(grad_cam(network, images, 3, kept_patches=kept).flatten().nonzero()[:, 0].tolist()) <= set(
        kept[0].tolist()
    )
