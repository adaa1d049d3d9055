"""The presets, and their weights: bundled, from the Hugging Face Hub, or in a folder of the user's.

The table of presets is there without torch, which ``checkpoints`` and ``hub`` import.
"""

import warnings

from vit_demo.weights.find import find_preset
from vit_demo.weights.preset import Preset
from vit_demo.weights.presets import DEFAULT_PRESETS, PRESETS

__all__ = ["DEFAULT_PRESETS", "PRESETS", "Preset", "find_preset"]

# huggingface_hub imports a progress bar that warns in Jupyter without ipywidgets; it is not used here.
warnings.filterwarnings("ignore", message="IProgress not found")
