"""Dropped patches against whole sequences in which no token may look at them."""

import pytest
import torch

from vit_demo.methods import attnlrp, legrad, libra_fullgrad, relevance


@pytest.mark.parametrize("rows", [3, 4])
@pytest.mark.parametrize("prefix", [True, False], ids=["with positions", "without"])
def test_dropped_patches_are_as_if_hidden_from_every_token(network, explicit, prefix, rows):
    shape = {"image_size": 24, "patch_size": 8, "embed_dim": 16, "num_heads": 2}
    traced = network(**shape, num_registers=2, pos_embed_prefix=prefix)
    images = torch.randn(2, 3, 8 * rows, 24)
    kept_patches = torch.tensor([[0, 4, 3 * rows - 1], [8, 1, 2]])
    found = traced(images, kept_patches=kept_patches)
    for sample in range(2):
        hidden = [3 + i for i in range(3 * rows) if i not in kept_patches[sample]]
        expected = explicit(traced, images[sample : sample + 1], hidden=hidden).logits.float()
        torch.testing.assert_close(found[sample : sample + 1], expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(traced(images, kept_patches=torch.arange(3 * rows).expand(2, -1)), traced(images))


@pytest.mark.parametrize("method", [attnlrp, legrad, libra_fullgrad, relevance])
def test_the_likeliest_class_is_the_default_and_dropped_patches_are_zero(network, method):
    model, images, kept_patches = network(), torch.randn(2, 3, 16, 16), torch.tensor([[0, 5, 9, 15], [3, 4, 9, 10]])
    likeliest = model(images, kept_patches=kept_patches).argmax(1)
    found = method(model, images, kept_patches=kept_patches)
    torch.testing.assert_close(found, method(model, images, likeliest, kept_patches=kept_patches))
    assert [one.flatten().nonzero()[:, 0].tolist() for one in found] == kept_patches.tolist()
