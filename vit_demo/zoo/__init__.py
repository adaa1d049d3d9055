"""Which models there are and where their weights live."""

from vit_demo.zoo.checkpoints import load_model
from vit_demo.zoo.presets import PRESETS, Preset, find_preset

__all__ = ["PRESETS", "Preset", "find_preset", "load_model"]
