"""The starting points of the section Build, against the presets and the notebooks' configs."""

from vit_demo.model import ViTConfig
from vit_demo.model.config import ANNOTATED_VIT, EINOPS_VIT, MNIST_FROM_SCRATCH, VIT_TINY
from vit_demo.web.catalog.menu import starting_points
from vit_demo.weights import PRESETS


def test_every_notebook_and_preset_of_this_packages_network_is_a_starting_point() -> None:
    start = starting_points()
    networks = {
        entry["title"]: (ViTConfig(**{**start["defaults"], **entry["config"]}), entry["patch_size"])
        for entry in start["networks"]
    }
    notebooks = (VIT_TINY, MNIST_FROM_SCRATCH, EINOPS_VIT, ANNOTATED_VIT)
    assert [config for config, _ in networks.values()][:4] == list(notebooks)
    own = {name: preset for name, preset in PRESETS.items() if not preset.library}
    assert list(networks)[4:] == list(own) and "dinov3-s16" not in own
    for name, preset in own.items():
        config, patch_size = networks[name]
        assert (config, patch_size) == (preset.config_at(preset.default_patch_size), preset.default_patch_size)
