"""``vit_demo.explore``: one image in one model, named or in memory: any Vision Transformer, as it is."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

from torch import Tensor, nn

from vit_demo.defaults import WORDS_PRESET
from vit_demo.errors import InputError
from vit_demo.images import ImageSource
from vit_demo.inference.explainer import Explainer
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.inputs import (
    Fit,
    OnError,
    Source,
    Transform,
    default_preset,
    read_each,
    read_picture,
    source_of,
)
from vit_demo.inference.labels import Labels
from vit_demo.scores import Scores
from vit_demo.trace import Output
from vit_demo.weights.taught_heads import Taught
from vit_demo.words.texts import AS_TYPED


def explore(
    image: ImageSource | Tensor,
    model: str | os.PathLike[str] | nn.Module | Taught | None = None,
    *,
    patch_size: int | None = None,
    device: str | None = None,
    fit: Fit = "crop",
    labels: Labels | None = None,
    transform: Transform | None = None,
    scores: Literal["auto"] | Scores = "auto",
    output: Output | None = None,
    template: str = AS_TYPED,
) -> Exploration:
    """Runs one image through one model.

    Args:
        image: Path, bytes, ``PIL.Image``, or array ``[H, W]``, ``[H, W, 3]`` or ``[H, W, 4]``, uint8 or float from 0
            to 1. For a network in memory also its input itself, a normalised float tensor ``[C, H, W]`` or
            ``[1, C, H, W]``, of any shape that the network takes.
        model: Name of the preset, a repository of the Hub (``org/name``), a folder, a file of ``vit-demo teach``; or a
            network in memory: any Vision Transformer of timm, transformers, torchvision or your own, which stays as it
            is; or what ``vit_demo.teach`` gave. For None the picture decides: ``"digits-small"`` for strokes on plain
            paper, ``"photos-tiny"`` for everything else; name a digits preset for a photo of a handwritten digit. With
            ``labels`` it is ``"tinyclip-8m"``.
        patch_size: In pixels; the preset's default, or that of the network in memory, for None.
        device: ``"cuda"``, ``"mps"`` or ``"cpu"``; the best available for None. A network in memory stays on its own.
        fit: How a photo becomes the input: ``"crop"`` (as the network was trained to see photos, mostly their centre
            square), ``"squash"``, or ``"keep"`` (the whole picture in its own shape, on a rectangular grid). Drawings
            are always fitted the way MNIST was.
        labels: Names of the classes of a network in memory, as a list or by their numbers (transformers' ``id2label``);
            its own, ImageNet's if it has a thousand, or numbers for None. For a named CLIP or SigLIP, such as
            ``"tinyclip-8m"``, and for ``CLIPModel`` or ``SiglipModel`` of transformers with its processor as
            ``transform``, any words; a single one is compared with an empty text where the scores are a softmax.
        transform: From the upright RGB picture to the input ``[C, H, W]`` of a network in memory, or a processor of
            transformers; what is known of the network for None (see ``Exploration.preprocessing``).
        scores: What the logits become: ``"softmax"``, probabilities of classes of which one is right; ``"sigmoid"``, a
            probability for each class; ``"none"``, no probabilities. ``"auto"``: by the ``problem_type`` of
            transformers; sigmoid for one output; softmax for other networks with a classifier head. The output of a
            network in memory without one is an embedding, which has no classes unless ``labels`` or ``scores`` say so.
            Outputs that are probabilities already stay what they are.
        output: Where the logits ``[B, K]`` of a network in memory are in what it returns: the name or index of a part,
            or a function of all of it; for None the field ``logits``, or what its last linear layer led to.
        template: The text that stands for a word, with ``{}`` in its place, as in ``"a photo of a {}"``.

    Returns:
        The result. It is computed in this thread; of many images, an ``Explainer`` loads or inspects the network once.

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
    source = source_of(image)
    if model is None:
        if isinstance(image, Tensor):
            raise InputError("Tensors are for networks in memory: pass one as the model.")
        image = read_picture(image)
        model = default_preset(image) if labels is None else WORDS_PRESET
    explainer = Explainer(
        model,
        labels=labels,
        transform=transform,
        scores=scores,
        output=output,
        patch_size=patch_size,
        device=device,
        fit=fit,
        template=template,
    )
    return replace(explainer(image), source=source)


def explore_batch(
    images: Iterable[ImageSource | Tensor],
    model: str | os.PathLike[str] | nn.Module | Taught | None = None,
    *,
    patch_size: int | None = None,
    device: str | None = None,
    fit: Fit = "crop",
    labels: Labels | None = None,
    transform: Transform | None = None,
    scores: Literal["auto"] | Scores = "auto",
    output: Output | None = None,
    template: str = AS_TYPED,
    batch_size: int = 16,
    on_error: OnError = "raise",
) -> Iterator[Exploration]:
    """Runs many images through one model, several at a time; arguments as in ``explore`` and ``Explainer.batch``.

    Yields:
        The result of each image, in their order; ``source`` is its path, or else its number.

    Raises:
        InputError: What ``Explainer.batch`` raises, when it comes to that image.
    """
    how: dict[str, Any] = {"patch_size": patch_size, "device": device, "fit": fit, "labels": labels}
    how |= {"transform": transform, "scores": scores, "output": output, "template": template}
    if model is None:  # each picture decides

        def read(image: ImageSource | Tensor, source: Source) -> Exploration:
            return replace(explore(image, **how), source=source)

        yield from read_each(images, on_error, read)
        return
    yield from Explainer(model, **how).batch(images, batch_size, on_error)
