"""``vit_demo.explore``: one image in one model, named or in memory: any Vision Transformer, as it is."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from vit_demo import images
from vit_demo.accelerator import device_name
from vit_demo.checks import whole_number
from vit_demo.errors import InputError, LabelError, PresetError
from vit_demo.images import ImageSource
from vit_demo.inference.engine import Engine, get_engine
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.inputs import DISPLAY_SIZE, Fit, ModelInput
from vit_demo.model import ViT
from vit_demo.trace import TracedViT, adapt
from vit_demo.weights import Preset
from vit_demo.weights.hub.preprocessing import Preprocessing
from vit_demo.weights.imagenet import CLIP, IMAGENET_DEFAULT, IMAGENET_INCEPTION, IMAGENET_LABELS

Transform = Callable[[Image.Image], Tensor]

DEFAULT_SIZE = 224

_numbers = itertools.count(1)


def explore(
    image: ImageSource | Tensor,
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
        image: Path, bytes, ``PIL.Image``, or array ``[H, W]``, ``[H, W, 3]`` or ``[H, W, 4]``, uint8 or float from 0
            to 1. For a network in memory also its input itself, a normalised float tensor ``[C, H, W]``.
        model: Name of the preset, a repository of the Hub (``org/name``), a folder; or a network in memory: any Vision
            Transformer of timm, transformers, torchvision or your own, which stays as it is. For None the picture
            decides: ``"digits-small"`` for strokes on plain paper, ``"photos-tiny"`` for everything else; name a
            digits preset for a photo of a handwritten digit.
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


def explore_batch(
    images: Iterable[ImageSource | Tensor],
    model: str | os.PathLike[str] | nn.Module | None = None,
    patch_size: int | None = None,
    **options: Any,
) -> Iterator[Exploration]:
    """Runs many images through one model, one after the other, so that memory holds one result at a time.

    Args:
        images: As ``image`` of ``explore``, each.
        model: As in ``explore``.
        patch_size: As in ``explore``.
        **options: Further arguments of ``explore``.

    Yields:
        The result of each image, in their order.

    Raises:
        InputError: What ``explore`` raises, when it comes to that image.
    """
    for image in images:
        yield explore(image, model, patch_size, **options)


def preprocessing_of(module: nn.Module) -> Preprocessing:
    """What a network of timm (``pretrained_cfg``), transformers (``config``) or torchvision says of itself."""
    known = getattr(module, "pretrained_cfg", None)
    config: Any = getattr(module, "config", None)
    if isinstance(known, dict) and "input_size" in known:
        size = getattr(getattr(module, "patch_embed", None), "img_size", None) or known["input_size"][1:]
        return Preprocessing(
            image_size=size[0],
            mean=known["mean"],
            std=known["std"],
            crop_fraction=known["crop_pct"],
            interpolation=known["interpolation"],
        )
    if hasattr(config, "model_type"):
        config = getattr(config, "vision_config", config)
        family, size = str(config.model_type), getattr(config, "image_size", DEFAULT_SIZE)
        if family.startswith("clip"):
            return Preprocessing(image_size=size, **CLIP)
        if family in ("vit", "beit", "siglip_vision_model"):
            return Preprocessing(image_size=size, **IMAGENET_INCEPTION)
        return Preprocessing(image_size=size)
    if type(module).__module__.startswith("torchvision."):
        return Preprocessing(image_size=module.image_size, crop_fraction=0.875, interpolation="bilinear")  # type: ignore[arg-type]
    size = getattr(module, "image_size", getattr(config, "image_size", DEFAULT_SIZE))
    return Preprocessing(image_size=size if isinstance(size, int) else DEFAULT_SIZE)


def explore_module(
    engine: Engine,
    image: ImageSource | Tensor,
    module: nn.Module,
    patch_size: int | None = None,
    fit: Fit = "crop",
    labels: Sequence[str] | None = None,
    transform: Transform | None = None,
) -> Exploration:
    """As ``vit_demo.explore``, of a network in memory; it stays on its device.

    A network of timm is resampled in a copy where ``patch_size`` is not its own.
    """
    if patch_size is not None:
        patch_size = whole_number(patch_size, "The patch size", 1)
    known = preprocessing_of(module)
    pixels, picture = _given(image, transform)
    size = known.image_size if pixels is None else pixels.shape[2]
    convolutions = (one.in_channels for one in module.modules() if isinstance(one, nn.Conv2d))
    channels = next(convolutions, 3) if pixels is None else pixels.shape[0]
    can_resize = isinstance(module, ViT) or hasattr(module, "set_input_size")
    network = adapt(module, size, patch_size=None if can_resize else patch_size, in_channels=channels)
    if patch_size is not None:
        network = network.resized(patch_size)
    if fit == "keep" and not network.structure.takes_any_size:
        raise PresetError('This network takes square pictures only: choose fit="crop" or "squash".')
    preset = _preset(module, network, known, labels)
    if pixels is None:
        assert picture is not None
        if preset.task == "photos" and channels != 3:
            raise InputError(f"This network takes {channels} channels: pass its input as a tensor, or transform=.")
        given = ModelInput.of(picture, preset, network.patch_size, fit)
    else:
        shown = _to_picture(pixels).resize((DISPLAY_SIZE, DISPLAY_SIZE), Image.Resampling.NEAREST)
        geometry = images.Geometry((size, size), (0, 0, size, size), (size, size), "squash")
        given = ModelInput(pixels[None].float().cpu(), geometry, shown, shown)
    run = partial(engine.run_on_model, preset, network.patch_size, network=network)
    return Exploration.of(given, preset, network.patch_size, fit, run, device_name)


def _given(image: ImageSource | Tensor, transform: Transform | None) -> tuple[Tensor | None, Image.Image | None]:
    """The network's input, or else the picture that becomes it."""
    if isinstance(image, Tensor):
        pixels = image
    else:
        picture = images.read_image(image)
        if transform is None:
            return None, picture
        pixels = transform(picture)
    if not isinstance(pixels, Tensor) or pixels.dim() != 3 or pixels.shape[1] != pixels.shape[2]:
        raise InputError("The input of a network is a tensor [C, H, W] whose height is its width.")
    if not pixels.is_floating_point() or not torch.isfinite(pixels).all():
        raise InputError("The input of a network is normalised: float, and every number finite.")
    return pixels.detach(), None


def _to_picture(pixels: Tensor) -> Image.Image:
    """An input ``[C, H, W]`` as a picture from its darkest to its lightest number."""
    x = pixels.float().cpu()
    x = (x - x.min()) / (x.max() - x.min()).clamp_min(1e-6)
    x = x if len(x) == 3 else x.mean(0, keepdim=True).expand(3, -1, -1)
    return Image.fromarray((255 * x).round().byte().permute(1, 2, 0).contiguous().numpy().astype(np.uint8))


def _preset(module: nn.Module, network: TracedViT, known: Preprocessing, labels: Sequence[str] | None) -> Preset:
    config = network.config
    is_digit = config.in_channels == 1 and config.image_size == 28 and known.mean == IMAGENET_DEFAULT["mean"]
    return Preset(
        name=type(module).__name__,
        title=type(module).__name__,
        task="digits" if is_digit else "photos",
        config=config,
        labels=_labels(module, config.num_classes, labels),
        patch_sizes=(network.patch_size,),
        default_patch_size=network.patch_size,
        flexible=False,
        source="memory",
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        mean=tuple(known.mean),
        std=tuple(known.std),
        crop_fraction=known.crop_fraction,
        interpolation=known.interpolation,
        revision=str(next(_numbers)),  # its weights may change, so no result of another time is its own
    )


def _labels(module: nn.Module, count: int, labels: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the classes: as given, as the network has them, ImageNet's for a thousand, or numbers."""
    if labels is not None:
        if isinstance(labels, str) or len(labels) != count:
            raise LabelError(f"This network has {count} classes: give a list of as many labels.")
        return tuple(map(str, labels))
    named = getattr(getattr(module, "config", None), "id2label", None) or {}
    if len(named) == count and not all(str(name).startswith("LABEL_") for name in named.values()):
        return tuple(str(named[i]) for i in range(count))
    return IMAGENET_LABELS if count == len(IMAGENET_LABELS) else tuple(map(str, range(count)))
