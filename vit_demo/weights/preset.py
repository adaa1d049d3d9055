"""One model that a visitor can choose, as a frozen record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import torch

from vit_demo.errors import PresetError
from vit_demo.model import ViT, ViTConfig

Task = Literal["digits", "photos"]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A model that a visitor can choose.

    Attributes:
        name: As in ``explore(image, preset=name)``.
        title: For people.
        task: ``"digits"``: grey 28 x 28 drawings. ``"photos"``: RGB.
        config: The network. Its patch size is that of the stored kernel, not the one to start with.
        labels: The name of each output.
        patch_sizes: Sizes it offers, in pixels, ascending.
        default_patch_size: The one to start with.
        flexible: One set of weights was trained for all sizes. Otherwise bundled weights are of their own for each
            size, and fetched ones were trained for one size and are resampled for the others.
        source: ``"bundled"``: the weights ship with the package; ``"hub"``: they are fetched on first use;
            ``"folder"``: they are the user's own.
        mean: Of each channel, in [0, 1], taken off before the network.
        std: Of each channel, divided by.
        crop_fraction: Share of a photo's shorter side that the network sees.
        interpolation: How a photo is resized.
        repo: Of a model of the Hub its repository, of a folder its path; empty for a bundled one.
        revision: Of the repository: a commit, a tag or a branch.
        trusted: Whether whoever runs this process named it, as in ``hub.fetch``.
        confidence_threshold: Probability of the prediction from which it is stated plainly; below it the page says
            that confidence is low.
        note: One sentence for the page.
    """

    name: str
    title: str
    task: Task
    config: ViTConfig
    labels: tuple[str, ...]
    patch_sizes: tuple[int, ...]
    default_patch_size: int
    flexible: bool
    source: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop_fraction: float = 1.0
    interpolation: str = "bicubic"
    repo: str = ""
    revision: str = ""
    trusted: bool = True
    confidence_threshold: float = 0.5
    note: str = ""

    @property
    def image_size(self) -> int:
        """Side of the square input, in pixels."""
        return self.config.image_size

    @property
    def num_blocks(self) -> int:
        """Transformer blocks."""
        return self.config.depth

    @property
    def num_heads(self) -> int:
        """Attention heads of a block."""
        return self.config.num_heads

    @property
    def num_parameters(self) -> int:
        """Numbers in the network that serves the default patch size."""
        return self.num_parameters_at(self.default_patch_size)

    def num_parameters_at(self, patch_size: int) -> int:
        """Numbers in the network that serves a patch size; another one only where each size has weights of its own.

        Raises:
            PresetError: If the preset does not know that size.
        """
        return _count_parameters(self.config_at(self.check_patch_size(patch_size)))

    def check_patch_size(self, patch_size: int | None) -> int:
        """The patch size to use: the default for None.

        Raises:
            PresetError: If the preset does not know that size.
        """
        if patch_size is None:
            return self.default_patch_size
        if patch_size not in self.patch_sizes:
            known = ", ".join(map(str, self.patch_sizes))
            raise PresetError(f"{self.name} has no patch size {patch_size}: choose one of {known}.")
        return patch_size

    def config_at(self, patch_size: int) -> ViTConfig:
        """The network whose weights serve a patch size."""
        return self.config if self._one_for_all else replace(self.config, patch_size=patch_size)

    def checkpoint_name(self, patch_size: int) -> str:
        """Stem of the file that holds the weights for a patch size; where they are fetched, what they are called."""
        return self.name if self._one_for_all else f"{self.name}-{patch_size}"

    def is_resampled(self, patch_size: int) -> bool:
        """Whether the weights were never trained for this patch size, so that accuracy is lost."""
        return self.source != "bundled" and not self.flexible and patch_size != self.config.patch_size

    @property
    def _one_for_all(self) -> bool:
        return self.flexible or self.source != "bundled"


@lru_cache(maxsize=256)
def _count_parameters(config: ViTConfig) -> int:
    """Numbers in a network, counted without making it."""
    with torch.device("meta"):
        return sum(p.numel() for p in ViT(config).parameters())
