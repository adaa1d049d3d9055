"""The accelerator is the one that torch finds, whatever its kind, and people read its name."""

import types

import pytest
import torch

from vit_demo.accelerator import best_device, device_name
from vit_demo.inference.forward import _free_memory


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu", "hpu"])
def test_the_best_device_is_what_torch_finds(kind: str, monkeypatch: pytest.MonkeyPatch):
    found = torch.device(kind)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: found)
    assert best_device() == best_device(forked=True) == found
    with monkeypatch.context() as on_zero_gpu:
        on_zero_gpu.setattr("vit_demo.accelerator.ZERO_GPU", True)
        assert best_device(forked=True) == found and best_device() == torch.device("cpu")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: None)
    assert best_device() == torch.device("cpu")


def test_names_are_those_of_the_hardware_where_torch_knows_them(monkeypatch: pytest.MonkeyPatch):
    names = {"cuda": "NVIDIA H100", "xpu": "Intel Arc B580"}
    for kind, name in names.items():
        monkeypatch.setattr(getattr(torch, kind), "get_device_name", lambda device, name=name: f"{name} ({device})")
        assert device_name(torch.device(kind, 1)) == f"{name} ({kind}:1)"
    assert device_name(torch.device("mps")) == "Apple GPU"
    assert device_name(torch.device("cpu")) == "CPU"
    for kind in ("xla", "hpu", "meta"):
        assert device_name(torch.device(kind)) == kind.upper()


def test_memory_is_freed_on_any_accelerator_that_can(monkeypatch: pytest.MonkeyPatch):
    freed = []
    for kind in ("cuda", "mps", "xpu"):
        monkeypatch.setattr(torch, kind, types.SimpleNamespace(empty_cache=lambda kind=kind: freed.append(kind)))
    for kind in ("cuda", "mps", "xpu", "cpu", "xla"):
        _free_memory(torch.device(kind))
    assert freed == ["cuda", "mps", "xpu"]
