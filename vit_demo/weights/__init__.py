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
    from vit_demo.weights.hub.download import Progress
    from vit_demo.weights.hub.repository import fetch_files, is_on_machine

__all__ = [
    "DEFAULT_PRESETS",
    "PRESETS",
    "Preset",
    "Progress",
    "fetch_files",
    "find_preset",
    "is_on_machine",
    "load_model",
]

# huggingface_hub imports a progress bar that warns in Jupyter without ipywidgets; it is not used here.
warnings.filterwarnings("ignore", message="IProgress not found")

__getattr__ = lazy_names(
    __name__,
    {
        "Progress": "vit_demo.weights.hub.download",
        "fetch_files": "vit_demo.weights.hub.repository",
        "is_on_machine": "vit_demo.weights.hub.repository",
        "load_model": "vit_demo.weights.checkpoints",
    },
)
