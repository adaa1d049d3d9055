"""The networks that have a name, loaded once for all results of this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from vit_demo.inference.cache import MODEL_BYTES, ByteCache
from vit_demo.inference.forward import retry_with_less_memory, run_on
from vit_demo.trace import TracedViT
from vit_demo.weights import Preset
from vit_demo.weights.checkpoints import load_model
from vit_demo.weights.taught import with_classes

T = TypeVar("T")

_networks: ByteCache[TracedViT] = ByteCache(MODEL_BYTES, lambda network: network.num_bytes, growing=True)


@dataclass(frozen=True)
class Named:
    """Runs functions on the network of a preset; as a part of a result it is small, also in a pickle."""

    preset: Preset
    patch_size: int
    device: str

    def network(self, device: torch.device) -> TracedViT:
        """The network, which is loaded once for all results."""
        preset = self.preset.own
        size = self.patch_size if preset.library else 0  # a network of another library is a copy for each patch size
        name = preset.checkpoint_name(self.patch_size)
        key = (name, preset.repo, preset.revision, size, preset.scores, str(device))
        found = _networks.get(key)
        if found is None:
            _networks.put(key, found := load_model(preset, self.patch_size).to(device).keep_sizes())
        return with_classes(found, self.preset)

    def __call__(self, function: Callable[..., T], /, *arguments: Any, slow: bool = False, **options: Any) -> T:
        """As ``RunOnModel``."""

        def attempt(device: torch.device) -> T:
            return run_on(self.network(device), device, function, arguments, {**options, "patch_size": self.patch_size})

        return retry_with_less_memory(attempt, torch.device(self.device))
