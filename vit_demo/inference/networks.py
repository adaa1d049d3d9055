"""Networks that have a name, each in memory once, and what runs on one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from vit_demo.inference.cache import ByteCache
from vit_demo.inference.forward import retry_with_less_memory, run_on
from vit_demo.resources import memory_limit, release_memory
from vit_demo.trace import TracedViT
from vit_demo.weights import Preset
from vit_demo.weights.checkpoints import load_model
from vit_demo.weights.taught_heads import with_classes

T = TypeVar("T")

MODEL_BYTES = min(5 << 30, memory_limit() // 4)  # networks in memory; the least recently used is evicted


class Networks(ByteCache[TracedViT]):
    """The networks of presets, within ``MODEL_BYTES``."""

    def __init__(self) -> None:
        super().__init__(MODEL_BYTES, lambda network: network.num_bytes, growing=True)

    @staticmethod
    def key(preset: Preset, patch_size: int, device: torch.device) -> tuple[str, str, str, int, str, str]:
        """What a network is kept under; first the name of its checkpoint."""
        preset = preset.own
        size = patch_size if preset.library else 0  # a network of another library is a copy for each patch size
        name = preset.checkpoint_name(patch_size)
        return name, preset.repo, preset.revision, size, preset.scores, str(device)

    @staticmethod
    def load(preset: Preset, patch_size: int, device: torch.device) -> TracedViT:
        """A network that is not here yet, on a device."""
        if preset.is_downloaded or preset.is_folder:
            release_memory()  # of evicted networks
        network = load_model(preset, patch_size).to(device)
        return network if preset.is_kept else network.keep_sizes()


_networks = Networks()


@dataclass(frozen=True)
class Named:
    """Runs functions on the network of a preset; as a part of a result it is small, also in a pickle."""

    preset: Preset
    patch_size: int
    device: str

    def network(self, device: torch.device) -> TracedViT:
        """The network, which is loaded once for all results."""
        found = _networks.get(key := Networks.key(self.preset, self.patch_size, device))
        if found is None:
            _networks.put(key, found := Networks.load(self.preset, self.patch_size, device))
        return with_classes(found, self.preset)

    def __call__(self, function: Callable[..., T], /, *arguments: Any, slow: bool = False, **options: Any) -> T:
        """As ``RunOnModel``."""

        def attempt(device: torch.device) -> T:
            return run_on(self.network(device), device, function, arguments, {**options, "patch_size": self.patch_size})

        return retry_with_less_memory(attempt, torch.device(self.device))
