"""The presets, and their weights: bundled, from the Hugging Face Hub, or in a folder of the user's.

The table of presets is there without torch.
"""

import warnings
from typing import TYPE_CHECKING

from vit_demo.lazy import lazy_names
from vit_demo.weights.preset import Preset
from vit_demo.weights.presets import DEFAULT_PRESETS, PRESETS, find_preset

if TYPE_CHECKING:
    from vit_demo.weights.checkpoints import load_model
    from vit_demo.weights.hf_weights import fetch_weights, is_on_machine
    from vit_demo.weights.hub import Progress

__all__ = [
    "DEFAULT_PRESETS",
    "PRESETS",
    "Preset",
    "Progress",
    "fetch_weights",
    "find_preset",
    "is_on_machine",
    "load_model",
]

# huggingface_hub imports a progress bar that warns in Jupyter without ipywidgets; it is not used here.
warnings.filterwarnings("ignore", message="IProgress not found")

__getattr__ = lazy_names(
    __name__,
    {
        "Progress": "vit_demo.weights.hub",
        "fetch_weights": "vit_demo.weights.hf_weights",
        "is_on_machine": "vit_demo.weights.hf_weights",
        "load_model": "vit_demo.weights.checkpoints",
    },
)
