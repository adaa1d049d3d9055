"""The table of presets: which models there are, what they were trained for, and the patch sizes they know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch

from vit_demo.errors import PresetError
from vit_demo.vit import ViT, ViTConfig
from vit_demo.vit.config import MNIST_FROM_SCRATCH

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
        patch_sizes: Sizes it was trained for, in pixels, ascending.
        default_patch_size: The one to start with.
        flexible: One set of weights was trained for all sizes; otherwise each size has weights of its own.
        source: ``"bundled"``: the weights ship with the package.
        mean: Of each channel, in [0, 1], taken off before the network.
        std: Of each channel, divided by.
        sure: Probability of the first answer from which it may be said plainly; below it the model is not sure.
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
    sure: float = 0.5
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

    @cached_property
    def num_parameters(self) -> int:
        """Numbers in the network, counted without making it."""
        with torch.device("meta"):
            return sum(p.numel() for p in ViT(self.config).parameters())

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
        """The network whose weights serve a patch size: the same for all sizes of a flexible preset."""
        return self.config if self.flexible else replace(self.config, patch_size=patch_size)

    def weights_name(self, patch_size: int) -> str:
        """Stem of the file that holds the weights for a patch size."""
        return self.name if self.flexible else f"{self.name}-{patch_size}"


_DIGIT_LABELS = tuple("0123456789")
_HALF = (0.5, 0.5, 0.5)
# A kernel as large as the largest patch and a grid as fine as the smallest one's: no size is short of weights.
_FLEXIBLE_DIGITS = ViTConfig(image_size=28, patch_size=14, position_grid=14, in_channels=1, num_classes=10)

_PHOTO_LABELS = (
    "tabby cat", "golden retriever", "German shepherd", "Chihuahua", "lion", "brown bear", "African elephant",
    "red panda", "koala", "king penguin", "goldfish", "ladybug", "monarch butterfly", "jellyfish", "sports car",
    "school bus", "tractor", "bullet train", "gondola", "pizza", "banana", "orange", "lemon", "mushroom", "ice cream",
    "espresso", "bell pepper", "umbrella", "teapot", "teddy bear", "computer keyboard", "backpack", "sunglasses",
    "rocking chair", "suspension bridge", "lighthouse", "barn", "seashore", "alp", "fountain",
    "tench", "English springer", "cassette player", "chain saw", "church", "French horn", "garbage truck", "gas pump",
    "golf ball", "parachute",
)  # fmt: skip

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="digits-small",
            title="Digits, small",
            task="digits",
            config=replace(_FLEXIBLE_DIGITS, embed_dim=128, depth=6, num_heads=4),
            labels=_DIGIT_LABELS,
            patch_sizes=(2, 4, 7, 14),
            default_patch_size=4,
            flexible=True,
            source="bundled",
            mean=(0.1307,),
            std=(0.3081,),
            sure=0.8,  # at most one of a hundred of MNIST's validation digits is doubted
            note="One set of weights, trained for all four patch sizes at once.",
        ),
        Preset(
            name="digits-tiny",
            title="Digits, tiny",
            task="digits",
            config=replace(_FLEXIBLE_DIGITS, embed_dim=64, depth=6, num_heads=4),
            labels=_DIGIT_LABELS,
            patch_sizes=(2, 4, 7, 14),
            default_patch_size=4,
            flexible=True,
            source="bundled",
            mean=(0.1307,),
            std=(0.3081,),
            sure=0.8,  # at most one of a hundred of MNIST's validation digits is doubted
            note="One set of weights, trained for all four patch sizes at once.",
        ),
        Preset(
            name="digits-notebook",
            title="Digits, the MNIST notebook",
            task="digits",
            config=MNIST_FROM_SCRATCH,
            labels=_DIGIT_LABELS,
            patch_sizes=(4, 7, 14),
            default_patch_size=4,
            flexible=False,
            source="bundled",
            mean=(0.1307,),
            std=(0.3081,),
            note="Tokens of 8 numbers, as in the notebook: quick to train, often wrong, weights of its own per size.",
        ),
        Preset(
            name="photos-tiny",
            title="Photos, 50 everyday things",
            task="photos",
            config=ViTConfig(
                image_size=96, patch_size=24, position_grid=12, num_classes=50, embed_dim=192, depth=6, num_heads=3
            ),
            labels=_PHOTO_LABELS,
            patch_sizes=(8, 12, 16, 24),
            default_patch_size=8,
            flexible=True,
            source="bundled",
            mean=_HALF,
            std=_HALF,
            note="Sees 96 x 96 pixels and knows 50 things; anything else gets the nearest of them.",
        ),
    )
}
"""Every preset by name, in the order in which a page lists them."""


def find_preset(name: str) -> Preset:
    """A preset by its name.

    Raises:
        PresetError: If there is none of that name.
    """
    try:
        return PRESETS[name]
    except (KeyError, TypeError):
        raise PresetError(f"There is no preset {name!r}: choose one of {', '.join(PRESETS)}.") from None
