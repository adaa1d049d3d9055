"""``vit_demo.explore``: one image in one model, named or in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor, nn

from vit_demo.errors import InputError
from vit_demo.inference.engine import get_engine
from vit_demo.inference.modules import Transform, explore_module

if TYPE_CHECKING:
    from vit_demo import images
    from vit_demo.inference.exploration import Exploration
    from vit_demo.inference.inputs import Fit


def explore(
    image: images.ImageSource | Tensor,
    model: str | os.PathLike[str] | nn.Module | None = None,
    patch_size: int | None = None,
    device: str | None = None,
    fit: Fit = "crop",
    *,
    labels: Sequence[str] | None = None,
    transform: Transform | None = None,
    preset: str | os.PathLike[str] | None = None,
) -> Exploration:
    """Runs one image through one model.

    Args:
        image: Path, bytes, ``PIL.Image``, or uint8 array ``[H, W]``, ``[H, W, 3]`` or ``[H, W, 4]``. For a network in
            memory also its input itself, a normalised float tensor ``[C, H, W]``.
        model: Name of the preset, a repository of the Hub (``org/name``), a folder; or a network in memory: any Vision
            Transformer of timm, transformers, torchvision or your own, which stays as it is. For None the picture
            decides: ``"digits-small"`` for strokes on plain paper, ``"photos-tiny"`` for everything else.
        patch_size: In pixels; the preset's default, or that of the network in memory, for None.
        device: ``"cuda"``, ``"mps"`` or ``"cpu"``; the best available for None. A network in memory stays on its own.
        fit: How a photo becomes the input: ``"crop"`` (centre square), ``"squash"``, or ``"keep"`` (the whole picture
            in its own shape, on a rectangular grid). Drawings are always fitted the way MNIST was.
        labels: Names of the classes of a network in memory; its own, ImageNet's if it has a thousand, or numbers for
            None.
        transform: From the upright RGB picture to the input ``[C, H, W]`` of a network in memory; what timm,
            transformers or torchvision say of the network for None.
        preset: The same as ``model``, for names.

    Returns:
        The result; the same object for the same image and choices while it is cached.

    Raises:
        ImageError: If the image cannot be used; ``EmptyDrawingError`` if nothing is drawn.
        PresetError: If there is no such preset, it has no such patch size, or the network cannot be traced.
        LabelError: If there are not as many labels as classes.
        CheckpointError: If the weights cannot be used.
        InputError: If this machine has no such device.

    Example:
        >>> import vit_demo
        >>> ex = vit_demo.explore("seven.png", patch_size=4)
        >>> ex.top(1)
        [('7', 0.998...)]
    """
    chosen = preset if model is None else model
    if isinstance(chosen, nn.Module):
        return explore_module(get_engine(device), image, chosen, patch_size, fit, labels, transform)
    if labels is not None or transform is not None or isinstance(image, Tensor):
        raise InputError("Tensors, labels= and transform= are for networks in memory: pass one as the model.")
    return get_engine(device).explore(image, chosen, patch_size, fit)
