"""See a Vision Transformer think: the patch grid, the prediction, the attention, from one call.

Example:
    >>> import vit_demo
    >>> ex = vit_demo.explore("photo.jpg", preset="photos-tiny", patch_size=12)
    >>> ex.top(3), ex.rollout().shape
"""

from vit_demo.errors import (
    BusyError,
    CheckpointError,
    EmptySketchError,
    ImageError,
    InputError,
    LabelError,
    PresetError,
)
from vit_demo.inference.engine import Engine, explore
from vit_demo.inference.exploration import Exploration
from vit_demo.model import ViT
from vit_demo.version import __version__
from vit_demo.weights import PRESETS, Preset, find_preset, load_model

__all__ = [
    "BusyError",
    "CheckpointError",
    "EmptySketchError",
    "Engine",
    "Exploration",
    "ImageError",
    "InputError",
    "LabelError",
    "Preset",
    "PresetError",
    "__version__",
    "explore",
    "load",
    "presets",
]


def presets() -> dict[str, Preset]:
    """Every preset by name."""
    return dict(PRESETS)


def load(preset: str, patch_size: int | None = None, device: str = "cpu") -> ViT:
    """The trained network itself, in eval mode, cutting patches of the size asked for.

    Raises:
        PresetError: If there is no such preset, or it does not know the patch size.
        CheckpointError: If the weights cannot be used.
    """
    return load_model(find_preset(preset), patch_size).to(device)
