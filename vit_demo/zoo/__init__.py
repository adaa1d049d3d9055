"""Which models there are and where their weights live."""

from vit_demo.zoo.checkpoints import load_model
from vit_demo.zoo.foreign import fetch_weights
from vit_demo.zoo.hub import Progress
from vit_demo.zoo.preset import Preset
from vit_demo.zoo.presets import PRESETS, find_preset

__all__ = ["PRESETS", "Preset", "Progress", "fetch_weights", "find_preset", "load_model"]
