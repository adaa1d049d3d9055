"""The engines that Python, command line, API and page share: one for each device, so that models are loaded once."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from vit_demo.accelerator import best_device
from vit_demo.checks import find_device
from vit_demo.inference.engine import Engine

if TYPE_CHECKING:
    from vit_demo import images
    from vit_demo.inference.exploration import Exploration
    from vit_demo.inference.inputs import Fit

_engines: dict[str, Engine] = {}
_engines_lock = threading.Lock()


def get_engine(device: str | None = None) -> Engine:
    """The shared engine of a device, ``"cuda"``, ``"mps"`` or ``"cpu"``; of the best available for None.

    Raises:
        InputError: If this machine has no such device.
    """
    name = str(find_device(device) if device else best_device())
    with _engines_lock:
        if name not in _engines:
            _engines[name] = Engine(name)
        return _engines[name]


def install_engine(engine: Engine) -> None:
    """Makes an engine the shared one of the best device, from which the page takes it."""
    with _engines_lock:
        _engines[str(best_device())] = engine


def reset_engines() -> None:
    """Discards the shared engines with their caches."""
    with _engines_lock:
        _engines.clear()


def explore(
    image: images.ImageSource,
    preset: str | os.PathLike[str] | None = None,
    patch_size: int | None = None,
    device: str | None = None,
    fit: Fit = "crop",
) -> Exploration:
    """Runs one image through one model.

    Args:
        image: Path, bytes, ``PIL.Image``, or uint8 array ``[H, W]``, ``[H, W, 3]`` or ``[H, W, 4]``.
        preset: Name of the preset, a repository of the Hub (``org/name``), or a folder. For None the picture decides:
            ``"digits-small"`` for strokes on plain paper, ``"photos-tiny"`` for everything else.
        patch_size: In pixels; the preset's default for None.
        device: ``"cuda"``, ``"mps"`` or ``"cpu"``; the best available for None.
        fit: How a photo becomes the input: ``"crop"`` (centre square), ``"squash"``, or ``"keep"`` (the whole picture
            in its own shape, on a rectangular grid). Drawings are always fitted the way MNIST was.

    Returns:
        The result; the same object for the same image and choices while it is cached.

    Raises:
        ImageError: If the image cannot be used; ``EmptyDrawingError`` if nothing is drawn.
        PresetError: If there is no such preset, or it has no such patch size.
        CheckpointError: If the weights cannot be used.
        InputError: If this machine has no such device.

    Example:
        >>> import vit_demo
        >>> ex = vit_demo.explore("seven.png", patch_size=4)
        >>> ex.top(1)
        [('7', 0.998...)]
    """
    return get_engine(device).explore(image, preset, patch_size, fit)
