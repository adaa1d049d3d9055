"""The presets, and their weights: bundled, from the Hugging Face Hub, or in a folder of the user's."""

from vit_demo.weights.checkpoints import load_model
from vit_demo.weights.hf_weights import fetch_weights
from vit_demo.weights.hub import Progress
from vit_demo.weights.preset import Preset
from vit_demo.weights.presets import PRESETS, find_preset

__all__ = ["PRESETS", "Preset", "Progress", "fetch_weights", "find_preset", "load_model"]
