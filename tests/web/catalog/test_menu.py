"""What the menu says of each model, against the networks themselves."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from vit_demo import Trace
from vit_demo.web.catalog.menu import model_entry
from vit_demo.weights import PRESETS
from vit_demo.weights.checkpoints import load_model

BUNDLED = [name for name, preset in PRESETS.items() if preset.source == "bundled"]


@pytest.mark.parametrize("name", BUNDLED)
def test_what_the_menu_counts_is_what_the_network_does(name: str) -> None:
    preset, entry = PRESETS[name], model_entry(PRESETS[name])
    assert [size["size"] for size in entry["sizes"]] == list(preset.patch_sizes)
    assert preset.default_patch_size == entry["default_patch_size"]
    for size in entry["sizes"]:
        model = load_model(preset, size["size"])
        images = torch.zeros(1, model.config.in_channels, preset.image_size, preset.image_size)
        with torch.no_grad(), Trace() as trace:
            model(images, patch_size=size["size"])  # resamples the kernel, once
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(images, patch_size=size["size"])
        tokens = trace.q[0].shape[2]
        assert size["tokens"] == tokens and isinstance(size["side"], int)
        assert size["side"] ** 2 + model.config.num_prefix_tokens == tokens
        assert 2 * size["operations"] == counter.get_total_flops()
        assert f"{size['side']} × {size['side']} patches" in size["text"] and f"*{tokens} tokens*" in size["text"]
        assert size["accuracy"] is None or f"Right on {size['accuracy']:.1f}" in size["accuracy_text"]
    assert entry["num_blocks"] == len(trace.q) and entry["num_classes"] == len(preset.labels)
    assert entry["on_machine"]


def test_the_menu_says_what_an_accuracy_is_about() -> None:
    about = {name: model_entry(preset)["test_set"] for name, preset in PRESETS.items()}
    assert about["digits-small"] == about["digits-notebook"] == "MNIST test"
    assert about["photos-tiny"] == "everyday photos"
    assert about["vit-s16"] == "ImageNet, published" and about["clip-b16"] == ""
