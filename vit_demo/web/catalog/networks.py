"""The networks from which a visitor starts in the section Build, as JSON for the page."""

from typing import Any

from vit_demo.model import ViTConfig
from vit_demo.model.config import ANNOTATED_VIT, EINOPS_VIT, MNIST_FROM_SCRATCH, VIT_TINY
from vit_demo.weights import PRESETS

_NOTEBOOKS = {
    "ViT-Tiny": VIT_TINY,
    "MNIST from scratch": MNIST_FROM_SCRATCH,
    "einops ViT": EINOPS_VIT,
    "annotated ViT": ANNOTATED_VIT,
}
_DEFAULTS = ViTConfig().to_dict()


def starting_points() -> dict[str, Any]:
    """The four notebooks and the presets of this package's network, and the defaults of ``ViTConfig``.

    Returns:
        ``{"defaults": all fields, "networks": [{"group", "title", "config", "patch_size"}, ...]}``, where ``config``
        holds the fields that differ from the defaults, which the page's code leaves out. The patch size is the one at
        which the network runs, which for a flexible preset is not that of its stored kernel.
    """
    notebooks = [_entry("Notebooks", title, config, config.patch_size) for title, config in _NOTEBOOKS.items()]
    presets = [
        _entry("Presets", preset.name, preset.config_at(preset.default_patch_size), preset.default_patch_size)
        for preset in PRESETS.values()
        if not preset.library
    ]
    return {"defaults": _DEFAULTS, "networks": [*notebooks, *presets]}


def _entry(group: str, title: str, config: ViTConfig, patch_size: int) -> dict[str, Any]:
    fields = {name: value for name, value in config.to_dict().items() if value != _DEFAULTS[name]}
    return {"group": group, "title": title, "config": fields, "patch_size": patch_size}
