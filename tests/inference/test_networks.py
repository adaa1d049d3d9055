"""The store of networks, as a caller's results and the engine use it."""

from dataclasses import replace

import pytest
import torch

from vit_demo.inference import networks
from vit_demo.inference.networks import Named, Networks
from vit_demo.model import ViT, ViTConfig
from vit_demo.service.engine import Engine
from vit_demo.trace import OwnViT
from vit_demo.weights import PRESETS

CPU = torch.device("cpu")
SMALL = ViTConfig(image_size=28, patch_size=7, in_channels=1, num_classes=10, embed_dim=16, depth=1, num_heads=1)


@pytest.fixture
def loads(monkeypatch) -> list[str]:
    """The names of the networks that are loaded, as they are."""
    names: list[str] = []

    def load(preset, patch_size):
        names.append(preset.repo)
        return OwnViT(ViT(SMALL).eval())

    monkeypatch.setattr(networks, "load_model", load)
    return names


@pytest.mark.parametrize("user", ["results", "engine"])
def test_a_network_is_loaded_once_and_again_after_others_needed_its_bytes(user, loads, monkeypatch):
    one, engine = Networks(), Engine("cpu")
    monkeypatch.setattr(networks, "_networks", one)
    store = engine._models if user == "engine" else one
    store.max_bytes = int(2.5 * (OwnViT(ViT(SMALL)).num_bytes + 1000))

    def use(name):
        preset = replace(PRESETS["digits-tiny"], source="hub", repo=name)
        return engine.model(preset, 7) if user == "engine" else Named(preset, 7, "cpu").network(CPU)

    first = use("a")
    assert use("b") is not first and use("a") is first and loads == ["a", "b"]
    use("c")  # "b" was not used for longest
    assert use("a") is first and loads == ["a", "b", "c"]
    use("b")
    assert loads == ["a", "b", "c", "b"] and store.num_bytes <= store.max_bytes


def test_only_networks_of_other_libraries_are_copies_for_each_patch_size_and_devices_share_none():
    preset = PRESETS["digits-tiny"]
    assert Networks.key(preset, 4, CPU) == Networks.key(preset, 7, CPU)
    other = replace(PRESETS["vit-ti16"], library="timm")
    assert Networks.key(other, 16, CPU) != Networks.key(other, 32, CPU)
    assert Networks.key(preset, 4, CPU) != Networks.key(preset, 4, torch.device("meta"))
    assert Networks.key(preset, 4, CPU) != Networks.key(replace(preset, scores="sigmoid"), 4, CPU)
