"""``vit_demo.explore``: one image in one model, named or in memory: any Vision Transformer, as it is."""

import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

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
from vit_demo.scores import SCORES, Scores, scores_for
from vit_demo.trace import TracedViT, adapt
from vit_demo.weights import Preset
from vit_demo.weights.hub.preprocessing import PREPARED, Preprocessing, preprocessing_of
from vit_demo.weights.imagenet import IMAGENET_LABELS

Transform = Callable[..., Any]
Labels = Sequence[str] | Mapping[int, str]

GIVEN = "Its input was given, so this package prepared nothing."

_numbers = itertools.count(1)


def explore(
    image: ImageSource | Tensor,
    model: str | os.PathLike[str] | nn.Module | None = None,
    patch_size: int | None = None,
    device: str | None = None,
    fit: Fit = "crop",
    *,
    labels: Labels | None = None,
    transform: Transform | None = None,
    scores: Literal["auto"] | Scores = "auto",
    preset: str | os.PathLike[str] | None = None,
) -> Exploration:
    """Runs one image through one model.

    Args:
        image: Path, bytes, ``PIL.Image``, or array ``[H, W]``, ``[H, W, 3]`` or ``[H, W, 4]``, uint8 or float from 0
            to 1. For a network in memory also its input itself, a normalised float tensor ``[C, H, W]`` or
            ``[1, C, H, W]``, of any shape that the network takes.
        model: Name of the preset, a repository of the Hub (``org/name``), a folder; or a network in memory: any Vision
            Transformer of timm, transformers, torchvision or your own, which stays as it is. For None the picture
            decides: ``"digits-small"`` for strokes on plain paper, ``"photos-tiny"`` for everything else; name a
            digits preset for a photo of a handwritten digit.
        patch_size: In pixels; the preset's default, or that of the network in memory, for None.
        device: ``"cuda"``, ``"mps"`` or ``"cpu"``; the best available for None. A network in memory stays on its own.
        fit: How a photo becomes the input: ``"crop"`` (as the network was trained to see photos, mostly their centre
            square), ``"squash"``, or ``"keep"`` (the whole picture in its own shape, on a rectangular grid). Drawings
            are always fitted the way MNIST was.
        labels: Names of the classes of a network in memory, as a list or by their numbers (transformers' ``id2label``);
            its own, ImageNet's if it has a thousand, or numbers for None.
        transform: From the upright RGB picture to the input ``[C, H, W]`` of a network in memory, or a processor of
            transformers; what is known of the network for None (see ``Exploration.preprocessing``).
        scores: What the logits become: ``"softmax"``, probabilities of classes of which one is right; ``"sigmoid"``, a
            probability for each class; ``"none"``, no probabilities. ``"auto"``: by the ``problem_type`` of
            transformers; sigmoid for one output; softmax for other networks with a classifier head. The output of a
            network in memory without one is an embedding, which has no classes unless ``labels`` or ``scores`` say so.
        preset: The same as ``model``, for names.

    Returns:
        The result; the same object for the same image and choices while it is cached.

    Raises:
        ImageError: If the image cannot be used; ``EmptyDrawingError`` if nothing is drawn.
        PresetError: If there is no such preset, it has no such patch size, or the network cannot be traced.
        LabelError: If there are not as many labels as classes.
        CheckpointError: If the weights cannot be used.
        InputError: If this machine has no such device, or the scores are unknown.

    Warns:
        UserWarning: If nothing is known of how the photos of a network in memory are prepared, with what is assumed.

    Example:
        >>> import vit_demo
        >>> ex = vit_demo.explore("seven.png", patch_size=4)
        >>> ex.top(1)
        [('7', 0.998...)]
    """
    chosen = preset if model is None else model
    if scores not in ("auto", *SCORES):
        raise InputError(f"There are no scores {scores!r}: choose one of auto, {', '.join(SCORES)}.")
    if isinstance(chosen, nn.Module):
        return explore_module(get_engine(device), image, chosen, patch_size, fit, labels, transform, scores)
    if labels is not None or transform is not None or isinstance(image, Tensor):
        raise InputError("Tensors, labels= and transform= are for networks in memory: pass one as the model.")
    return get_engine(device).explore(image, chosen, patch_size, fit, scores=None if scores == "auto" else scores)


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


def explore_module(
    engine: Engine,
    image: ImageSource | Tensor,
    module: nn.Module,
    patch_size: int | None = None,
    fit: Fit = "crop",
    labels: Labels | None = None,
    transform: Transform | None = None,
    scores: Literal["auto"] | Scores = "auto",
) -> Exploration:
    """As ``vit_demo.explore``, of a network in memory; it stays on its device.

    A network of timm is resampled in a copy where ``patch_size`` is not its own.
    """
    if patch_size is not None:
        patch_size = whole_number(patch_size, "The patch size", 1)
    pixels, picture = _given(image, transform)
    known = preprocessing_of(module)
    height, width = (known.image_size,) * 2 if pixels is None else pixels.shape[1:]
    convolutions = (one.in_channels for one in module.modules() if isinstance(one, nn.Conv2d))
    channels = next(convolutions, 3) if pixels is None else pixels.shape[0]
    can_resize = isinstance(module, ViT) or hasattr(module, "set_input_size")
    network = adapt(module, (height, width), patch_size=None if can_resize else patch_size, in_channels=channels)
    if patch_size is not None:
        network = network.resized(patch_size)
    if fit == "keep" and not network.structure.takes_any_size:
        raise PresetError('This network takes square pictures only: choose fit="crop" or "squash".')
    if scores == "auto" and labels is None and not network.structure.has_head:
        network.config = replace(network.config, num_classes=0)  # an embedding
    network.scores = scores_for(known.problem_type, network.config.num_classes) if scores == "auto" else scores
    preset = _preset(module, network, known, labels)
    if pixels is not None:
        preset = replace(preset, assumed=GIVEN)
    elif preset.assumed and not known.is_known:
        warnings.warn(preset.assumed, stacklevel=3)
    if pixels is None:
        assert picture is not None
        if preset.task == "photos" and channels != 3:
            raise InputError(f"This network takes {channels} channels: pass its input as a tensor, or transform=.")
        given = ModelInput.of(picture, preset, network.patch_size, fit)
    else:
        shown = _to_picture(pixels)
        larger = [DISPLAY_SIZE * side // max(width, height) for side in (width, height)]
        shown = shown.resize((max(1, larger[0]), max(1, larger[1])), Image.Resampling.NEAREST)
        geometry = images.Geometry((width, height), (0, 0, width, height), (width, height), "squash")
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
        processor = getattr(transform, "image_processor", transform)
        if hasattr(processor, "preprocess"):  # of transformers
            pixels = processor(picture, return_tensors="pt")["pixel_values"]
        else:
            pixels = transform(picture)
    if isinstance(pixels, Tensor) and pixels.dim() == 4 and len(pixels) == 1:
        pixels = pixels[0]
    if not isinstance(pixels, Tensor) or pixels.dim() != 3 or not pixels.numel():
        raise InputError("The input of a network is one picture, a tensor [C, H, W].")
    if not pixels.is_floating_point() or not torch.isfinite(pixels).all():
        raise InputError("The input of a network is normalised: float, and every number finite.")
    return pixels.detach(), None


def _to_picture(pixels: Tensor) -> Image.Image:
    """An input ``[C, H, W]`` as a picture from its darkest to its lightest number."""
    x = pixels.float().cpu()
    x = (x - x.min()) / (x.max() - x.min()).clamp_min(1e-6)
    x = x if len(x) == 3 else x.mean(0, keepdim=True).expand(3, -1, -1)
    return Image.fromarray((255 * x).round().byte().permute(1, 2, 0).contiguous().numpy().astype(np.uint8))


def _preset(module: nn.Module, network: TracedViT, known: Preprocessing, labels: Labels | None) -> Preset:
    config = network.config
    is_digit = config.in_channels == 1 and config.image_size == 28 and not known.is_known
    return Preset(
        name=type(module).__name__,
        title=type(module).__name__,
        task="digits" if is_digit else "photos",
        config=config,
        labels=_labels(known.labels, config.num_classes, labels),
        patch_sizes=(network.patch_size,),
        default_patch_size=network.patch_size,
        flexible=False,
        source="memory",
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        **{name: getattr(known, name) for name in PREPARED},
        scores=network.scores,
        assumed="" if is_digit else known.note,
        revision=str(next(_numbers)),  # its weights may change, so no result of another time is its own
    )


def _labels(own: Sequence[str], count: int, labels: Labels | None) -> tuple[str, ...]:
    """The names of the classes: as given, as the network has them, ImageNet's for a thousand, or numbers."""
    if isinstance(labels, Mapping):
        by_number = {str(index): name for index, name in labels.items()}
        if by_number.keys() != {str(index) for index in range(count)}:
            raise LabelError(f"This network has {count} classes: name each of them, numbered from 0.")
        labels = [by_number[str(index)] for index in range(count)]
    if labels is not None:
        is_list = isinstance(labels, Sequence | np.ndarray) and not isinstance(labels, str)
        if not is_list or len(labels) != count or not all(isinstance(name, str) for name in labels):
            raise LabelError(f"This network has {count} classes: give a list of as many labels, each a string.")
        return tuple(map(str, labels))
    if len(own) == count and not all(name.startswith("LABEL_") for name in own):
        return tuple(own)
    return IMAGENET_LABELS if count == len(IMAGENET_LABELS) else tuple(map(str, range(count)))
