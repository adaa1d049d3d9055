"""Other patch sizes and pictures of other shapes, against what the libraries do themselves."""

from typing import Any

import pytest
import torch
from torch import nn

from vit_demo.errors import PresetError
from vit_demo.methods import METHODS, attention_matrix
from vit_demo.trace import Trace, TracedViT, adapt

from .networks import NETWORKS, of_this_package, own, plain, timm_vit

pytestmark = pytest.mark.filterwarnings("ignore")

RESIZABLE = [name for name in NETWORKS if name.startswith("timm") and "relpos" not in name]


@pytest.mark.parametrize("patch_size", [4, 16])
@pytest.mark.parametrize("name", RESIZABLE)
def test_a_network_of_timm_is_resized_as_timm_does_it(name: str, patch_size: int, images) -> None:
    module, theirs = NETWORKS[name](), NETWORKS[name]()
    network = adapt(module, 32)
    with torch.no_grad():
        theirs.set_input_size(img_size=(32, 32), patch_size=(patch_size, patch_size))
        before, expected = module(images), theirs(images)
        resized, recording = network.resized(patch_size), Trace()
        assert torch.equal(resized(images, recording), expected)
        assert torch.equal(module(images), before) and network.patch_size == 8
        side = 32 // patch_size
        assert recording.grid == (side, side) and resized.patch_size == resized.config.patch_size == patch_size
        assert recording.num_tokens == side**2 + network.config.num_prefix_tokens
        kept = torch.arange(0, side**2, 2).expand(2, -1)
        found = resized(images, kept_patches=kept)
        resized.leaves_out = False
        torch.testing.assert_close(found, resized(images, kept_patches=kept), atol=1e-5, rtol=1e-4)


def test_a_patch_size_that_does_not_divide_leaves_a_margin_out(images) -> None:
    theirs = NETWORKS["timm vit"]()
    resized = adapt(NETWORKS["timm vit"](), 32).resized(5)
    theirs.set_input_size(img_size=(30, 30), patch_size=(5, 5))
    with torch.no_grad():
        assert resized.config.image_size == 30
        assert torch.equal(resized(images[..., :30, :30]), theirs(images[..., :30, :30]))


def test_our_network_shares_its_weights_with_the_resized_one(images) -> None:
    network = adapt(NETWORKS["ours"](), 32)
    assert network.num_bytes == sum(x.nbytes for x in network.module.state_dict().values())
    resized = network.resized(4)
    with torch.no_grad():
        assert torch.equal(resized(images), network.module(images, patch_size=4))
    assert resized.module is network.module and network.patch_size == 8 and network.resized(8) is network
    with pytest.raises(PresetError, match="leave patch_size out"):
        adapt(own(), 32).resized(4)


ANY_SIZE: dict[str, dict[str, Any]] = {
    name: {"interpolate_pos_encoding": True} if name.startswith("transformers") and "DINOv3" not in name else {}
    for name in NETWORKS
    if name.startswith(("ours", "transformers"))
}
NETWORKS_OF_ANY_SIZE = {name: NETWORKS[name] for name in ANY_SIZE} | {"timm": timm_vit(dynamic_img_size=True)}


@pytest.mark.parametrize("name", NETWORKS_OF_ANY_SIZE)
@pytest.mark.parametrize("size", [(16, 40), (48, 32)])
def test_pictures_of_other_shapes_are_run_as_the_library_runs_them(name: str, size: tuple[int, int]) -> None:
    images, recording = torch.randn(2, 3, *size), Trace()
    network = adapt(NETWORKS_OF_ANY_SIZE[name](), 32)
    assert network.structure.takes_any_size
    with torch.no_grad():
        logits = network(images, recording)
        expected = plain(network.module, images, **ANY_SIZE.get(name, {}))
        torch.testing.assert_close(logits, expected, atol=1e-6, rtol=1e-5)
    grid = size[0] // 8, size[1] // 8
    assert recording.grid == grid
    assert recording.num_tokens == grid[0] * grid[1] + network.config.num_prefix_tokens
    torch.testing.assert_close(attention_matrix(recording, 0).sum(-1), torch.ones(2, 3, recording.num_tokens))
    assert METHODS["relevance"].compute(network, images, 3).shape == (2, *grid)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in ANY_SIZE])
def test_a_network_of_one_size_says_so(name: str) -> None:
    network: TracedViT = adapt(NETWORKS[name](), 32)
    assert not network.structure.takes_any_size


def test_a_stem_that_cuts_off_what_does_not_fit_takes_no_other_size() -> None:
    """Its tokens would not be those of the patches."""

    class Cropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = of_this_package()()

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.inner(nn.functional.interpolate(images, (32, 32)))

    assert not adapt(Cropping(), 32).structure.takes_any_size
