"""Networks that people train themselves, in memory under a name of their own."""

import pytest
import torch

from vit_demo.errors import PresetError
from vit_demo.model import ViT
from vit_demo.model.config import MNIST_FROM_SCRATCH
from vit_demo.weights import find_preset
from vit_demo.weights.checkpoints import load_model
from vit_demo.weights.trained import keep


@pytest.mark.parametrize(("is_before", "title"), [(False, "Yours (88 %)"), (True, "Yours before training (88 %)")])
def test_a_network_in_memory_is_a_preset(is_before, title):
    torch.manual_seed(0)
    model, images = ViT(MNIST_FROM_SCRATCH).eval(), torch.rand(1, 1, 28, 28)
    preset = find_preset(keep(model, 0.876, is_before=is_before))
    assert preset.title == title and preset.labels == tuple("0123456789")
    assert preset.config == MNIST_FROM_SCRATCH and preset.patch_sizes == (4,)
    assert torch.equal(load_model(preset)(images), model(images))


def test_a_name_whose_network_is_gone_gets_a_sentence():
    with pytest.raises(PresetError, match="gone"):
        find_preset("yours-" + "a" * 22)
