"""See how a Vision Transformer works: the patch grid, the prediction, the attention, from one call.

Importing the package is fast: torch is loaded with the first name that needs it.

Example:
    >>> import vit_demo
    >>> ex = vit_demo.explore("photo.jpg")
    >>> ex.top(3), ex.rollout().shape
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from vit_demo import inference
from vit_demo.errors import (
    BusyError,
    CheckpointError,
    EmptyDrawingError,
    ImageError,
    InputError,
    LabelError,
    PresetError,
)
from vit_demo.version import __version__

if TYPE_CHECKING:
    from vit_demo.auditing import audit
    from vit_demo.cli.report import report
    from vit_demo.inference.explainer import Explainer
    from vit_demo.inference.exploration import Exploration
    from vit_demo.inference.explore import explore, explore_batch
    from vit_demo.inference.loaded import load_result
    from vit_demo.inference.saved import table
    from vit_demo.methods import Method, list_methods
    from vit_demo.model import ViT
    from vit_demo.service.engine import Engine
    from vit_demo.teaching.teach import teach
    from vit_demo.trace import Trace, TracedViT
    from vit_demo.training.small import train_small
    from vit_demo.web.notebook.gallery import gallery
    from vit_demo.weights import Preset

    def methods() -> dict[str, Method]:
        """Every registered method by name; at run time the package ``vit_demo.methods``, which can be called."""


__all__ = [
    "BusyError",
    "CheckpointError",
    "EmptyDrawingError",
    "Engine",
    "Explainer",
    "Exploration",
    "ImageError",
    "InputError",
    "LabelError",
    "Preset",
    "PresetError",
    "Trace",
    "__version__",
    "audit",
    "explore",
    "explore_batch",
    "gallery",
    "list_methods",
    "load",
    "load_result",
    "methods",
    "presets",
    "report",
    "table",
    "teach",
    "train_small",
]

_HOMES = {
    "Engine": "vit_demo.service.engine",
    "Explainer": "vit_demo.inference.explainer",
    "Exploration": "vit_demo.inference.exploration",
    "Preset": "vit_demo.weights",
    "Trace": "vit_demo.trace",
    "audit": "vit_demo.auditing",
    "explore": "vit_demo.inference.explore",
    "explore_batch": "vit_demo.inference.explore",
    "gallery": "vit_demo.web.notebook.gallery",
    "list_methods": "vit_demo.methods",
    "load_result": "vit_demo.inference.loaded",
    "report": "vit_demo.cli.report",
    "table": "vit_demo.inference.saved",
    "teach": "vit_demo.teaching.teach",
    "train_small": "vit_demo.training.small",
}
"""The modules of the names that are imported on first use."""

_PACKAGES = ("features", "images", "inference", "methods", "metrics", "model", "render", "weights")


def presets() -> dict[str, "Preset"]:
    """Every preset by name."""
    from vit_demo.weights import PRESETS

    return dict(PRESETS)


def load(model: "str | os.PathLike[str]", *, patch_size: int | None = None, device: str = "cpu") -> "ViT | TracedViT":
    """The trained network itself, in eval mode: ``model(x, patch_size=p)`` gives logits, ``model.config`` its shape.

    Args:
        model: Name of the preset, a repository of the Hub (``org/name``), or a folder.
        patch_size: In pixels; the preset's default for None.
        device: Where to put it: ``"cpu"``, ``"cuda"`` or ``"mps"``.

    Raises:
        PresetError: If there is no such preset, or it has no such patch size.
        CheckpointError: If the weights cannot be used.
        InputError: If this machine has no such device.
    """
    import torch

    from vit_demo.checks import find_device, path_or_name
    from vit_demo.trace import OwnViT
    from vit_demo.weights import find_preset
    from vit_demo.weights.checkpoints import load_model
    from vit_demo.weights.taught_heads import with_classes

    place = find_device(device)
    with torch.inference_mode(False):  # as in load_checkpoint
        preset = find_preset(path_or_name(model))
        network = with_classes(load_model(preset, patch_size).to(place), preset)
    return network.module if isinstance(network, OwnViT) else network


# Here, because this file is above all layers: a result must not import the package that shows it.
inference.notebook_html = lambda result: import_module("vit_demo.web.notebook").to_html(result)
inference.result_page = lambda result: import_module("vit_demo.web.notebook").document(result)


def __getattr__(name: str) -> Any:
    """Imports what is asked for the first time (PEP 562)."""
    if name not in (*_HOMES, *_PACKAGES):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_HOMES.get(name, f"vit_demo.{name}"))
    value = globals()[name] = getattr(module, name, module)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
