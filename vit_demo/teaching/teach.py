"""``vit_demo.teach``: a network with classes of one's own, from a few pictures of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vit_demo.errors import InputError
from vit_demo.images import ImageSource
from vit_demo.inference.explainer import Explainer
from vit_demo.inference.inputs import Fit, OnError, Transform, default_preset, read_each, read_picture
from vit_demo.teaching.ridge import Ridge, ridge
from vit_demo.trace import Output, TracedViT
from vit_demo.trace.other_head import read_token, with_head
from vit_demo.weights.taught_heads import Taught, check_labels, taught_preset


def teach(
    examples: Mapping[str, Iterable[ImageSource | Tensor]],
    model: str | os.PathLike[str] | nn.Module | None = None,
    *,
    patch_size: int | None = None,
    device: str | None = None,
    fit: Fit = "crop",
    transform: Transform | None = None,
    output: Output | None = None,
    on_error: OnError = "raise",
) -> Taught:
    """Teaches a network classes of one's own: its head becomes a ridge regression on what it reads of the examples.

    All other weights stay. The network with that head is an ordinary one, so whatever explains a class explains these.

    Args:
        examples: Pictures by the name of their class, two or more of each of 2 to 50 classes; each as ``image`` of
            ``vit_demo.explore``.
        model: As in ``vit_demo.explore``, like all others here; the first picture decides for None. A network without
            classes, such as ``"dinov2-s14"``, becomes a classifier.
        patch_size: In pixels.
        device: Where it runs.
        fit: How a photo becomes the input.
        transform: From a picture to the input of a network in memory.
        output: Where the logits of a network in memory are.
        on_error: As in ``Explainer.batch``.

    Returns:
        The network, for ``explore``, ``Explainer`` and ``save``, with its accuracy while each example was left out.

    Raises:
        LabelError: If there are too few or too many classes, or their names cannot be used.
        InputError: If a class has fewer than two examples, or two examples are the same.
        ImageError: If an example cannot be used; the message names it.
        PresetError: If the network's classifier does not read one vector, or see ``vit_demo.explore``.

    Example:
        >>> taught = vit_demo.teach({"heart": ["heart1.png", "heart2.png"], "star": ["star1.png", "star2.png"]})
        >>> vit_demo.explore("heart3.png", taught).top(1)
        [('heart', 0.94...)]
    """
    if not isinstance(examples, Mapping):
        raise InputError(
            'Examples are a dict from names to lists of pictures, such as {"heart": [...], "star": [...]}.'
        )
    labels, lists = check_labels(examples), [_listed(name, images) for name, images in examples.items()]
    if model is None:
        if isinstance(first := lists[0][0], Tensor):
            raise InputError("Tensors are for networks in memory: pass one as the model.")
        model = default_preset(read_picture(first))
    explainer = Explainer(model, patch_size=patch_size, device=device, fit=fit, transform=transform, output=output)
    tokens, classes = list[NDArray[np.float32]](), list[int]()
    for index, (label, images) in enumerate(zip(labels, lists, strict=True)):
        try:
            for prepared in read_each(images, on_error, explainer.prepare):
                given, preset, size, _, run = prepared
                tokens.append(run(read_token, given.pixels)[0].numpy())
                classes.append(index)
        except InputError as error:
            raise type(error)(f"{label}: {error}") from error
        _check_count(label, classes.count(index))
    found = fitted(tokens, classes, labels)
    head = np.column_stack([found.weight, found.bias]).astype(np.float32)
    module = None
    if preset.is_in_memory:
        module, output = run(_taught_module, torch.from_numpy(head), output)
    else:
        preset = taught_preset(preset, size, labels, head)
    confusion = np.zeros((len(labels), len(labels)), np.int64)
    np.add.at(confusion, (np.array(classes), found.left_out.argmax(1)), 1)
    accuracy = float(np.trace(confusion) / len(classes))
    return Taught(
        labels, accuracy, confusion, found.shrinkage, found.temperature, head, preset, size, module, transform, output
    )


def _listed(label: str, images: Iterable[ImageSource | Tensor]) -> list[ImageSource | Tensor]:
    if isinstance(images, str | bytes | os.PathLike):
        raise InputError(f"The pictures of {label} are a list, not one {type(images).__name__}.")
    found = list(images)
    _check_count(label, len(found))
    return found


def _check_count(label: str, count: int) -> None:
    if count < 2:
        raise InputError("“{0}” has {1}: give at least two pictures of each class.", label, count)


def _taught_module(
    network: TracedViT, head: Tensor, output: Output | None, *, patch_size: int
) -> tuple[nn.Module, Output | None]:
    """A network in memory with its new head, and where the logits are in what it returns."""
    other = with_head(network, head[:, :-1], head[:, -1])
    return other.module, other.structure.output if callable(other.structure.output) else output


def fitted(tokens: Sequence[NDArray[np.float32]], classes: Sequence[int], labels: Sequence[str]) -> Ridge:
    """The head for tokens ``[D]`` and their classes; ``InputError`` if two are the same, which nothing could tell."""
    seen = dict[bytes, int]()
    for number, (token, index) in enumerate(zip(tokens, classes, strict=True)):
        if (before := seen.setdefault(token.tobytes(), number)) != number:
            first, second = labels[classes[before]], labels[index]
            where = f"“{first}”" if first == second else f"“{first}” and “{second}”"
            raise InputError("Two examples of {0} are the same: give different ones.", where)
    return ridge(np.stack(tokens).astype(np.float64), np.array(classes))
