"""Networks that people train themselves, in memory under a name of their own."""

from types import SimpleNamespace

import pytest
import torch

from vit_demo.errors import PresetError
from vit_demo.model import ViT
from vit_demo.model.config import MNIST_FROM_SCRATCH
from vit_demo.training.small import DEFAULT_CONFIG, random_network
from vit_demo.weights import find_preset, trained
from vit_demo.weights.checkpoints import load_model
from vit_demo.weights.trained import keep, keep_before


@pytest.mark.parametrize(("is_before", "title"), [(False, "Yours (88 %)"), (True, "Yours before training (88 %)")])
def test_a_network_in_memory_is_a_preset(is_before, title):
    torch.manual_seed(0)
    model, images = ViT(MNIST_FROM_SCRATCH).eval(), torch.rand(1, 1, 28, 28)
    name = keep_before(lambda: model, model.config, 0.876) if is_before else keep(model, 0.876)
    preset = find_preset(name)
    assert preset.title == title and preset.labels == tuple("0123456789")
    assert preset.config == MNIST_FROM_SCRATCH and preset.patch_sizes == (4,)
    assert torch.equal(load_model(preset)(images), model(images))


def test_a_class_behind_one_address_keeps_thirty_networks(monkeypatch):
    kept, network = networks_of(1 << 31, monkeypatch), random_network(DEFAULT_CONFIG, 0)
    names = [keep(network, 0.5, "a class") for _ in range(30)]
    assert all(kept.get(name) for name in names)


@pytest.mark.parametrize("memory", [1 << 31, 1 << 35])
def test_an_address_drives_out_only_its_own_networks(memory, monkeypatch):
    kept, network = networks_of(memory, monkeypatch), random_network(DEFAULT_CONFIG, 0)
    mine = [keep(network, 0.5, "me") for _ in range(3)]
    for n in range(5):
        theirs = [keep(network, 0.5, f"address {n}") for _ in range(400)]
        assert not kept.get(theirs[0]) and kept.get(theirs[-1])
    assert all(kept.get(name) for name in mine)
    assert sum(nbytes for _, _, nbytes, _ in kept._kept.values()) <= kept.max_bytes


def networks_of(memory, monkeypatch):
    """The networks of a server with so much memory."""
    found = trained.Shares(*trained.shares_of(memory))
    monkeypatch.setattr(trained, "networks", found)
    return found


def test_a_network_before_its_training_takes_no_memory_and_an_hour_is_an_hour(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(trained, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    kept = networks_of(1 << 31, monkeypatch)
    name = keep_before(lambda: random_network(DEFAULT_CONFIG, 7), DEFAULT_CONFIG, 0.1)
    assert kept._kept[name][2] < 2000
    clock[0] = 3599.0
    assert kept.get(name)
    clock[0] = 3601.0
    assert not kept.get(name) and not kept._kept


def test_a_name_whose_network_is_gone_gets_a_sentence():
    with pytest.raises(PresetError, match="gone"):
        find_preset("yours-" + "a" * 22)
